#version 450
// DFT and STFT, computed in double. FAST: a group transforms a line whose length is a power of two in shared memory, by
// halves (Cooley and Tukey, 1965); else an invocation sums up one result by the definition, with roots of unity that
// are exact at quarter turns. Constants: 0 invocations; 1 the length if it is fast, else 0; 2 flags
// (parameters/fourier.h).
// Variants: f32 f16 f64
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "common.glsl"
#include "parameters/fourier.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint THREADS = 128;
layout(constant_id = 1) const uint FAST = 0u;
layout(constant_id = 2) const uint FLAGS = 0u;

layout(set = 0, binding = 1, std430) readonly buffer source { T x[]; };
layout(set = 0, binding = 2, std430) readonly buffer factors { T window[]; };
layout(set = 0, binding = 3, std430) writeonly buffer target { T y[]; };

shared dvec2 line[FAST == 0u ? 1u : FAST];

bool has(uint flag) { return (FLAGS & flag) != 0u; }

dvec2 product(dvec2 a, dvec2 b) { return dvec2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }

/// e^(−2πi m / n) for m < n ≤ 2^28: the angle as eighths of a turn and a rest, of which the series of sine and cosine
/// are taken.
dvec2 root_of_unity(uint m, uint n) {
  const uint eighth = 8u * m / n, rest = 8u * m - eighth * n;
  const double angle = double((eighth & 1u) == 0u ? rest : n - rest) / double(n) * 0.78539816339744830962lf,
      s = angle * angle;
  double sine = 1.0lf, cosine = 1.0lf;
  [[unroll]] for (int k = 18; k > 0; k -= 2) {
    sine = fma(sine * s, double(-1.0lf / (k * (k + 1))), 1.0lf);
    cosine = fma(cosine * s, double(-1.0lf / (k * (k - 1))), 1.0lf);
  }
  sine *= angle;
  const bool swaps = ((eighth + 1u) & 2u) != 0u; // eighths 1, 2, 5 and 6
  const double across = swaps ? sine : cosine, up = swaps ? cosine : sine;
  return dvec2(eighth >= 2u && eighth < 6u ? -across : across, eighth < 4u ? -up : up);
}

/// Number j of the line that begins at `first`.
dvec2 number_at(uint first, uint j) {
  const bool mirrored = has(fourier_mirror) && 2u * j > length;
  if (mirrored)
    j = length - j;
  if (j >= read)
    return dvec2(0.0lf);
  const uint at = first + j * in_step;
  dvec2 v = has(fourier_complex_in) ? dvec2(double(x[2u * at]), double(x[2u * at + 1u])) : dvec2(double(x[at]), 0.0lf);
  if (mirrored)
    v.y = -v.y;
  return has(fourier_window) ? v * double(window[j]) : v;
}

void put(uint i, uint k, dvec2 v) {
  const uint at = i / inner * out_outer_step + i % inner * out_inner_step + k * out_step;
  if (has(fourier_inverse))
    v /= double(length);
  if (has(fourier_complex_out)) {
    y[2u * at] = T(v.x);
    y[2u * at + 1u] = T(v.y);
  } else {
    y[at] = T(v.x);
  }
}

uint start_of(uint i) { return i / inner * in_outer_step + i % inner * in_inner_step; }

void sum_up(uint index) {
  const uint i = index / bins, k = index - i * bins, first = start_of(i);
  dvec2 sum = dvec2(0.0lf);
  uint turn = 0u; // j k mod length
  for (uint j = 0u; j < (has(fourier_mirror) ? length : read); ++j) {
    const dvec2 root = root_of_unity(turn, length);
    sum += product(number_at(first, j), has(fourier_inverse) ? dvec2(root.x, -root.y) : root);
    turn += k;
    turn -= turn >= length ? length : 0u;
  }
  put(i, k, sum);
}

void transform_line(uint i) {
  const uint first = start_of(i), id = gl_LocalInvocationID.x;
  for (uint j = id; j < FAST; j += THREADS)
    line[bitfieldReverse(j) >> (32 - findLSB(FAST))] = number_at(first, j);
  barrier();
  for (uint reach = 1u; reach < FAST; reach *= 2u) {
    for (uint pair = id; pair < FAST / 2u; pair += THREADS) {
      const uint k = pair & (reach - 1u), low = 2u * pair - k;
      const dvec2 root = root_of_unity(k, 2u * reach);
      const dvec2 odd = product(line[low + reach], has(fourier_inverse) ? dvec2(root.x, -root.y) : root),
          even = line[low];
      line[low] = even + odd;
      line[low + reach] = even - odd;
    }
    barrier();
  }
  for (uint k = id; k < bins; k += THREADS)
    put(i, k, line[k]);
}

void main() {
  if (FAST == 0u) {
    const uint index = flat_group() * THREADS + gl_LocalInvocationID.x;
    if (index < count)
      sum_up(index);
  } else if (flat_group() < count) {
    transform_line(flat_group());
  }
}

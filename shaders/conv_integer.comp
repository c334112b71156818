#version 450
// Convolutions of 8-bit tensors (integer_product.glsl), NCHW: an invocation sums one output element. A's zero point is
// single; B's columns are the filters. Padding adds nothing. Variants name the types of the data and the weights.
// Variants: u8_u8 u8_i8 i8_u8 i8_i8
#extension GL_GOOGLE_include_directive : require
#include "integer_product.glsl"
#include "parameters/conv_integer.h"

layout(local_size_x = 256) in;

layout(constant_id = 5) const bool HAS_BIAS = false;

layout(set = 0, binding = 10, std430) readonly buffer bias_buffer { int bias[]; };

void main() {
  const uint index = flat_group() * 256u + gl_LocalInvocationID.x;
  if (index >= count)
    return;
  uint rest = index;
  ivec3 at;
  [[unroll]] for (int axis = 2; axis >= 0; --axis) {
    const uint size = uint(out_size[axis]), next = rest / size;
    at[axis] = int(rest - next * size) * stride[axis] - pad[axis];
    rest = next;
  }
  const uint image = rest / filters, f = rest - image * filters;
  const uint groups = filters / per_group;
  const uint in_volume = uint(in_size.x * in_size.y * in_size.z), taps = uint(kernel.x * kernel.y * kernel.z);
  uint x = (image * groups + f / per_group) * filter_channels * in_volume, w = f * filter_channels * taps;
  const int x_middle = a_zero(0u), w_middle = b_zero(f);
  int sum = HAS_BIAS ? bias[f] : 0;
  for (uint channel = 0u; channel < filter_channels; ++channel, x += in_volume)
    for (int i = 0; i < kernel.x; ++i)
      for (int j = 0; j < kernel.y; ++j)
        for (int k = 0; k < kernel.z; ++k, ++w) {
          const ivec3 p = at + ivec3(i, j, k) * dilation.xyz;
          if (all(greaterThanEqual(p, ivec3(0))) && all(lessThan(p, in_size.xyz)))
            sum += (int(a[x + uint((p.x * in_size.y + p.y) * in_size.z + p.z)]) - x_middle) * (int(b[w]) - w_middle);
        }
  store(index, 0u, f, sum);
}

// RotaryEmbedding (RoPE): rotates pairs of elements of every head by angles that depend on the position.
//
//   (a, b) → (a·cos − b·sin, a·sin + b·cos)
// X is [batch, heads, sequence, size], or [batch, sequence, heads · size] with attribute num_heads. Pairs are (i, i +
// r/2) of the first r = rotary_embedding_dim (0: all) elements of a head, neighbours if `interleaved`; the rest is
// copied. The caches are [positions, r/2] with position_ids [batch, sequence], else [batch, sequence, r/2].
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/infer.hpp"
#include "ops/operand.hpp"

namespace troupe {
namespace {

struct rotary_sizes {
  int64_t batch, heads, sequence, size, rotated;
  bool flat;
};

void infer_rotary(infer_context& c) {
  if (c.rank(0) != 3 && c.rank(0) != 4)
    fail(errc::invalid_model, "the input has rank {}, but must have 3 or 4", c.rank(0));
  require_same_dims(c.dims(1), c.dims(2), "cosine and sine caches");
  infer_same(c);
}

rotary_sizes parse_rotary(const kernel_context& c) {
  const auto x = c.input(0).dims;
  rotary_sizes s{x[0], 0, 0, 0, c.attrs().integer("rotary_embedding_dim", 0), x.size() == 3};
  s.heads = s.flat ? c.attrs().integer("num_heads", 0) : x[1];
  s.sequence = x[s.flat ? 1 : 2];
  if (s.flat && (s.heads < 1 || x[2] % s.heads != 0))
    fail(errc::invalid_model, "{} elements cannot be split into {} heads", x[2], s.heads);
  s.size = s.flat ? x[2] / s.heads : x[3];
  if (s.rotated == 0)
    s.rotated = s.size;
  if (s.rotated < 0 || s.rotated > s.size || s.rotated % 2 != 0)
    fail(errc::invalid_model, "{} of a head's {} elements cannot be rotated in pairs", s.rotated, s.size);
  return s;
}

/// Returns for each (batch, position) the row of the caches.
std::vector<int64_t> cache_rows(const kernel_context& c, const rotary_sizes& s) {
  const auto cache = c.input(1).dims;
  require_same_dims(to_symbolic(c.input(2).dims), to_symbolic(cache), "cosine and sine caches");
  std::vector<int64_t> rows(static_cast<size_t>(s.batch * s.sequence));
  if (!c.has_input(3)) {
    require_same_dims(to_symbolic(cache), symbolic_shape{s.batch, s.sequence, s.rotated / 2}, "caches and input");
    for (size_t i = 0; i < rows.size(); ++i)
      rows[i] = static_cast<int64_t>(i);
    return rows;
  }
  if (cache.size() != 2)
    fail(errc::invalid_model, "the caches have rank {}, but must have 2 beside position_ids", cache.size());
  require_same(cache[1], s.rotated / 2, "columns of the caches and rotated pairs");
  require_same_dims(to_symbolic(c.input(3).dims), symbolic_shape{s.batch, s.sequence}, "position_ids and input");
  rows = to_int64(c.input(3));
  for (int64_t row : rows)
    if (row < 0 || row >= cache[0])
      fail(errc::invalid_input, "position {} is outside the caches' {} rows", row, cache[0]);
  return rows;
}

void rotary(kernel_context& c) {
  const rotary_sizes s = parse_rotary(c);
  const std::vector<int64_t> rows = cache_rows(c, s);
  const bool interleaved = c.attrs().integer("interleaved", 0) != 0;
  const int64_t half = s.rotated / 2;
  visit_compute(c.input(0).type, [&]<class C>(type_tag<C>) {
    const read_as<C> x(c.input(0)), cosine(c.input(1)), sine(c.input(2));
    write_as<C> y(c.output(0));
    const int64_t grain = std::max<int64_t>(1, elementwise_grain / std::max<int64_t>(1, s.size));
    parallel_for(s.batch * s.heads * s.sequence, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) { // one head of one position
        const int64_t b = i / s.heads / s.sequence;
        const int64_t t = s.flat ? i / s.heads % s.sequence : i % s.sequence;
        const int64_t angle = rows[static_cast<size_t>(b * s.sequence + t)] * half;
        const C* from = x.data() + i * s.size;
        C* to = y.data() + i * s.size;
        for (int64_t p = 0; p < half; ++p) {
          const int64_t first = interleaved ? 2 * p : p, second = interleaved ? 2 * p + 1 : p + half;
          const C a = from[first], d = from[second], cos = cosine[angle + p], sin = sine[angle + p];
          to[first] = a * cos - d * sin;
          to[second] = a * sin + d * cos;
        }
        if (to != from)
          std::copy(from + s.rotated, from + s.size, to + s.rotated);
      }
    });
    y.commit();
  });
}

/// Batches, heads of a 4-D operand, and positions, which angles are looked up for, or have angles of their own.
void rotary_axes(call_axes& a) {
  const bool by_position = a.call().has_input(3), flat = a.call().rank(0) == 3;
  for (const size_t axis : {0, 1}) {
    const size_t x = axis == 0 ? 0 : flat ? 1 : 2;
    if (by_position)
      a.map({{0, x}, {3, axis}}, x);
    else
      a.map({{0, x}, {1, axis}, {2, axis}}, x);
  }
  if (!flat)
    a.map({{0, 1}}, 1);
}

constexpr auto rotary_rows = std::to_array<op_def>({
    op_row("RotaryEmbedding", 23, infer_rotary, rotary,
           {.inputs = {3, 4},
            .types = types::floats,
            .alias = aliasing::in_place,
            .cost = cost_per_input<3>,
            .axes = rotary_axes,
            .mixes = "rotates"}),
});

} // namespace

extern constinit const op_table onnx_rotary_ops = rotary_rows;

} // namespace troupe

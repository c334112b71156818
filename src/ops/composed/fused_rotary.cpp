// Rotary position embedding (RoPE), produced by fusion:
//
//   Y[…, d] = X[…, d] · cos[d] + (d < D/2 ? −X[…, d + D/2] : X[…, d − D/2]) · sin[d]
//
// X is [B, H, S, D] (attribute `layout` = "bhsd", the default), [B, S, H, D] ("bshd"), or [B, S, H · D] with attribute
// num_heads; D is even; cos and sin are [B or 1, S, D].
#include "base/parallel.hpp"
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/head_layout.hpp"
#include "ops/infer.hpp"

namespace troupe {
namespace {

bool may_equal(const dim& a, const dim& b) {
  return a == b || !a.is_constant() || !b.is_constant();
}

void infer_fused_rotary(infer_context& c) {
  const symbolic_shape& x = c.dims(0);
  if (x.size() < 3 || x.size() > 4 || !x.back().is_constant())
    fail(errc::invalid_model, "rotary embedding takes an operand of rank 3 or 4 and known width, not {}", to_string(x));
  shape ones(x.size(), 1);
  ones.back() = x.back().constant();
  const dim width = rotary_dims(c.attrs(), ones)[3];
  if (width.constant() % 2 != 0)
    fail(errc::invalid_model, "rotary embedding takes heads of even width, not {}", width.to_string());
  const dim& positions = x[rotary_is_bshd(c.attrs(), x.size()) ? 1 : 2];
  for (size_t i : {1, 2}) {
    const symbolic_shape& angle = c.dims(i);
    if (angle.size() != 3 || !(angle[0].is(1) || may_equal(angle[0], x[0])) || !may_equal(angle[1], positions) ||
        !may_equal(angle[2], width))
      fail(errc::invalid_model, "rotary embedding: {} does not fit {}", to_string(angle), to_string(x));
  }
  c.set_output(0, common_type(c), x);
}

template <class T>
void run_rotary(kernel_context& c) {
  using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const auto angle = c.input(1).dims;
  const std::array<int64_t, 4> x = rotary_dims(c.attrs(), c.input(0).dims);
  const bool bshd = rotary_is_bshd(c.attrs(), c.input(0).dims.size());
  const int64_t inner = x[2], D = x[3], half = D / 2, positions = bshd ? x[1] : x[2];
  for (size_t i : {1, 2})
    if (c.input(i).dims[1] != positions || c.input(i).dims[2] != D ||
        (c.input(i).dims[0] != 1 && c.input(i).dims[0] != x[0]))
      fail(errc::invalid_input, "rotary embedding: {} does not fit {}", to_string(c.input(i).dims),
           to_string(c.input(0).dims));
  const T *from = c.input(0).as<T>(), *cos = c.input(1).as<T>(), *sin = c.input(2).as<T>();
  T* to = c.output(0).as<T>();
  const int64_t batch_cos = angle[0] == 1 ? 0 : positions * D, batch_sin = c.input(2).dims[0] == 1 ? 0 : positions * D;
  parallel_for(
      x[0] * x[1] * inner, std::max<int64_t>(1, 8192 / std::max<int64_t>(D, 1)), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const int64_t b = row / (x[1] * inner), s = bshd ? row / inner % x[1] : row % inner;
          const T *v = from + row * D, *ct = cos + b * batch_cos + s * D, *st = sin + b * batch_sin + s * D;
          T* y = to + row * D;
          for (int64_t d = 0; d < half; ++d) {
            const C low = static_cast<C>(v[d]), high = static_cast<C>(v[d + half]);
            y[d] = static_cast<T>(low * static_cast<C>(ct[d]) - high * static_cast<C>(st[d]));
            y[d + half] = static_cast<T>(high * static_cast<C>(ct[d + half]) + low * static_cast<C>(st[d + half]));
          }
        }
      });
}

void fused_rotary_reference(kernel_context& c) {
  visit_float(c.input(0).type, [&]<class T>(type_tag<T>) { run_rotary<T>(c); });
}

/// Batches, heads and positions; the angles are those of a batch element, or of all.
void fused_rotary_axes(call_axes& a) {
  const size_t rank = a.call().rank(0), positions = rotary_is_bshd(a.call().attrs(), rank) ? 1 : 2;
  for (size_t axis = 0; axis + 1 < rank; ++axis)
    if (axis == 0 || axis == positions)
      a.map({{0, axis}, a.fit(1, axis == 0 ? 0 : 1, 3), a.fit(2, axis == 0 ? 0 : 1, 3)}, axis);
    else
      a.map({{0, axis}}, axis);
}

constexpr auto fused_rotary_rows = std::to_array<op_def>({
    op_row("Rotary", 1, infer_fused_rotary, fused_rotary_reference,
           {.domain = "troupe",
            .inputs = {3, 3},
            .types = types::floats,
            .alias = aliasing::in_place,
            .axes = fused_rotary_axes,
            .mixes = "rotates"}),
});

} // namespace

extern constinit const op_table composed_fused_rotary_ops = fused_rotary_rows;

} // namespace troupe

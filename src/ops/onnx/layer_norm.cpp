// LayerNormalization and RMSNormalization: statistics of each slice of the axes from `axis` on.
//
//   LayerNormalization: y = (x − mean) · r · scale + bias, r = 1 / √(variance + epsilon); mean and r are further
//     outputs
//   RMSNormalization:   y = x / √(mean of x² + epsilon) · scale
// Scale and bias broadcast to the operand. Statistics are computed in double, whatever stash_type asks for at least.
#include "ops/axes.hpp"
#include "ops/families.hpp"
#include "ops/infer.hpp"
#include "ops/onnx/require_broadcast.hpp"
#include "ops/operand.hpp"

#include <cmath>

namespace troupe {
namespace {

/// Returns the type of the statistics that attribute stash_type names.
dtype stash_type(const attributes& attrs) {
  return dtype_from_onnx(static_cast<int>(attrs.integer("stash_type", 1)));
}

void infer_layer_norm(infer_context& c) {
  const symbolic_shape x = c.dims(0);
  const size_t axis = c.axis("axis", -1, x.size());
  for (size_t i = 1; i < c.input_count(); ++i)
    if (c.has_input(i))
      require_broadcast(c.dims(i), x, "scale or bias");
  c.set_output(0, c.type(0), x);
  symbolic_shape statistics = x;
  std::fill(statistics.begin() + static_cast<std::ptrdiff_t>(axis), statistics.end(), dim(1));
  for (size_t i = 1; i < c.output_count(); ++i)
    c.set_output(i, stash_type(c.attrs()), statistics);
}

/// Scale or bias, laid out so that element i of the operand uses element i modulo the size.
std::vector<double> spread(const const_view& vector, std::span<const int64_t> dims, size_t axis) {
  require_broadcast(to_symbolic(vector.dims), to_symbolic(dims), "scale or bias");
  const read_as<double> values(vector);
  // The usual case needs only the normalised axes; a vector that reaches further is spread over the whole operand.
  const auto target = vector.dims.size() <= dims.size() - axis ? dims.subspan(axis) : dims;
  const shape strides = broadcast_strides(vector.dims, target);
  std::vector<double> result(static_cast<size_t>(volume(target)));
  for (size_t i = 0; i < result.size(); ++i) {
    auto rest = static_cast<int64_t>(i);
    int64_t offset = 0;
    for (size_t a = target.size(); a-- > 0; rest /= target[a])
      offset += rest % target[a] * strides[a];
    result[i] = values[offset];
  }
  return result;
}

/// Centred: LayerNormalization; else RMSNormalization, whose mean counts as 0.
template <bool Centred>
void layer_norm(kernel_context& c) {
  const const_view& x = c.input(0);
  const size_t axis = normalize_axis(c.attrs().integer("axis", -1), x.dims.size());
  const int64_t rows = volume(x.dims.first(axis)), size = volume(x.dims.subspan(axis));
  const double epsilon = c.attrs().real("epsilon", 1e-5f);
  if (x.size() == 0)
    return;
  const std::vector<double> scale = spread(c.input(1), x.dims, axis);
  const std::vector<double> bias = c.has_input(2) ? spread(c.input(2), x.dims, axis) : std::vector<double>{0.0};
  visit_compute(x.type, [&]<class C>(type_tag<C>) {
    const read_as<C> in(x);
    write_as<C> out(c.output(0));
    write_as<double> means(optional_output(c, 1)), factors(optional_output(c, 2));
    parallel_for(rows, std::max<int64_t>(1, 8192 / size), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const C* from = in.data() + r * size;
        C* to = out.data() + r * size;
        double mean = 0, square = 0;
        for (int64_t i = 0; Centred && i < size; ++i)
          mean += from[i];
        mean /= static_cast<double>(size);
        for (int64_t i = 0; i < size; ++i)
          square += (from[i] - mean) * (from[i] - mean);
        const double factor = 1 / std::sqrt(square / static_cast<double>(size) + epsilon);
        const double* s = scale.data() + r * size % static_cast<int64_t>(scale.size());
        const double* b = bias.size() == 1 ? nullptr : bias.data() + r * size % static_cast<int64_t>(bias.size());
        for (int64_t i = 0; i < size; ++i)
          to[i] = static_cast<C>((from[i] - mean) * factor * s[i] + (b ? b[i] : bias[0]));
        if (means)
          means[r] = mean;
        if (factors)
          factors[r] = factor;
      }
    });
    out.commit();
    means.commit();
    factors.commit();
  });
}

/// About eight operations an element: two passes for the moments, one for the result.
constexpr auto layer_norm_cost = cost_per_input<8>;

void layer_norm_axes(call_axes& a) {
  const size_t rank = a.call().rank(0);
  a.keep(a.call().axis("axis", -1, rank), rank, {1, 2});
}

constexpr op_def layer_norm_row(int64_t since, int64_t until) {
  return op_row("LayerNormalization", since, infer_layer_norm, layer_norm<true>,
                {.until = until,
                 .inputs = {2, 3},
                 .max_outputs = 3,
                 .types = types::floats,
                 .cost = layer_norm_cost,
                 .axes = layer_norm_axes,
                 .mixes = "normalises over"});
}

constexpr auto layer_norm_rows = std::to_array<op_def>({
    layer_norm_row(1, 16), // ONNX Runtime's optimiser has written it into models since before ONNX had it
    layer_norm_row(17, op_def{}.until),
    op_row("RMSNormalization", 23, infer_layer_norm, layer_norm<false>,
           {.inputs = {2, 2},
            .types = types::floats,
            .cost = layer_norm_cost,
            .axes = layer_norm_axes,
            .mixes = "normalises over"}),
});

} // namespace

extern constinit const op_table onnx_layer_norm_ops = layer_norm_rows;

} // namespace troupe

// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.
//
//   loss[n, d…] = −w[t] · x[n, t, d…] with t = target[n, d…]; 0, and of weight 0, where t is ignore_index
//   reduction: none loss · sum Σ loss · mean Σ loss / Σ w[t], which is NaN where nothing counts
//
// x is [N, C, d…], target [N, d…] of int32 or int64, w [C] (absent: 1). SoftmaxCrossEntropyLoss is the loss of
// LogSoftmax over the channels. The loss has a kernel of its own, not a composition, because a target that is not a
// class must be an error: the indices of GatherElements may be negative, and a GPU clamps them. Sums are taken in
// double.
#include "ops/axes.hpp"
#include "ops/expansion.hpp"
#include "ops/infer.hpp"
#include "ops/operand.hpp"

namespace troupe {
namespace {

enum class loss_reduction : uint8_t { none, sum, mean };

loss_reduction loss_reduction_of(const attributes& attrs) {
  return word_as<loss_reduction>(attrs, "reduction", "mean", {"none", "sum", "mean"});
}

/// Throws unless the operands fit each other; returns the dims of a loss that is not reduced.
symbolic_shape check_loss_dims(const symbolic_shape& x, const symbolic_shape& target,
                               const std::optional<symbolic_shape>& weights) {
  require_rank(x.size(), 2, "the input");
  symbolic_shape positions = x;
  positions.erase(positions.begin() + 1);
  require_same_dims(target, positions, "targets, and the input without its classes");
  if (weights)
    require_same_dims(*weights, std::span(&x[1], 1), "weights and classes");
  return positions;
}

void infer_nll_loss(infer_context& c) {
  symbolic_shape positions =
      check_loss_dims(c.dims(0), c.dims(1), c.has_input(2) ? std::optional(c.dims(2)) : std::nullopt);
  if (!(set_of(dtype::int32, dtype::int64) & set_of(c.type(1))))
    fail(errc::invalid_model, "targets are int32 or int64, not {}", to_string(c.type(1)));
  if (c.has_input(2) && c.type(2) != c.type(0))
    fail(errc::invalid_model, "weights of type {} for an input of type {}", to_string(c.type(2)), to_string(c.type(0)));
  const bool reduced = loss_reduction_of(c.attrs()) != loss_reduction::none;
  c.set_output(0, c.type(0), reduced ? symbolic_shape{} : std::move(positions));
}

void nll_loss(kernel_context& c) {
  const const_view& x = c.input(0);
  check_loss_dims(to_symbolic(x.dims), to_symbolic(c.input(1).dims),
                  c.has_input(2) ? std::optional(to_symbolic(c.input(2).dims)) : std::nullopt);
  const loss_reduction reduction = loss_reduction_of(c.attrs());
  const int64_t classes = x.dims[1], inner = volume(x.dims.subspan(2));
  const bool ignores = c.attrs().has("ignore_index");
  const int64_t ignored = c.attrs().integer("ignore_index", 0);
  const std::vector<int64_t> targets = to_int64(c.input(1));
  visit_float(x.type, [&]<class T>(type_tag<T>) {
    const T *scores = x.as<T>(), *weights = c.has_input(2) ? c.input(2).as<T>() : nullptr;
    T* y = c.output(0).as<T>();
    double sum = 0, weight_sum = 0;
    for (int64_t i = 0; i < std::ssize(targets); ++i) {
      const int64_t t = targets[static_cast<size_t>(i)];
      double weight = 0, loss = 0;
      if (!ignores || t != ignored) {
        if (t < 0 || t >= classes)
          fail(errc::invalid_input, "target {} at position {} is neither one of the {} classes nor ignore_index", t, i,
               classes);
        weight = weights ? static_cast<double>(weights[t]) : 1;
        loss = -weight * static_cast<double>(scores[(i / inner * classes + t) * inner + i % inner]);
      }
      if (reduction == loss_reduction::none)
        y[i] = static_cast<T>(loss);
      sum += loss;
      weight_sum += weight;
    }
    if (reduction != loss_reduction::none)
      y[0] = static_cast<T>(reduction == loss_reduction::sum ? sum : sum / weight_sum);
  });
}

void expand_cross_entropy(expansion& e) {
  require_rank(e.rank(e.input(0)), 2, "the scores");
  const value_id log_prob = e.add("LogSoftmax", {e.input(0)}, attributes_of({{"axis", int64_t{1}}}));
  e.set_output(0, e.add("NegativeLogLikelihoodLoss", {log_prob, e.input(1), e.input(2)}, e.attrs()));
  e.set_output(1, log_prob);
}

/// A few operations for each target.
op_cost nll_loss_cost(const attributes&, const call_shapes& call) {
  return {4 * static_cast<double>(volume(call.inputs[1])), 0};
}

/// A loss for each position, whose class is along dim 1.
void nll_loss_axes(call_axes& a) {
  const loss_reduction reduction = loss_reduction_of(a.call().attrs());
  for (size_t axis = 0; axis < a.call().rank(1); ++axis) {
    const size_t scores = axis == 0 ? 0 : axis + 1;
    if (reduction == loss_reduction::none)
      a.map({{0, scores}, {1, axis}}, axis);
    else if (reduction == loss_reduction::sum)
      a.reduce({{0, scores}, {1, axis}}, combination::sum);
  }
}

constexpr auto loss_rows = std::to_array<op_def>({
    op_row("NegativeLogLikelihoodLoss", 12, infer_nll_loss, nll_loss,
           {.inputs = {2, 3},
            .types = types::floats,
            .needs_float32 = true,
            .cost = nll_loss_cost,
            .axes = nll_loss_axes,
            .mixes = "combines losses along"}),
    composition_row("SoftmaxCrossEntropyLoss", 12, expand_cross_entropy,
                    {.inputs = {2, 3}, .max_outputs = 2, .types = types::floats}),
});

} // namespace

extern constinit const op_table onnx_loss_ops = loss_rows;

} // namespace troupe

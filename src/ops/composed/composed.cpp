// Operators of ai.onnx that are compositions of others: AffineGrid, CausalConvWithState, CenterCropPad, SwiGLU.
//
//   AffineGrid: grid[n, (z,) y, x] = theta[n] · (x', y', (z',) 1), where a place i of m along an axis is (2i − (m − 1))
//               / m, or with align_corners / max(m − 1, 1)
//   CausalConvWithState: y[t] = act(b + Σ over taps k of w[k] · x[t − K + 1 + k]) by channel, where past_state is what
//               comes before x, zeros if it is absent; present_state is the last K − 1 columns of both
//   CenterCropPad: of the axes in `axes` (default all), the middle if they are too long, zeros around them if they are
//               too short; the odd element is left out, or comes, at the end
//   SwiGLU: a · sigmoid(alpha · a) · b
#include "ops/expansion.hpp"
#include "ops/infer.hpp"
#include "ops/movement.hpp"
#include "ops/operand.hpp"
#include "ops/strided_copy.hpp"

#include <numeric>

namespace troupe {
namespace {

/// Throws `errc::invalid_model` if a dim that a file states is negative.
void check_stated_dims(const std::vector<dim>& dims, const char* what) {
  for (const dim& d : dims)
    if (d.is_constant() && d.constant() < 0)
      fail(errc::invalid_model, "{} {} has a negative dim", what, to_string(dims));
}

// -- AffineGrid

/// Returns the places of `count` pixels in [−1, 1].
value_id grid_places(expansion& e, dtype type, const dim& count, bool align_corners) {
  const value_id twice = e.add("Mul", {e.range(count), e.known_scalar(2)});
  const value_id distance = e.add("Sub", {twice, e.known_scalar(count - 1)}); // from the middle, in half pixels
  const dim span = align_corners ? max(count - 1, 1) : count;
  return e.add("Div", {e.cast(distance, type), e.cast(e.known_scalar(span), type)});
}

/// The sum of theta's columns, each times the places of its axis: all but the last two additions work on less than the
/// grid.
void expand_affine_grid(expansion& e) {
  const std::vector<dim> size = e.call().require_known(1);
  if (size.size() != 4 && size.size() != 5)
    fail(errc::invalid_model, "size has {} elements; [N, C, H, W] or [N, C, D, H, W] is needed", size.size());
  check_stated_dims(size, "size");
  const size_t axes = size.size() - 2;
  const auto rows = static_cast<int64_t>(axes);
  require_same_dims(e.dims(e.input(0)), symbolic_shape{size[0], rows, rows + 1}, "theta and what size asks for");
  const dtype type = e.type(e.input(0)), work = type == dtype::float64 ? type : dtype::float32;
  const auto columns = e.add_all("Split", {e.cast(e.input(0), work)}, axes + 1,
                                 attributes_of({{"axis", int64_t{2}}, {"num_outputs", rows + 1}}));
  symbolic_shape column(axes + 2, 1);
  column.front() = size[0];
  column.back() = rows;
  const bool align_corners = e.attrs().integer("align_corners", 0) != 0;
  value_id grid = e.reshape(columns[axes], column);
  for (size_t i = axes; i-- > 0;) { // column i belongs to axis i, counted from the last
    const dim& count = size[size.size() - 1 - i];
    symbolic_shape along(i + 2, 1);
    along.front() = count;
    const value_id places = e.reshape(grid_places(e, work, count, align_corners), along);
    grid = e.add("Add", {grid, e.add("Mul", {e.reshape(columns[i], column), places})});
  }
  e.set_output(0, e.cast(grid, type));
}

// -- CausalConvWithState

value_id activate_causal_conv(expansion& e, value_id y) {
  return word_of(e.attrs(), "activation", "none", {"none", "silu", "swish"}) == "none" ? y : e.add("Swish", {y});
}

/// Without a past the convolution pads x itself, so that x is not copied.
void expand_causal_conv(expansion& e) {
  const value_id x = e.input(0), w = e.input(1), past = e.input(3);
  const symbolic_shape in = e.dims(x, 3), weights = e.dims(w, 3);
  require_same_dims(weights, symbolic_shape{in[1], 1, weights[2]}, "weights and [channels, 1, kernel]");
  if (!is_constant(weights))
    fail(errc::unsupported, "the weights' shape {} is symbolic", to_string(weights));
  const int64_t kept = weights[2].constant() - 1;
  if (kept < 0)
    fail(errc::invalid_model, "the weights {} have no taps", to_string(weights));
  attributes attrs = attributes_of({{"group", weights[0].constant()}});
  if (past == no_value) {
    attrs.set("pads", std::vector<int64_t>{kept, 0});
    e.set_output(0, activate_causal_conv(e, e.add("Conv", {x, w, e.input(2)}, std::move(attrs))));
    if (e.has_output(1)) // the pad is negative where x has more columns than are kept
      e.set_output(1, e.add("Pad", {x, e.known({0, 0, dim(kept) - in[2], 0, 0, 0})}));
    return;
  }
  require_same_dims(e.dims(past), symbolic_shape{in[0], in[1], kept}, "past_state and [batch, channels, kernel - 1]");
  const value_id both = e.add("Concat", {past, x}, attributes_of({{"axis", int64_t{2}}}));
  e.set_output(0, activate_causal_conv(e, e.add("Conv", {both, w, e.input(2)}, std::move(attrs))));
  if (e.has_output(1))
    e.set_output(1, e.add("Slice", {both, e.known({in[2]}), e.known({in[2] + dim(kept)}), e.known({2})}));
}

// -- CenterCropPad

/// One Pad, whose pads are negative where it crops.
void expand_center_crop_pad(expansion& e) {
  const symbolic_shape in = e.dims(e.input(0));
  const std::vector<dim> target = e.call().require_known(1);
  check_stated_dims(target, "the target shape");
  std::vector<int64_t> all(in.size());
  std::iota(all.begin(), all.end(), 0);
  const std::vector<size_t> axes = normalize_axes(e.attrs().integers("axes", std::move(all)), in.size());
  if (target.size() != axes.size())
    fail(errc::invalid_model, "the target shape {} is not for {} axes", to_string(target), axes.size());
  symbolic_shape pads(2 * in.size(), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const dim growth = target[i] - in[axes[i]];
    const dim before = floor_div(max(growth, 0), 2) - floor_div(max(dim(0) - growth, 0), 2);
    pads[axes[i]] = before;
    pads[in.size() + axes[i]] = growth - before;
  }
  e.set_output(0, e.add("Pad", {e.input(0), e.known(pads)}));
}

// -- SwiGLU

void expand_swiglu(expansion& e) {
  const value_id gate = e.add("Swish", {e.input(0)}, attributes_of({{"alpha", e.attrs().real("alpha", 1)}}));
  e.set_output(0, e.add("Mul", {gate, e.input(1)}));
}

// -- rows

constexpr auto composed_rows = std::to_array<op_def>({
    composition_row("AffineGrid", 20, expand_affine_grid,
                    {.inputs = {2, 2}, .types = types::floats, .host_inputs = 0b10}),
    composition_row("CausalConvWithState", 27, expand_causal_conv,
                    {.inputs = {2, 4}, .max_outputs = 2, .types = types::floats}),
    composition_row("CenterCropPad", 18, expand_center_crop_pad,
                    {.inputs = {2, 2}, .types = movable_types, .host_inputs = 0b10}),
    composition_row("SwiGLU", 28, expand_swiglu, {.inputs = {2, 2}, .types = types::floats}),
});

} // namespace

extern constinit const op_table composed_composed_ops = composed_rows;

} // namespace troupe

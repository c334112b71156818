// Operators that ai.onnx had as experiments up to opset 9, as ONNX Runtime still runs them; models of Caffe2 and of
// Windows ML have them. Files of later opsets may call them here, too.
//
//   Affine: alpha · x + beta                          ParametricSoftplus: alpha · ln(1 + exp(beta · x))
//   Scale: scale · x                                  ScaledTanh: alpha · tanh(beta · x)
//   ImageScaler: scale · x + bias[channel] of images [N, C, H, W]
//   Crop: images [N, C, H, W] without `border` (left, top, right, bottom); with `scale`, that height and width from
//     left and top on
//   DynamicSlice: Slice, all steps 1
#include "ops/expansion.hpp"
#include "ops/operand.hpp"
#include "ops/strided_copy.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Returns `factor` · v.
value_id scaled(expansion& e, value_id v, float factor) {
  return e.add("Mul", {v, e.scalar(e.type(v), factor)});
}

void expand_affine(expansion& e) {
  const value_id beta = e.scalar(e.type(e.input(0)), e.attrs().real("beta", 0));
  e.set_output(0, e.add("Add", {scaled(e, e.input(0), e.attrs().real("alpha", 1)), beta}));
}

void expand_scale(expansion& e) {
  e.set_output(0, scaled(e, e.input(0), e.attrs().real("scale", 1)));
}

constexpr char softplus[] = "Softplus", tanh_name[] = "Tanh";

/// alpha · Op(beta · x)
template <const char* Op>
void expand_parametric(expansion& e) {
  const float alpha = e.attrs().real("alpha"), beta = e.attrs().real("beta");
  e.set_output(0, scaled(e, e.add(Op, {scaled(e, e.input(0), beta)}), alpha));
}

void expand_image_scaler(expansion& e) {
  const dim channels = e.dims(e.input(0), 4)[1];
  const std::vector<float> bias = e.attrs().reals("bias", {});
  const int64_t count = std::ssize(bias);
  require_same(channels, count, "channels and elements of attribute 'bias'");
  const dtype type = e.type(e.input(0));
  const value_id by_channel = e.cast(e.constant(tensor::of<float>({count, 1, 1}, bias)), type);
  e.set_output(0, e.add("Add", {scaled(e, e.input(0), e.attrs().real("scale", 1)), by_channel}));
}

/// Returns attribute `name`: `count` sizes, each at least 0.
std::vector<int64_t> stated_sizes(const expansion& e, const char* name, size_t count) {
  std::vector<int64_t> sizes = e.attrs().integers(name, {});
  if (sizes.size() != count || std::any_of(sizes.begin(), sizes.end(), [](int64_t size) { return size < 0; }))
    fail(errc::invalid_model, "attribute '{}' is {}; {} sizes are needed", name, to_string(sizes), count);
  return sizes;
}

void expand_crop(expansion& e) {
  const symbolic_shape x = e.dims(e.input(0), 4);
  const std::vector<int64_t> border = stated_sizes(e, "border", 4);
  const bool has_sizes = e.attrs().has("scale");
  const std::vector<int64_t> sizes = has_sizes ? stated_sizes(e, "scale", 2) : std::vector<int64_t>(2);
  symbolic_shape begins, ends;
  for (const size_t axis : {size_t{0}, size_t{1}}) { // height, width
    const int64_t before = border[1 - axis], behind = border[3 - axis];
    const dim& size = x[axis + 2];
    const int64_t taken = has_sizes ? sizes[axis] : behind;
    if (size.is_constant() && before > size.constant() - taken)
      fail(errc::invalid_model, "an axis of {} elements cannot lose the first {} and {} {}", size.constant(), before,
           has_sizes ? "keep" : "lose", taken);
    begins.emplace_back(before);
    ends.push_back(has_sizes ? dim(before) + dim(sizes[axis]) : size - dim(behind));
  }
  e.set_output(0, e.add("Slice", {e.input(0), e.known(begins), e.known(ends), e.known({2, 3})}));
}

void expand_dynamic_slice(expansion& e) {
  e.set_output(0, e.add("Slice", {e.input(0), e.input(1), e.input(2), e.input(3)}));
}

constexpr auto experimental_rows = std::to_array<op_def>({
    composition_row("Affine", 1, expand_affine, {.types = types::floats}),
    composition_row("Crop", 1, expand_crop, {.types = movable_types}),
    composition_row("DynamicSlice", 1, expand_dynamic_slice, {.inputs = {3, 4}, .types = movable_types}),
    composition_row("ImageScaler", 1, expand_image_scaler, {.types = types::floats}),
    composition_row("ParametricSoftplus", 1, expand_parametric<softplus>, {.types = types::floats}),
    composition_row("Scale", 1, expand_scale, {.types = types::floats}),
    composition_row("ScaledTanh", 1, expand_parametric<tanh_name>, {.types = types::floats}),
});

} // namespace

extern constinit const op_table onnx_experimental_ops = experimental_rows;

} // namespace troupe

// Operators of com.microsoft that ai.onnx has too, under another name, with other operands or with fewer:
// CausalConvWithState, ExpandDims, GatherND, GridSample, LinearAttention, MatMulInteger16, Pad, Range, SampleOp,
// TransposeMatMul, Trilu, UnfoldTensor, Unique.
//
//   ExpandDims: Unsqueeze     SampleOp: x     TransposeMatMul: FusedMatMul
//   MatMulInteger16: MatMul of int16 operands in int32
//   Unique: in the order of appearance; results y, inverse, counts
//   UnfoldTensor: the windows of `size` elements along axis `dim`, one every `step`; a window's elements become the
//     last axis
#include "ops/expansion.hpp"
#include "ops/onnx/grid_sample.hpp"
#include "ops/strided_copy.hpp"

namespace troupe {
namespace {

constexpr char gather_nd_name[] = "GatherND", trilu_name[] = "Trilu", sample_name[] = "Identity",
               conv_name[] = "CausalConvWithState", attention_name[] = "LinearAttention";

void expand_expand_dims(expansion& e) {
  const std::vector<int64_t> axis = e.call().require_constants(1);
  if (axis.size() != 1)
    fail(errc::invalid_model, "the axis has {} elements instead of one", axis.size());
  e.set_output(0, e.add("Unsqueeze", {e.input(0), e.known({axis[0]})}));
}

void expand_grid_sample(expansion& e) {
  attributes attrs = e.attrs();
  const std::string mode = attrs.text("mode", "bilinear");
  if (mode == "bilinear")
    attrs.set("mode", std::string("linear"));
  else if (mode == "bicubic")
    attrs.set("mode", std::string("cubic"));
  if (mode == "bicubic" && attrs.text("padding_mode", "zeros") == "border")
    attrs.set("padding_mode", std::string(border_of_taps));
  e.set_output(0, e.add("GridSample", {e.input(0), e.input(1)}, std::move(attrs)));
}

void expand_matmul_integer16(expansion& e) {
  e.set_output(0, e.add("MatMul", {e.cast(e.input(0), dtype::int32), e.cast(e.input(1), dtype::int32)}));
}

/// Pads may be [1, 2 · rank] too.
void expand_pad(expansion& e) {
  const std::vector<dim> pads = e.call().require_known(1);
  e.set_output(0, e.add("Pad", {e.input(0), e.known(pads), e.input(2)}, e.attrs()));
}

void expand_range(expansion& e) {
  const auto single = [&](size_t i) {
    return e.has_input(i) ? e.reshape(e.input(i), {}) : e.scalar(e.type(e.input(0)), 1);
  };
  e.set_output(0, e.add("Range", {single(0), single(1), single(2)}));
}

void expand_transpose_matmul(expansion& e) {
  e.set_output(0, e.add("FusedMatMul", {e.input(0), e.input(1)}, e.attrs(), microsoft));
}

/// One Gather of all places of all windows.
void expand_unfold(expansion& e) {
  const symbolic_shape x = e.dims(e.input(0));
  const size_t axis = e.call().axis("dim", -1, x.size());
  const int64_t size = e.attrs().integer("size"), step = e.attrs().integer("step", 1);
  if (size < 1 || step < 1 || (x[axis].is_constant() && x[axis].constant() < size))
    fail(errc::invalid_model, "windows of {} every {} do not fit {}", size, step, x[axis].to_string());
  const dim count = floor_div(x[axis] - size, step) + 1;
  const value_id firsts = e.add("Mul", {e.range(count), e.known_scalar(step)});
  const value_id places = e.add("Add", {e.reshape(firsts, {count, 1}), e.range(size)});
  const auto at = static_cast<int64_t>(axis), rank = static_cast<int64_t>(x.size());
  std::vector<int64_t> order;
  for (int64_t i = 0; i <= rank; ++i)
    if (i != at + 1)
      order.push_back(i);
  order.push_back(at + 1);
  e.set_output(0, e.transpose(e.add("Gather", {e.input(0), places}, attributes_of({{"axis", at}})), std::move(order)));
}

void expand_unique(expansion& e) {
  const auto made = e.add_all("Unique", {e.input(0)}, 4, attributes_of({{"sorted", int64_t{0}}}));
  e.set_output(0, made[0]);
  e.set_output(1, made[2]);
  e.set_output(2, made[3]);
}

constexpr op_def plain_row(std::string_view name, void (*expand)(expansion&), operand_range inputs, dtype_set types,
                           uint32_t host_inputs = 0) {
  return composition_row(name, 1, expand,
                         {.domain = microsoft, .inputs = inputs, .types = types, .host_inputs = host_inputs});
}

constexpr auto contrib_plain_rows = std::to_array<op_def>({
    composition_row("CausalConvWithState", 1, expand_same<conv_name>,
                    {.domain = microsoft, .inputs = {2, 4}, .max_outputs = 2, .types = types::floats}),
    plain_row("ExpandDims", expand_expand_dims, {2, 2}, movable_types, 0b10),
    plain_row("GatherND", expand_same<gather_nd_name>, {2, 2}, movable_types),
    plain_row("GridSample", expand_grid_sample, {2, 2}, types::floats),
    composition_row("LinearAttention", 1, expand_same<attention_name>,
                    {.domain = microsoft, .inputs = {3, 6}, .max_outputs = 2, .types = types::floats}),
    plain_row("MatMulInteger16", expand_matmul_integer16, {2, 2}, set_of(dtype::int16)),
    plain_row("Pad", expand_pad, {2, 3}, movable_types, 0b10),
    plain_row("Range", expand_range, {2, 3}, types::numeric, 0b111),
    plain_row("SampleOp", expand_same<sample_name>, {1, 1}, types::floats),
    plain_row("TransposeMatMul", expand_transpose_matmul, {2, 2}, types::floats),
    plain_row("Trilu", expand_same<trilu_name>, {1, 2}, types::fixed_size),
    plain_row("UnfoldTensor", expand_unfold, {1, 1}, movable_types),
    composition_row("Unique", 1, expand_unique,
                    {.domain = microsoft, .max_outputs = 3, .types = set_of(dtype::float32)}),
});

} // namespace

extern constinit const op_table contrib_plain_ops = contrib_plain_rows;

} // namespace troupe

// Convolution with its epilogue, produced by fusion:
//
//   Y = act(conv(X, W) + B + residual)
//
// Inputs X, W, B?, residual? (of Y's dims); attributes of ONNX's Conv or ConvTranspose, and those of
// ops/activation.hpp. Inference and the reference kernel are those of the ONNX rows, followed by the epilogue.
#include "ops/activation.hpp"
#include "ops/axes.hpp"
#include "ops/epilogue.hpp"
#include "ops/families.hpp"
#include "ops/operand.hpp"
#include "ops/registry.hpp"
#include "ops/window.hpp"

namespace troupe {
namespace {

const op_def& onnx_row(std::string_view name) {
  const op_def* def = find_op("", name, newest_opset(""));
  expects(def != nullptr, "the operator table lacks a convolution");
  return *def;
}

template <const char* Name>
void infer_fused_conv(infer_context& c) {
  onnx_row(Name).infer(c);
  parse_activation(c.attrs());
  if (c.has_input(3))
    check_residual(c, 3);
}

template <const char* Name>
void fused_conv_reference(kernel_context& c) {
  std::array<const_view, 3> in{c.input(0), c.input(1), c.has_input(2) ? c.input(2) : const_view{}};
  std::array<mutable_view, 1> out{c.output(0)};
  kernel_context plain(c.attrs(), in, out);
  onnx_row(Name).reference(plain);
  apply_epilogue(c.output(0), c.has_input(3) ? c.input(3) : const_view{}, parse_activation(c.attrs()));
}

/// Two flops a product, from the weights' size and the positions they are applied at.
op_cost fused_conv_cost(const attributes&, const call_shapes& s) { // grouping is in the weights' shape
  return {conv_flops(s.inputs.at(1), s.outputs[0]), operand_bytes(s)};
}

constexpr char conv[] = "Conv";
constexpr char conv_transpose_name[] = "ConvTranspose";
constexpr size_t residual_input = 3;

void fused_conv_axes(call_axes& a) {
  axes::filters(a, 1, 0, {2}, residual_input);
  axes::windows(a, parse_filter(a.call().attrs(), a.call().dims(0), a.call().dims(1)), residual_input);
}

void fused_conv_transpose_axes(call_axes& a) {
  axes::filters(a, 1, 1, {2}, residual_input);
}

constexpr auto fused_conv_rows = std::to_array<op_def>({
    op_row("Conv", 1, infer_fused_conv<conv>, fused_conv_reference<conv>,
           {.domain = "troupe",
            .inputs = {2, 4},
            .types = types::floats,
            .layouts = layout_support::spatial,
            .residual_input = residual_input,
            .cost = fused_conv_cost,
            .axes = fused_conv_axes,
            .mixes = "sums over"}),
    op_row("ConvTranspose", 1, infer_fused_conv<conv_transpose_name>, fused_conv_reference<conv_transpose_name>,
           {.domain = "troupe",
            .inputs = {2, 4},
            .types = types::floats,
            .layouts = layout_support::spatial,
            .residual_input = residual_input,
            .cost = fused_conv_cost,
            .axes = fused_conv_transpose_axes,
            .mixes = "sums over"}),
});

} // namespace

extern constinit const op_table composed_fused_conv_ops = fused_conv_rows;

} // namespace troupe

#include "cpu/kernel_list.hpp"

#include "cpu/kernels.hpp"
#include "ops/registry.hpp"
#include "ops/scalar_formulas.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Besides these, every scalar function (ops/scalar_function.hpp) has make_elementwise.
constexpr auto rules = std::to_array<implementation<kernel_rule>>({
    {"", "Conv", {"winograd", make_winograd_conv}},
    {"", "Conv", {"pointwise_conv", make_pointwise_conv}},
    {"", "Conv", {"depthwise_conv", make_depthwise_conv}},
    {"", "Conv", {"panel_conv", make_panel_conv}},
    {"", "Conv", {"dnnl_conv", make_dnnl_conv}},
    {"troupe", "Conv", {"winograd", make_winograd_conv}},
    {"troupe", "Conv", {"pointwise_conv", make_pointwise_conv}},
    {"troupe", "Conv", {"depthwise_conv", make_depthwise_conv}},
    {"troupe", "Conv", {"panel_conv", make_panel_conv}},
    {"troupe", "Conv", {"dnnl_conv", make_dnnl_conv}},
    {"", "ConvTranspose", {"tiling_deconv", make_tiling_deconv}},
    {"", "ConvTranspose", {"dnnl_conv_transpose", make_dnnl_conv_transpose}},
    {"troupe", "ConvTranspose", {"tiling_deconv", make_tiling_deconv}},
    {"troupe", "ConvTranspose", {"dnnl_conv_transpose", make_dnnl_conv_transpose}},
    {"", "MatMul", {"gemv", make_gemv}},
    {"", "MatMul", {"panel_matmul", make_panel_matmul}},
    {"", "MatMul", {"dnnl_matmul", make_dnnl_matmul}},
    {"", "Gemm", {"gemv", make_gemv}},
    {"", "Gemm", {"panel_matmul", make_panel_matmul}},
    {"", "Gemm", {"dnnl_matmul", make_dnnl_matmul}},
    {"troupe", "MatMul", {"gemv", make_gemv}},
    {"troupe", "MatMul", {"panel_matmul", make_panel_matmul}},
    {"troupe", "MatMul", {"dnnl_matmul", make_dnnl_matmul}},
    {"", "MaxPool", {"max_pool", make_max_pool}},
    {"", "MaxPool", {"dnnl_pool", make_dnnl_pool}},
    {"", "AveragePool", {"pixel_mean", make_pixel_mean}},
    {"", "AveragePool", {"dnnl_pool", make_dnnl_pool}},
    {"", "GlobalMaxPool", {"max_pool", make_max_pool}},
    {"", "GlobalAveragePool", {"plane_mean", make_plane_mean}},
    {"troupe", "Reorder", {"channel_interleave", make_channel_interleave}},
    {"troupe", "Reorder", {"dnnl_reorder", make_dnnl_reorder}},
    {"troupe", "Attention", {"attention", make_attention}},
    {"", "Attention", {"attention.onnx", make_onnx_attention}},
    {"troupe", "AttentionProjection", {"attention.projection", make_attention_projection}},
    {"", "Softmax", {"softmax", make_softmax}},
    {"", "LayerNormalization", {"row_norm", make_row_norm}},
    {"", "RMSNormalization", {"row_norm", make_row_norm}},
    {"", "InstanceNormalization", {"group_norm", make_group_norm}},
    {"", "GroupNormalization", {"group_norm", make_group_norm}},
    {"troupe", "InstanceNormalization", {"group_norm", make_group_norm}},
    {"troupe", "GroupNormalization", {"group_norm", make_group_norm}},
    {"", "Concat", {"channels_last_concat", make_channels_last_concat}},
    {"", "LSTM", {"lstm", make_lstm}},
    {"", "GRU", {"gru", make_gru}},
    {"", "RNN", {"rnn", make_rnn}},
    {"troupe", "Elementwise", {"elementwise", make_elementwise}},
    {"", "ConvInteger", {"int8_depthwise", make_int8_depthwise}},
    {"", "ConvInteger", {"int8_conv", make_int8_conv}},
    {"", "QLinearConv", {"int8_depthwise", make_int8_depthwise}},
    {"", "QLinearConv", {"int8_conv", make_int8_conv}},
    {"troupe", "QuantizedConv", {"int8_sum", make_int8_sum}},
    {"troupe", "QuantizedConv", {"int8_depthwise", make_int8_depthwise}},
    {"troupe", "QuantizedConv", {"int8_conv", make_int8_conv}},
    {"", "MatMulInteger", {"int8_matmul", make_int8_matmul}},
    {"", "QLinearMatMul", {"int8_matmul", make_int8_matmul}},
    {"troupe", "QuantizedMatMul", {"int8_sum", make_int8_sum}},
    {"troupe", "QuantizedMatMul", {"int8_matmul", make_int8_matmul}},
    {"troupe", "QuantizedElementwise", {"int8_elementwise", make_int8_elementwise}},
    {"", "QuantizeLinear", {"quantize", make_quantize}},
    {"", "DynamicQuantizeLinear", {"dynamic_quantize", make_dynamic_quantize}},
    {"com.microsoft", "MatMulNBits", {"matmul_nbits", make_matmul_nbits}},
    {"troupe", "Projections", {"projections", make_projections}},
});

/// The kernel of last resort: the operator's own plain loops.
class reference_kernel final : public kernel {
public:
  explicit reference_kernel(const kernel_request& request) : call_(request.call) {
    for (const operand& o : request.inputs) {
      input_dims_.push_back(o.dims);
      inputs_.push_back({o.type, {}, nullptr});
    }
    for (const operand& o : request.outputs) {
      output_dims_.push_back(o.dims);
      outputs_.push_back({o.type, {}, nullptr});
      unsized_.push_back(o.unsized);
      any_unsized_ |= o.unsized;
    }
    for (size_t i = 0; i < inputs_.size(); ++i)
      inputs_[i].dims = input_dims_[i];
    for (size_t i = 0; i < outputs_.size(); ++i)
      outputs_[i].dims = output_dims_[i];
  }

  void run(const kernel_run& r) override {
    for (size_t i = 0; i < inputs_.size(); ++i)
      inputs_[i].data = r.in[i];
    for (size_t i = 0; i < outputs_.size(); ++i)
      outputs_[i].data = unsized_[i] ? nullptr : r.out[i]; // what the slot holds is of an earlier run
    kernel_context context(call_.attrs, inputs_, outputs_);
    call_.def->reference(context);
    if (any_unsized_)
      take_allocated(context, r);
  }

private:
  void take_allocated(const kernel_context& context, const kernel_run& r) {
    for (size_t i = 0; i < outputs_.size(); ++i)
      if (unsized_[i]) {
        r.allocated[i] = context.allocated(i);
        outputs_[i].dims = {}; // the context had it point into its own tensor
      }
  }

  const node& call_;
  std::vector<shape> input_dims_, output_dims_;
  std::vector<const_view> inputs_;
  std::vector<mutable_view> outputs_;
  std::vector<bool> unsized_;
  bool any_unsized_ = false;
};

/// Moves the elements of one operand between the two layouts.
void reorder_elements(const operand& o, layout to, const void* from, void* into) {
  attributes attrs;
  attrs.set("to", std::string(to == layout::channels_last ? "channels_last" : "plain"));
  const const_view in{o.type, o.dims, from};
  mutable_view out{o.type, o.dims, into};
  kernel_context reorder(attrs, {&in, 1}, {&out, 1});
  find_op("troupe", "Reorder", 1)->reference(reorder);
}

/// Runs a kernel that knows only plain operands between reorders: slow, but every layout has a kernel for every
/// operator.
class plain_adapter final : public kernel {
public:
  explicit plain_adapter(const kernel_request& request) : request_(request), copies_(operands()) {
    kernel_request plain = request;
    for (operand& o : plain.inputs)
      o.layout = layout::plain;
    for (operand& o : plain.outputs)
      o.layout = layout::plain;
    inner_ = choose_kernel(plain).run;
    for (size_t i = 0; i < operands(); ++i)
      if (at(i).layout == layout::channels_last)
        copies_[i] = tensor(at(i).type, at(i).dims);
  }

  bool reads(size_t i) const override { return inner_->reads(i); }

  void run(const kernel_run& r) override {
    std::vector<const void*> in(r.in, r.in + request_.inputs.size());
    std::vector<void*> out(r.out, r.out + request_.outputs.size());
    for (size_t i = 0; i < in.size(); ++i)
      if (copies_[i].defined()) {
        reorder_elements(at(i), layout::plain, in[i], copies_[i].mutable_data());
        in[i] = copies_[i].data();
      }
    for (size_t i = 0; i < out.size(); ++i)
      if (copies_[in.size() + i].defined())
        out[i] = copies_[in.size() + i].mutable_data();
    inner_->run({in.data(), out.data(), r.allocated});
    for (size_t i = 0; i < out.size(); ++i)
      if (copies_[in.size() + i].defined())
        reorder_elements(request_.outputs[i], layout::channels_last, out[i], r.out[i]);
  }

private:
  size_t operands() const { return request_.inputs.size() + request_.outputs.size(); }
  const operand& at(size_t i) const {
    return i < request_.inputs.size() ? request_.inputs[i] : request_.outputs[i - request_.inputs.size()];
  }

  const kernel_request request_;
  std::vector<tensor> copies_; // plain forms of the operands that are not
  kernel_ptr inner_;
};

/// An elementwise operator does not care in which order elements are, as long as all operands agree.
bool reference_takes(const kernel_request& request) {
  const layout_support layouts = request.call.def->layouts;
  if (request.all_plain() || layouts == layout_support::converting)
    return true;
  if (!is_elementwise(layouts))
    return false;
  const operand& out = request.outputs.at(0);
  const auto agrees = [&](const operand& o) {
    return !o.present() || o.size() == 1 || (o.layout == out.layout && o.dims == out.dims);
  };
  return std::all_of(request.inputs.begin(), request.inputs.end(), agrees) &&
         std::all_of(request.outputs.begin(), request.outputs.end(), agrees);
}

} // namespace

bool kernel_request::all_of_type(dtype type) const {
  const auto fits = [&](const operand& o) { return !o.present() || o.type == type; };
  return std::all_of(inputs.begin(), inputs.end(), fits) && std::all_of(outputs.begin(), outputs.end(), fits);
}

bool kernel_request::all_plain() const {
  const auto fits = [](const operand& o) { return o.layout == layout::plain; };
  return std::all_of(inputs.begin(), inputs.end(), fits) && std::all_of(outputs.begin(), outputs.end(), fits);
}

layout kernel_request::layout_of(const operand& o) const {
  if (!same_in_both_layouts(o.dims) || o.dims.size() < 3)
    return o.layout;
  const auto is_last = [](const operand& other) { return other.layout == layout::channels_last; };
  const bool any =
      std::any_of(inputs.begin(), inputs.end(), is_last) || std::any_of(outputs.begin(), outputs.end(), is_last);
  return any ? layout::channels_last : layout::plain;
}

const implementation_table<kernel_rule>& kernel_table() {
  static const auto& table = *new implementation_table<kernel_rule>([] { // never destroyed, as the registry
    std::vector all(rules.begin(), rules.end());
    for (const scalar_function& f : scalar_functions)
      if (f.since > 0 && takes<float>(f))
        all.push_back({f.domain, f.name, {"elementwise", make_elementwise}, f.since});
    return all;
  }());
  return table;
}

chosen_kernel choose_kernel(const kernel_request& request) {
  for (const kernel_rule& rule : kernel_table().of(*request.call.def))
    if (kernel_ptr k = rule.make(request))
      return {std::move(k), rule.name};
  if (!request.call.def->reference)
    fail(errc::unsupported, "{}: the CPU device has no kernel", describe(request.call));
  if (!reference_takes(request))
    return {std::make_unique<plain_adapter>(request), "adapted"};
  return {std::make_unique<reference_kernel>(request), "reference"};
}

} // namespace troupe

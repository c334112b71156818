#include "cpu/kernel_list.hpp"

#include "cpu/kernels.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr auto rows = std::to_array<kernel_row>({
    {"", "Conv", "dnnl_conv", make_dnnl_conv},
    {"troupe", "Conv", "dnnl_conv", make_dnnl_conv},
    {"", "ConvTranspose", "dnnl_conv_transpose", make_dnnl_conv_transpose},
    {"troupe", "ConvTranspose", "dnnl_conv_transpose", make_dnnl_conv_transpose},
    {"", "MatMul", "gemv", make_gemv},
    {"", "MatMul", "dnnl_matmul", make_dnnl_matmul},
    {"", "Gemm", "gemv", make_gemv},
    {"", "Gemm", "dnnl_matmul", make_dnnl_matmul},
    {"troupe", "MatMul", "gemv", make_gemv},
    {"troupe", "MatMul", "dnnl_matmul", make_dnnl_matmul},
    {"", "MaxPool", "dnnl_pool", make_dnnl_pool},
    {"", "AveragePool", "dnnl_pool", make_dnnl_pool},
    {"", "GlobalMaxPool", "dnnl_pool", make_dnnl_pool},
    {"", "GlobalAveragePool", "dnnl_pool", make_dnnl_pool},
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

/// An elementwise operator does not care in which order elements lie, as long as all operands agree.
bool reference_takes(const kernel_request& request) {
  if (request.all_plain())
    return true;
  if (request.call.def->layouts != layout_support::agnostic)
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

std::span<const kernel_row> kernel_rows() {
  return rows;
}

chosen_kernel choose_kernel(const kernel_request& request) {
  for (const kernel_row& row : rows)
    if (row.op == request.call.op_type && row.domain == request.call.domain)
      if (kernel_ptr k = row.make(request))
        return {std::move(k), row.name};
  if (!request.call.def->reference)
    fail(errc::unsupported, "{}: the CPU device has no kernel", describe(request.call));
  if (!reference_takes(request))
    fail(errc::internal, "{}: no CPU kernel takes these layouts", describe(request.call));
  return {std::make_unique<reference_kernel>(request), "reference"};
}

} // namespace troupe

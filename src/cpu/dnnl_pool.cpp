// Pooling through oneDNN: MaxPool of bytes (values only) and AveragePool of floats. Others: pool.cpp.
#include "cpu/dnnl_call.hpp"
#include "cpu/kernels.hpp"
#include "ops/onnx/pool.hpp"

#include <functional>
#include <numeric>

namespace troupe {
namespace {

class dnnl_pool_kernel final : public kernel {
public:
  dnnl_pool_kernel(const kernel_request& r, dnnl::algorithm kind, const dnn::window_dims& window) {
    const auto x = dnn::describe(r.inputs[0].dims, r.layout_of(r.inputs[0]), r.inputs[0].type);
    const auto y = dnn::describe(r.outputs[0].dims, r.layout_of(r.outputs[0]), r.inputs[0].type);
    const auto desc = dnn::pooling(dnn::engine(), kind, x, y, window, dnn::user_scratchpad());
    call_ = dnn::call(primitive_of(desc), desc.scratchpad_desc(), r.resources.scratch);
    x_ = call_.add(DNNL_ARG_SRC, x);
    y_ = call_.add(DNNL_ARG_DST, y);
  }

  void run(const kernel_run& r) override {
    call_.set(x_, r.in[0]);
    call_.set(y_, r.out[0]);
    call_.run();
  }

private:
  static dnnl::primitive primitive_of(const dnnl::primitive_desc_base& desc) { return dnnl::primitive(desc.get()); }

  dnn::call call_;
  size_t x_ = 0, y_ = 0;
};

/// Pads as the windows reach: oneDNN wants the exact number. False if an average would count padding differently.
bool fill(const window_spec& spec, const window_axes& axes, bool include_pad, dnn::window_dims& w) {
  for (size_t i = 0; i < spec.rank(); ++i) {
    const window_axis& a = axes[3 - spec.rank() + i];
    const int64_t reach = (a.out - 1) * a.stride + (a.kernel - 1) * a.dilation + 1 - a.in - a.pad_begin;
    if (include_pad && reach > a.pad_end)
      return false; // a window that hangs over the padding counts less
    w.kernel.push_back(a.kernel);
    w.strides.push_back(a.stride);
    w.dilations.push_back(a.dilation - 1);
    w.pad_begin.push_back(a.pad_begin);
    w.pad_end.push_back(reach);
    // oneDNN does not define a window without any input.
    if (a.pad_begin >= (a.kernel - 1) * a.dilation + 1 || reach >= (a.kernel - 1) * a.dilation + 1)
      return false;
  }
  return true;
}

kernel_ptr make_pool(const kernel_request& r, dnnl::algorithm kind, const window_spec& spec) {
  const shape& x = r.inputs[0].dims;
  if (r.has_output(1) || x.size() < 3 || x.size() > 5 || volume(x) == 0 || volume(r.outputs[0].dims) == 0)
    return nullptr;
  dnn::window_dims window;
  const bool include_pad = kind == dnnl::algorithm::pooling_avg_include_padding;
  if (!fill(spec, bind_window(spec, std::span(x).subspan(2)), include_pad, window))
    return nullptr;
  return dnn::try_make([&] { return std::make_unique<dnnl_pool_kernel>(r, kind, window); });
}

window_spec window_of(const kernel_request& r) {
  return parse_window(r.call.attrs, r.call.attrs.integers("kernel_shape"));
}

} // namespace

kernel_ptr make_dnnl_pool(const kernel_request& r) {
  const dtype type = r.inputs[0].type;
  if (r.call.op_type == "MaxPool")
    return type == dtype::int8 || type == dtype::uint8 ? make_pool(r, dnnl::algorithm::pooling_max, window_of(r))
                                                       : nullptr;
  // It adds one after the other, and an error grows with the terms.
  constexpr double most_terms = 1024;
  const window_spec spec = window_of(r);
  if (type != dtype::float32 ||
      std::accumulate(spec.kernel.begin(), spec.kernel.end(), 1.0, std::multiplies()) > most_terms)
    return nullptr;
  const bool include_pad = r.call.attrs.integer("count_include_pad", 0) != 0;
  return make_pool(
      r, include_pad ? dnnl::algorithm::pooling_avg_include_padding : dnnl::algorithm::pooling_avg_exclude_padding,
      spec);
}

} // namespace troupe

// Convolution and transposed convolution through oneDNN: Y = act(conv(X, W) + B + residual).
//
// Weights are packed into the format that oneDNN likes best: constant ones once, others before each run, because
// oneDNN's kernels for plain weights are slower by two orders of magnitude. The residual is added as a binary post-op,
// so it may be anywhere. A ConvTranspose that states its output's shape is left to the reference kernel.
#include "base/round_up.hpp"
#include "cpu/dnnl_call.hpp"
#include "cpu/kernels.hpp"
#include "ops/window.hpp"

namespace troupe {
namespace {

using dnn::memory_desc;

struct conv_operands {
  memory_desc x, w_plain, w, bias, y;
};

/// Packs weights that are computed into a part of the device's scratch, before each run.
class repacking {
public:
  repacking() = default;
  /// The packed weights are after the first `reserved` bytes of the scratch, which the convolution itself uses.
  repacking(const memory_desc& from, const memory_desc& to, size_t reserved, scratch_buffer& scratch)
      : scratch_(&scratch) {
    const dnnl::engine& e = dnn::engine();
    const dnnl::reorder::primitive_desc desc(e, from, e, to, dnn::user_scratchpad());
    call_ = dnn::call(dnnl::reorder(desc), desc.scratchpad_desc(), scratch);
    from_ = call_.add(DNNL_ARG_FROM, from);
    to_ = call_.add(DNNL_ARG_TO, to);
    constexpr int64_t line = 64;
    offset_ = round_up(static_cast<int64_t>(std::max(reserved, desc.scratchpad_desc().get_size())), line);
    scratch.reserve(offset_ + static_cast<int64_t>(to.get_size()));
  }

  /// Returns where the packed weights are, until the scratch is used again.
  const void* run(const void* weights) {
    void* packed = static_cast<uint8_t*>(scratch_->data()) + offset_;
    call_.set(from_, weights);
    call_.set(to_, packed);
    call_.run();
    return packed;
  }

private:
  dnn::call call_;
  scratch_buffer* scratch_ = nullptr;
  size_t from_ = 0, to_ = 0;
  int64_t offset_ = 0;
};

/// Weights with the groups as a dim of their own: oneDNN wants [G, O / G, I / G, kernel…] with one group left out.
memory_desc grouped_weights(const shape& dims, int64_t groups, bool transposed) {
  const int64_t rows = dims[0] / groups;
  shape split{groups, rows};
  split.insert(split.end(), dims.begin() + 1, dims.end());
  shape strides = strides_of(split);
  if (transposed) { // stored [I, O / G, …]
    std::swap(split[1], split[2]);
    std::swap(strides[1], strides[2]);
  }
  const size_t skip = groups == 1 ? 1 : 0;
  return {dnn::dims(split.begin() + skip, split.end()), dnnl::memory::data_type::f32,
          dnn::dims(strides.begin() + skip, strides.end())};
}

/// The same dims in whatever format the library likes best.
memory_desc any_weights(const shape& weights, int64_t groups, bool transposed) {
  shape split{groups, weights[0] / groups};
  split.insert(split.end(), weights.begin() + 1, weights.end());
  if (transposed)
    std::swap(split[1], split[2]);
  if (groups == 1)
    split.erase(split.begin());
  return dnn::describe_any(split);
}

/// The implementation by matrix products adds a residual at the wrong places if the output is channels-last (oneDNN
/// 2.6.3; processors without AVX2, weights that are computed, windows beside the input).
constexpr std::string_view wrong_residuals = "gemm";

class dnnl_conv_kernel final : public kernel {
public:
  dnnl_conv_kernel(const kernel_request& r, bool transposed, const dnn::window_dims& window)
      : end_(parse_activation(r.call.attrs)), size_(r.outputs[0].size()) {
    const int64_t groups = r.call.attrs.integer("group", 1);
    conv_operands d;
    d.x = dnn::describe(r.inputs[0].dims, r.layout_of(r.inputs[0]));
    d.y = dnn::describe(r.outputs[0].dims, r.layout_of(r.outputs[0]));
    d.w_plain = grouped_weights(r.inputs[1].dims, groups, transposed);
    constant_ = r.inputs[1].constant != nullptr;
    d.w = any_weights(r.inputs[1].dims, groups, transposed);
    if (r.has_input(2))
      d.bias = dnn::describe(r.inputs[2].dims);
    dnnl::post_ops ops;
    const bool residual = r.has_input(3);
    if (residual)
      ops.append_binary(dnnl::algorithm::binary_add, dnn::describe(r.inputs[3].dims, r.layout_of(r.inputs[3])));
    const bool last = r.layout_of(r.outputs[0]) == layout::channels_last;
    const std::string_view without = residual && last ? wrong_residuals : std::string_view();
    const dnnl::engine& e = dnn::engine();
    const auto described = [&](auto describe, const dnnl::post_ops& all) {
      return describe(e, d.x, d.w, d.bias, d.y, window, dnn::user_scratchpad(all), without);
    };
    if (transposed) // all its implementations end results by oneDNN's plain functions (`ends_plainly`)
      bind<dnnl::deconvolution_forward>(r, described(dnn::deconvolution, ops), d);
    else
      bind<dnnl::convolution_forward>(
          r, dnn::make_ended(ops, end_, [&](const dnnl::post_ops& all) { return described(dnn::convolution, all); }),
          d);
    if (residual)
      residual_ = call_.add(DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1,
                            dnn::describe(r.inputs[3].dims, r.layout_of(r.inputs[3])));
  }

  bool reads(size_t i) const override { return i != 1 || !constant_; }

  void run(const kernel_run& r) override {
    call_.set(x_, r.in[0]);
    call_.set(y_, r.out[0]);
    if (!constant_)
      call_.set(w_, repack_ ? repack_->run(r.in[1]) : r.in[1]);
    if (bias_ != SIZE_MAX)
      call_.set(bias_, r.in[2]);
    if (residual_ != SIZE_MAX)
      call_.set(residual_, r.in[3]);
    call_.run();
    dnn::end_result(end_, r.output<float>(0), size_);
  }

private:
  template <class Primitive, class Desc>
  void bind(const kernel_request& r, Desc desc, const conv_operands& d) {
    call_ = dnn::call(Primitive(desc), desc.scratchpad_desc(), r.resources.scratch);
    x_ = call_.add(DNNL_ARG_SRC, desc.src_desc());
    y_ = call_.add(DNNL_ARG_DST, desc.dst_desc());
    if (constant_)
      weights_ = dnn::pack(r.resources.weights, r.inputs[1].constant, d.w_plain, desc.weights_desc());
    else if (desc.weights_desc() != d.w_plain)
      repack_.emplace(d.w_plain, desc.weights_desc(), desc.scratchpad_desc().get_size(), r.resources.scratch);
    w_ = call_.add(DNNL_ARG_WEIGHTS, desc.weights_desc(), constant_ ? weights_->data() : nullptr);
    if (r.has_input(2))
      bias_ = call_.add(DNNL_ARG_BIAS, d.bias);
  }

  activation end_; // that oneDNN does not do
  int64_t size_;
  dnn::call call_;
  bool constant_;
  weight_cache::handle weights_;    // of constant weights
  std::optional<repacking> repack_; // of others, if oneDNN wants another format
  size_t x_ = 0, y_ = 0, w_ = 0, bias_ = SIZE_MAX, residual_ = SIZE_MAX;
};

bool takes(const kernel_request& r) {
  if (!r.all_of_type(dtype::float32) || r.inputs[0].dims.size() < 3 || r.inputs[0].dims.size() > 5)
    return false;
  const bool plain_weights = r.inputs[1].layout == layout::plain;
  const bool empty = volume(r.inputs[0].dims) == 0 || volume(r.outputs[0].dims) == 0 || volume(r.inputs[1].dims) == 0;
  return plain_weights && !empty && (!r.has_input(2) || r.inputs[2].layout == layout::plain);
}

dnn::window_dims to_dims(const window_spec& spec) {
  dnn::window_dims w;
  w.kernel.assign(spec.kernel.begin(), spec.kernel.end());
  w.strides.assign(spec.strides.begin(), spec.strides.end());
  for (int64_t d : spec.dilations)
    w.dilations.push_back(d - 1);
  return w;
}

} // namespace

kernel_ptr make_dnnl_conv(const kernel_request& r) {
  if (!takes(r))
    return nullptr;
  const shape &x = r.inputs[0].dims, &weights = r.inputs[1].dims;
  const window_spec spec = parse_window(r.call.attrs, shape(weights.begin() + 2, weights.end()));
  const window_axes axes = bind_window(spec, std::span(x).subspan(2));
  dnn::window_dims window = to_dims(spec);
  for (size_t i = 3 - spec.rank(); i < 3; ++i) {
    const window_axis& a = axes[i];
    window.pad_begin.push_back(a.pad_begin);
    // What the windows reach, which may be less than what the model states: oneDNN wants the exact number.
    window.pad_end.push_back((a.out - 1) * a.stride + (a.kernel - 1) * a.dilation + 1 - a.in - a.pad_begin);
  }
  return dnn::try_make([&] { return std::make_unique<dnnl_conv_kernel>(r, false, window); });
}

kernel_ptr make_dnnl_conv_transpose(const kernel_request& r) {
  if (!takes(r) || r.call.attrs.has("output_shape") || parse_auto_pad(r.call.attrs) != auto_pad::notset)
    return nullptr;
  const shape &x = r.inputs[0].dims, &weights = r.inputs[1].dims, &y = r.outputs[0].dims;
  const window_spec spec = parse_window(r.call.attrs, shape(weights.begin() + 2, weights.end()));
  dnn::window_dims window = to_dims(spec);
  for (size_t i = 0; i < spec.rank(); ++i) {
    window.pad_begin.push_back(spec.pads[i]);
    window.pad_end.push_back((x[i + 2] - 1) * spec.strides[i] + spec.extent(i) - spec.pads[i] - y[i + 2]);
  }
  return dnn::try_make([&] { return std::make_unique<dnnl_conv_kernel>(r, true, window); });
}

} // namespace troupe

// Matrix products through oneDNN: those that are not of one constant matrix, or are scaled.
#include "cpu/dnnl_call.hpp"
#include "cpu/kernels.hpp"
#include "cpu/product.hpp"

namespace troupe {
namespace {

using dnn::memory_desc;

/// Returns a stack of matrices [batch…, rows, columns], stored transposed or not.
memory_desc describe_matrices(const shape& batch, int64_t rows, int64_t columns, bool transposed) {
  shape dims = batch;
  dims.push_back(transposed ? columns : rows);
  dims.push_back(transposed ? rows : columns);
  shape strides = strides_of(dims);
  if (transposed) {
    std::swap(dims[dims.size() - 2], dims.back());
    std::swap(strides[strides.size() - 2], strides.back());
  }
  return {dnn::dims(dims.begin(), dims.end()), dnnl::memory::data_type::f32, dnn::dims(strides.begin(), strides.end())};
}

memory_desc any_of(const memory_desc& md) {
  return {dnn::dims_of(md), dnnl::memory::data_type::f32, dnnl::memory::format_tag::any};
}

class dnnl_matmul_kernel final : public kernel {
public:
  dnnl_matmul_kernel(const kernel_request& r, const product_call& p) : p_(p) {
    const memory_desc a = describe_matrices(p.batch_a, p.m, p.k, p.trans_a);
    const memory_desc b = describe_matrices(p.batch_b, p.k, p.n, p.trans_b);
    const memory_desc y = describe_matrices(p.batch, p.m, p.n, false);
    const memory_desc bias = describe_matrices(shape(p.batch.size(), 1), 1, p.n, false);
    packed_ = r.inputs[1].constant && p.batch_b.empty();
    dnnl::post_ops ops;
    std::vector<std::pair<size_t, memory_desc>> binaries; // input and descriptor, by post-op
    int position = 0;
    if (p.alpha != 1) {
      dnn::append_eltwise(ops, dnnl::algorithm::eltwise_linear, p.alpha, 0);
      ++position;
    }
    // A scaled product takes its bias after the scaling.
    const bool late_bias = p.bias != SIZE_MAX && p.alpha != 1;
    const int first_binary = position;
    if (late_bias)
      binaries.emplace_back(p.bias, bias);
    if (p.residual != SIZE_MAX)
      binaries.emplace_back(p.residual, y);
    for (const auto& [input, md] : binaries)
      ops.append_binary(dnnl::algorithm::binary_add, md);
    const bool fused_bias = p.bias != SIZE_MAX && !late_bias;
    end_ = p.act;
    const auto desc = dnn::make_ended(ops, end_, [&](const dnnl::post_ops& all) {
      return dnn::matmul(dnn::engine(), a, packed_ ? any_of(b) : b, fused_bias ? bias : memory_desc(), y,
                         dnn::user_scratchpad(all));
    });
    call_ = dnn::call(dnnl::matmul(desc), desc.scratchpad_desc(), r.resources.scratch);
    a_ = call_.add(DNNL_ARG_SRC, a);
    y_ = call_.add(DNNL_ARG_DST, y);
    if (packed_)
      weights_ = dnn::pack(r.resources.weights, r.inputs[1].constant, b, desc.weights_desc());
    b_ = call_.add(DNNL_ARG_WEIGHTS, desc.weights_desc(), packed_ ? weights_->data() : nullptr);
    if (fused_bias)
      others_.emplace_back(p.bias, call_.add(DNNL_ARG_BIAS, bias));
    for (size_t i = 0; i < binaries.size(); ++i)
      others_.emplace_back(
          binaries[i].first,
          call_.add(DNNL_ARG_ATTR_MULTIPLE_POST_OP(first_binary + static_cast<int>(i)) | DNNL_ARG_SRC_1,
                    binaries[i].second));
  }

  bool reads(size_t i) const override { return i != 1 || !packed_; }

  void run(const kernel_run& r) override {
    call_.set(a_, r.in[0]);
    call_.set(y_, r.out[0]);
    if (!packed_)
      call_.set(b_, r.in[1]);
    for (const auto& [input, index] : others_)
      call_.set(index, r.in[input]);
    call_.run();
    dnn::end_result(end_, r.output<float>(0), volume(p_.batch) * p_.m * p_.n);
  }

private:
  const product_call p_;
  activation end_; // that oneDNN does not do
  dnn::call call_;
  bool packed_;
  weight_cache::handle weights_;
  size_t a_ = 0, b_ = 0, y_ = 0;
  std::vector<std::pair<size_t, size_t>> others_; // input, operand of the call
};

} // namespace

kernel_ptr make_dnnl_matmul(const kernel_request& r) {
  const auto p = parse_product(r);
  if (!p || p->batch.size() > 4)
    return nullptr;
  return dnn::try_make([&] { return std::make_unique<dnnl_matmul_kernel>(r, *p); });
}

} // namespace troupe

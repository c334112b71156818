#include "cpu/product.hpp"

namespace troupe {
namespace {

/// Gemm's C as a bias or residual; false where it is neither, or scaled.
bool take_gemm_bias(const kernel_request& r, product_call& p) {
  if (!r.has_input(2))
    return true;
  const shape& dims = r.inputs[2].dims;
  if (r.call.attrs.real("beta", 1) != 1)
    return false;
  if (dims == shape{p.n} || dims == shape{1, p.n})
    p.bias = 2;
  else if (dims == shape{p.m, p.n})
    p.residual = 2;
  else
    return false;
  return true;
}

shape aligned(std::span<const int64_t> batch, size_t rank) {
  shape dims(rank - batch.size(), 1);
  dims.insert(dims.end(), batch.begin(), batch.end());
  return dims;
}

/// Whether the operands fit each other; symbolic dims have not been compared before. The reference kernel reports
/// what is wrong.
bool fits(const kernel_request& r, const product_call& p) {
  const shape &b = r.inputs[1].dims, &y = r.outputs[0].dims;
  const auto holds = [&](size_t input, int64_t size) {
    return input == SIZE_MAX || volume(r.inputs[input].dims) == size;
  };
  return p.k == (p.trans_b ? b.back() : b[b.size() - 2]) && holds(p.bias, p.n) && holds(p.residual, volume(y));
}

} // namespace

std::optional<product_call> parse_product(const kernel_request& r) {
  const shape &a = r.inputs[0].dims, &b = r.inputs[1].dims, &y = r.outputs[0].dims;
  if (!r.all_of_type(dtype::float32) || !r.all_plain() || a.size() < 2 || b.size() < 2)
    return std::nullopt;
  product_call p;
  p.trans_a = r.call.attrs.integer("transA", 0) != 0;
  p.trans_b = r.call.attrs.integer("transB", 0) != 0;
  p.alpha = r.call.attrs.real("alpha", 1);
  p.m = y[y.size() - 2];
  p.n = y.back();
  p.k = p.trans_a ? a[a.size() - 2] : a.back();
  if (volume(y) == 0 || p.k == 0)
    return std::nullopt;
  p.batch.assign(y.begin(), y.end() - 2);
  p.batch_a = aligned(std::span(a).first(a.size() - 2), p.batch.size());
  p.batch_b = aligned(std::span(b).first(b.size() - 2), p.batch.size());
  if (r.call.op_type == "Gemm") {
    if (!take_gemm_bias(r, p))
      return std::nullopt;
  } else if (r.call.domain == "troupe") {
    p.act = parse_activation(r.call.attrs);
    p.bias = r.has_input(2) ? 2 : SIZE_MAX;
    p.residual = r.has_input(3) ? 3 : SIZE_MAX;
  }
  if (!fits(r, p))
    return std::nullopt;
  if (p.single_b() && !p.trans_a && p.batch_a == p.batch) {
    p.m *= volume(p.batch);
    p.batch = p.batch_a = p.batch_b = {};
  }
  return p;
}

} // namespace troupe

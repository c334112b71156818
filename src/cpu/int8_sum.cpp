// Products and convolutions of bytes that end in a sum with a residual (ops/composed/fused_quantized.cpp), as the two
// nodes that they stand for: the product writes its bytes where the result goes, then the sum takes their place.
#include "cpu/int8_finish.hpp"
#include "cpu/kernels.hpp"
#include "ops/composed/fused_elementwise.hpp"

#include <cmath>

namespace troupe {
namespace {

/// The node of the sum: its inputs are the product's result, what that is quantised with, and then the inputs that
/// follow the product's.
node sum_of(const node& call) {
  const float low = call.attrs.real("sum_low"), high = call.attrs.real("sum_high");
  elementwise_program program{{{scalar_code::add, 0, 1}}, {low, high}};
  if (std::isfinite(low) || std::isfinite(high))
    program.steps.push_back({scalar_code::clip, 2, -1, -2});
  node sum{.name = call.name, .op_type = "QuantizedElementwise", .domain = "troupe", .attrs = to_attributes(program)};
  sum.attrs.set("operands", int64_t{2});
  return sum;
}

class int8_sum_kernel final : public kernel {
public:
  int8_sum_kernel(const kernel_request& r, const int8::operand_positions& at)
      : product_call_(r.call), sum_call_(sum_of(r.call)), from_(at.y_scale), residual_(at.residual) {
    operand own = r.outputs[0];
    own.type = r.has_input(at.y_zero) ? r.inputs[at.y_zero].type : dtype::uint8;
    product_call_.inputs.resize(residual_);
    const auto first = r.inputs.begin(), behind = first + static_cast<std::ptrdiff_t>(residual_);
    const kernel_request product{product_call_, {first, behind}, {own}, r.resources};
    product_ = r.call.op_type == "QuantizedConv" ? make_int8_conv(product) : make_int8_matmul(product);
    kernel_request sum{sum_call_, {own}, r.outputs, r.resources};
    sum.inputs.insert(sum.inputs.end(), first + static_cast<std::ptrdiff_t>(from_), r.inputs.end());
    addresses_.resize(sum.inputs.size());
    sum_ = make_int8_elementwise(sum);
  }

  bool is_complete() const { return product_ && sum_; }
  bool reads(size_t i) const override { return i >= from_ || product_->reads(i); }

  void run(const kernel_run& r) override {
    product_->run(r);
    addresses_[0] = r.out[0];
    std::copy_n(r.in + from_, addresses_.size() - 1, addresses_.begin() + 1);
    sum_->run({addresses_.data(), r.out, r.allocated});
  }

private:
  node product_call_, sum_call_;
  size_t from_, residual_; // the inputs that the sum reads begin with the product's scale and zero point
  std::vector<const void*> addresses_;
  kernel_ptr product_, sum_;
};

} // namespace

kernel_ptr make_int8_sum(const kernel_request& r) {
  const int8::operand_positions at = int8::positions_of(r.call);
  if (!r.has_input(at.residual))
    return nullptr;
  auto made = std::make_unique<int8_sum_kernel>(r, at);
  return made->is_complete() ? std::move(made) : nullptr;
}

} // namespace troupe

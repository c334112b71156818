// troupe.QuantizedElementwise: one pass over memory, a block of elements at a time: dequantised, taken through the
// chain's steps in cached buffers, quantised. Works in memory order, as elementwise.cpp.
#include "base/parallel.hpp"
#include "cpu/fast_functions.hpp"
#include "cpu/kernels.hpp"
#include "ops/composed/fused_elementwise.hpp"
#include "ops/operand_walk.hpp"
#include "ops/quantization.hpp"

#include <array>

namespace troupe {
namespace {

constexpr int64_t block = 1024, grain = 32 * 1024;

class int8_elementwise_kernel final : public kernel {
public:
  int8_elementwise_kernel(const kernel_request& r, size_t count)
      : program_(parse_elementwise(r.call.attrs, count)), type_(r.outputs[0].type) {
    std::vector<operand> operands;
    for (size_t i = 0; i < count; ++i)
      operands.push_back(r.inputs[3 * i]);
    walk_ = walk_of(r.outputs[0], operands);
    size_ = volume(walk_.dims);
    for (size_t i = 0; i < count; ++i)
      inputs_.push_back({operands[i].type, mode_of(walk_, i), r.has_input(3 * i + 1), r.has_input(3 * i + 2)});
    has_y_scale_ = r.has_input(3 * count);
    has_y_zero_ = r.has_input(3 * count + 1);
  }

  void run(const kernel_run& r) override {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      input& x = inputs_[i];
      x.scale = x.has_scale ? *r.input<float>(3 * i + 1) : 1.f;
      x.zero = x.has_zero ? byte_at(r.in[3 * i + 2], x.type) : 0.f;
    }
    const size_t y = 3 * inputs_.size();
    y_scale_ = has_y_scale_ ? *r.input<float>(y) : 1.f;
    y_zero_ = has_y_zero_ ? byte_at(r.in[y + 1], type_) : 0.f;
    parallel_for(size_, grain, [&](int64_t begin, int64_t end) { run_range(r, begin, end); });
  }

private:
  struct input {
    dtype type;
    walk_mode mode;
    bool has_scale, has_zero;
    float scale = 1, zero = 0;
  };

  static float byte_at(const void* p, dtype type) {
    return type == dtype::uint8 ? static_cast<float>(*static_cast<const uint8_t*>(p))
                                : static_cast<float>(*static_cast<const int8_t*>(p));
  }

  void run_range(const kernel_run& r, int64_t begin, int64_t end) const {
    const size_t steps = program_.steps.size(), first_constant = inputs_.size() + steps;
    thread_local std::vector<float> buffers;
    buffers.resize(std::max(buffers.size(), (first_constant + program_.constants.size()) * block));
    const auto slot = [&](int64_t operand) {
      const int64_t index = operand >= 0 ? operand : static_cast<int64_t>(first_constant) - 1 - operand;
      return buffers.data() + index * block;
    };
    for (size_t k = 0; k < program_.constants.size(); ++k)
      std::fill_n(slot(-1 - static_cast<int64_t>(k)), block, program_.constants[k]);
    for (int64_t at = begin; at < end; at += block) {
      const int64_t n = std::min(block, end - at);
      for (size_t i = 0; i < inputs_.size(); ++i)
        load(i, r.in[3 * i], at, n, slot(static_cast<int64_t>(i)));
      auto result = static_cast<int64_t>(inputs_.size());
      for (const elementwise_step& s : program_.steps)
        fast::run_step(s.code, slot(s.a), slot(s.b), slot(s.c), slot(result++), n);
      store(slot(result - 1), at, n, r.out[0]);
    }
  }

  template <class T>
  void load_as(size_t i, const void* from, int64_t begin, int64_t n, float* to) const {
    const auto* x = static_cast<const T*>(from);
    if (inputs_[i].mode == walk_mode::like_output)
      for (int64_t k = 0; k < n; ++k)
        to[k] = static_cast<float>(x[begin + k]);
    else
      gather(walk_, i, x, begin, n, to);
  }

  void load(size_t i, const void* from, int64_t begin, int64_t n, float* to) const {
    const input& x = inputs_[i];
    switch (x.type) {
      case dtype::uint8: load_as<uint8_t>(i, from, begin, n, to); break;
      case dtype::int8: load_as<int8_t>(i, from, begin, n, to); break;
      default: load_as<float>(i, from, begin, n, to); break;
    }
    if (x.has_scale)
      for (int64_t k = 0; k < n; ++k)
        to[k] = (to[k] - x.zero) * x.scale;
  }

  template <class T>
  void store_as(const float* from, int64_t n, T* to) const {
    const quantized_range range = range_of(dtype_of<T>);
    const float scale = y_scale_, zero = y_zero_;
#pragma omp simd
    for (int64_t k = 0; k < n; ++k)
      to[k] = static_cast<T>(static_cast<int32_t>(saturated(from[k] / scale, zero, range)));
  }

  void store(const float* from, int64_t begin, int64_t n, void* to) const {
    switch (type_) {
      case dtype::uint8: return store_as(from, n, static_cast<uint8_t*>(to) + begin);
      case dtype::int8: return store_as(from, n, static_cast<int8_t*>(to) + begin);
      default: std::copy_n(from, n, static_cast<float*>(to) + begin);
    }
  }

  elementwise_program program_;
  dtype type_;
  operand_walk walk_;
  std::vector<input> inputs_;
  int64_t size_ = 0;
  bool has_y_scale_ = false, has_y_zero_ = false;
  float y_scale_ = 1, y_zero_ = 0;
};

/// QuantizeLinear with one scale: a chain of one step that changes nothing, whose result is quantised.
class quantize_kernel final : public kernel {
public:
  explicit quantize_kernel(const kernel_request& r) : has_zero_(r.has_input(2)) {
    const elementwise_program same{{{scalar_code::same, 0}}, {}};
    chain_call_ = {
        .name = r.call.name, .op_type = "QuantizedElementwise", .domain = "troupe", .attrs = to_attributes(same)};
    chain_call_.attrs.set("operands", int64_t{1});
    kernel_request chain{chain_call_, {r.inputs[0], {}, {}, r.inputs[1]}, r.outputs, r.resources};
    if (has_zero_)
      chain.inputs.push_back(r.inputs[2]);
    chain_ = make_int8_elementwise(chain);
  }

  bool is_complete() const { return chain_ != nullptr; }

  void run(const kernel_run& r) override {
    const std::array<const void*, 5> in{r.in[0], nullptr, nullptr, r.in[1], has_zero_ ? r.in[2] : nullptr};
    chain_->run({in.data(), r.out, r.allocated});
  }

private:
  bool has_zero_;
  node chain_call_;
  kernel_ptr chain_;
};

} // namespace

kernel_ptr make_quantize(const kernel_request& r) {
  const dtype type = r.outputs[0].type;
  const attributes& attrs = r.call.attrs;
  if ((type != dtype::uint8 && type != dtype::int8) || r.inputs[0].type != dtype::float32 ||
      r.inputs[1].type != dtype::float32 || attrs.integer("block_size", 0) != 0)
    return nullptr;
  // A model may ask for the quotient in another type.
  if (const int64_t precision = attrs.integer("precision", 0);
      precision != 0 && dtype_from_onnx(static_cast<int>(precision)) != dtype::float32)
    return nullptr;
  auto made = std::make_unique<quantize_kernel>(r);
  return made->is_complete() ? std::move(made) : nullptr;
}

kernel_ptr make_int8_elementwise(const kernel_request& r) {
  const auto count = static_cast<size_t>(r.call.attrs.integer("operands"));
  const auto is_single = [&](size_t i) { return !r.has_input(i) || r.inputs[i].size() == 1; };
  bool fits = volume(r.outputs[0].dims) > 0 && is_single(3 * count) && is_single(3 * count + 1);
  for (size_t i = 0; i < count; ++i)
    fits = fits && is_single(3 * i + 1) && is_single(3 * i + 2);
  return fits ? std::make_unique<int8_elementwise_kernel>(r, count) : nullptr;
}

} // namespace troupe

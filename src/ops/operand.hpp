// Operands of arithmetic kernels in the type that is computed with, and checks that inference and kernels share.
//
// Neural-network kernels are written for float (which also serves float16 and bfloat16) and double; `read_as` and
// `write_as` convert whole operands of the narrower types on the way in and out, and are free if the types already
// agree.
#pragma once

#include "base/parallel.hpp"
#include "ops/op.hpp"
#include "tensor/convert.hpp"

namespace troupe {

/// Elements a thread should convert or touch before another one pays.
inline constexpr int64_t elementwise_grain = 32 * 1024;

/// Calls `f(type_tag<C>{})` with the type that a float `type` is computed in: double for float64, else float.
template <class F>
decltype(auto) visit_compute(dtype type, F&& f) {
  if (!(types::floats & set_of(type)))
    fail(errc::unsupported, "element type {} is not a floating-point type", to_string(type));
  return type == dtype::float64 ? f(type_tag<double>{}) : f(type_tag<float>{});
}

/// Returns whether elements of `type` may be read as `C` without conversion.
template <class C>
bool is_stored_as(dtype type) {
  if (dtype_of<C> == type)
    return true;
  constexpr dtype own = dtype_of<C>;
  return (types::integers & set_of(own)) && (types::integers & set_of(type)) && bits_of(own) == bits_of(type);
}

/// A numeric operand as an array of `C`.
template <class C>
class read_as {
public:
  read_as() = default;
  /// Converts `v` unless its elements already are `C`; an absent operand (undefined type) gives a null pointer.
  explicit read_as(const const_view& v) : size_(v.type == dtype::undefined ? 0 : v.size()) {
    if (v.type == dtype::undefined)
      return;
    if (is_stored_as<C>(v.type)) {
      data_ = v.as<C>();
      return;
    }
    copy_.resize(static_cast<size_t>(size_));
    visit_numeric(v.type, [&]<class T>(type_tag<T>) {
      const auto* from = v.as<T>();
      parallel_for(size_, elementwise_grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          copy_[static_cast<size_t>(i)] = static_cast<C>(from[i]); // NOLINT(bugprone-signed-char-misuse): as ONNX casts
      });
    });
    data_ = copy_.data();
  }
  read_as(const read_as&) = delete;
  read_as& operator=(const read_as&) = delete;

  const C* data() const { return data_; }
  int64_t size() const { return size_; }
  explicit operator bool() const { return data_ != nullptr; }
  const C& operator[](int64_t i) const { return data_[i]; }

private:
  int64_t size_ = 0;
  std::vector<C> copy_;
  const C* data_ = nullptr;
};

/// A numeric output as an array of `C`; `commit` rounds it to the output's own type. An absent output is a null
/// pointer.
template <class C>
class write_as {
public:
  write_as() = default;
  explicit write_as(const mutable_view& v) : view_(v) {
    if (v.type == dtype::undefined)
      return;
    if (is_stored_as<C>(v.type)) {
      data_ = v.as<C>();
      return;
    }
    copy_.resize(static_cast<size_t>(v.size()));
    data_ = copy_.data();
  }
  write_as(const write_as&) = delete;
  write_as& operator=(const write_as&) = delete;

  C* data() { return data_; }
  explicit operator bool() const { return data_ != nullptr; }
  // Only for an output that is there, as one that its operator requires is; for others callers ask `operator bool`
  // first.
  // NOLINTNEXTLINE(clang-analyzer-core.uninitialized.UndefReturn): the analyzer knows neither of these.
  C& operator[](int64_t i) { return data_[i]; }

  /// Writes the elements if they were not written in place; call it once, last.
  void commit() {
    if (copy_.empty())
      return;
    visit_numeric(view_.type, [&]<class T>(type_tag<T>) {
      T* to = view_.as<T>();
      parallel_for(view_.size(), elementwise_grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const C value = copy_[static_cast<size_t>(i)];
          if constexpr (std::is_floating_point_v<C> && std::is_integral_v<T>)
            to[i] = to_integer<T>(value); // a float may be more than any integer
          else
            to[i] = static_cast<T>(value); // NOLINT(bugprone-signed-char-misuse): as ONNX casts
        }
      });
    });
  }

private:
  mutable_view view_;
  std::vector<C> copy_;
  C* data_ = nullptr;
};

/// Returns operand `i` of a kernel, or an absent one.
inline const_view optional_input(const kernel_context& c, size_t i) {
  return c.has_input(i) ? c.input(i) : const_view{};
}

/// Returns output `i` of a kernel, or an absent one.
inline mutable_view optional_output(const kernel_context& c, size_t i) {
  return c.has_output(i) ? c.output(i) : mutable_view{};
}

/// Throws `errc::invalid_model` if two known sizes differ; symbolic ones are checked by the kernel, once bound.
inline void require_same(const dim& a, const dim& b, std::string_view what) {
  if (a.is_constant() && b.is_constant() && a.constant() != b.constant())
    fail(errc::invalid_model, "{}: {} and {} differ", what, a.constant(), b.constant());
}

/// Throws `errc::invalid_model` unless two shapes have the same rank and no known dims that differ.
inline void require_same_dims(std::span<const dim> a, std::span<const dim> b, std::string_view what) {
  bool same = a.size() == b.size();
  for (size_t i = 0; same && i < a.size(); ++i)
    same = !a[i].is_constant() || !b[i].is_constant() || a[i].constant() == b[i].constant();
  if (!same)
    fail(errc::invalid_model, "{}: shapes {} and {} differ", what, to_string(a), to_string(b));
}

/// Throws `errc::invalid_model` unless `value` is a rank of at least `least`.
inline void require_rank(size_t value, size_t least, std::string_view what) {
  if (value < least)
    fail(errc::invalid_model, "{} has rank {}, but at least {} is needed", what, value, least);
}

/// Returns the bytes of all operands, each read or written once.
inline double operand_bytes(const call_shapes& call) {
  double bytes = 0;
  const auto add = [&](const std::vector<dtype>& element_types, const std::vector<shape>& shapes) {
    for (size_t i = 0; i < shapes.size(); ++i)
      if (element_types[i] != dtype::undefined)
        bytes += static_cast<double>(bytes_of(element_types[i], volume(shapes[i])));
  };
  add(call.input_types, call.inputs);
  add(call.output_types, call.outputs);
  return bytes;
}

/// `op_def::cost` of operators that do `Flops` operations for each element of input 0.
template <int Flops>
op_cost cost_per_input(const attributes&, const call_shapes& call) {
  return {Flops * static_cast<double>(volume(call.inputs[0])), operand_bytes(call)};
}

/// The same for each element of output 0.
template <int Flops>
op_cost cost_per_output(const attributes&, const call_shapes& call) {
  return {Flops * static_cast<double>(volume(call.outputs[0])), operand_bytes(call)};
}

} // namespace troupe

// A oneDNN primitive with its operands, and what all oneDNN kernels share.
#pragma once

#include "cpu/dnnl_compat.hpp"
#include "cpu/kernel.hpp"
#include "ops/activation.hpp"

#include <string_view>
#include <vector>

namespace troupe::dnn {

/// Returns the CPU engine.
const dnnl::engine& engine();

/// Returns whether elements of `type` can be described: float32, int32, uint8 and int8.
bool has_type(dtype type);

/// Returns the descriptor of elements of `dims` in row-major order or, of rank 3 to 5, channels-last.
memory_desc describe(const shape& dims, layout l = layout::plain, dtype type = dtype::float32);

/// Returns the descriptor of float elements in whatever order the library likes best.
memory_desc describe_any(const shape& dims);

/// Appends `act` to what a primitive does to its result.
void append_activation(dnnl::post_ops& ops, const activation& act);

/// Returns whether the implementation of this name ends results by oneDNN's plain functions rather than by generated
/// code: their Relu of −inf is NaN, and their sigmoid of NaN 0. Generated code is right for infinities, but its Relu,
/// Clip and HardSigmoid of NaN may be 0: to keep NaN would take a pass over the results, a tenth of the time of a
/// convolution of few channels.
bool ends_plainly(std::string_view implementation);

/// Returns whether `ops` and then `act` would have two linear operations. Generated code takes the factor and the
/// summand of the first for both (oneDNN 2.6).
bool repeats_linear(const dnnl::post_ops& ops, const activation& act);

/// Returns `make(ops and then act)`, a primitive's descriptor, and sets `act` to none; leaves `act` to the caller
/// (`end_result`) where the implementation would not end results as it should.
template <class Make>
auto make_ended(dnnl::post_ops ops, activation& act, Make make) {
  auto bare = make(ops); // first: a copy of `ops` would be the same object
  if (act.code == scalar_code::same || repeats_linear(ops, act))
    return bare;
  append_activation(ops, act);
  auto ended = make(ops);
  if (ends_plainly(ended.impl_info_str()))
    return bare;
  act = {};
  return ended;
}

/// Applies `act` to a result of `count` elements, on several threads.
void end_result(const activation& act, float* y, int64_t count);

/// A primitive whose operands' addresses are set before each run (see the top of this file). Its working memory is the
/// device's scratch.
class call {
public:
  call() = default;
  /// Takes a primitive made with `user_scratchpad` attributes.
  call(dnnl::primitive primitive, const memory_desc& scratchpad, scratch_buffer& scratch);

  /// Adds operand `arg` (a DNNL_ARG_ number); returns its index for `set`. `data` may be set later.
  size_t add(int arg, const memory_desc& md, const void* data = nullptr);
  /// Sets where operand `index` is.
  void set(size_t index, const void* data);
  void run();

private:
  dnnl::primitive primitive_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> args_;
  scratch_buffer* scratch_ = nullptr;
  size_t scratchpad_ = SIZE_MAX;
};

/// Returns attributes that let the caller own the working memory.
dnnl::primitive_attr user_scratchpad(const dnnl::post_ops& ops = {});

/// Returns the weight in format `to`; `from` describes the plain elements under the same logical dims.
weight_cache::handle pack(weight_cache& weights, const weight_ptr& w, const memory_desc& from, const memory_desc& to);

/// C[m][n] = A[m][k] · B[n][k] transposed; rows of A and B follow each other, those of C are `ldc` elements apart. On
/// one thread if the caller is one of several.
void multiply_transposed(int64_t m, int64_t n, int64_t k, const float* a, const float* b, float* c, int64_t ldc);

/// Returns `make()`, or null if oneDNN cannot do it.
template <class F>
kernel_ptr try_make(F&& make) {
  try {
    return make();
  } catch (const dnnl::error&) {
    return nullptr;
  }
}

} // namespace troupe::dnn

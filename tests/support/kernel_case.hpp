// One call of an operator, run on the GPU through every way the operator offers, against its reference kernel.
#pragma once

#include "ops/op.hpp"

#include <map>
#include <random>
#include <set>

namespace troupe::test {

/// A call to test; see the table-driven tests in tests/vulkan.
struct kernel_case {
  std::string op;
  std::vector<tensor> inputs; // undefined if absent
  attributes attrs = {};
  std::string domain = "";
  int64_t opset = 21;
  size_t outputs = 1;
  double rtol = 1e-4, atol = 1e-5;
  /// Bit i: input i is a constant of the model.
  uint32_t constants = 0;
  /// Computes the reference in float64, whatever the inputs' float type.
  bool in_double = false;
};

/// Runs the case on GPU 0, each alternative, poisoned, with plain and channels-last layouts if the operator takes both,
/// and checks types, dims and elements of all outputs. Float cases run in float32 as given; `half` converts float
/// inputs to float16 first and allows for its rounding. Fails if the operator offers no launches at all.
void check_gpu_kernels(const kernel_case& c, bool half = false);

/// Runs the case on GPU 0, poisoned, in every way that a tuner may choose whose name begins with `kernels`, and checks
/// the outputs as `check_gpu_kernels` does; returns the names.
std::set<std::string> check_gpu_ways(const kernel_case& c, std::string_view kernels, bool half = false);

/// Returns whether GPU 0 has a kernel for the case.
bool has_gpu_kernel(const kernel_case& c);

/// The worst error of one kernel over some cases.
struct kernel_record {
  int64_t calls = 0;
  double worst_absolute = 0;
  double worst_in_tolerances = 0; // above 1 is a failure
};
/// Records of all cases so far, by "operator, kernel, type".
const std::map<std::string, kernel_record>& kernel_records();

/// Results that are beside ties, where one unit in the last place of a quotient decides.
struct tie_record {
  int64_t values = 0, different = 0;
  int64_t subnormals = 0, different_subnormals = 0; // results of subnormal numbers, apart from the others
};
/// Records of all `check_gpu_bits` so far, by name.
const std::map<std::string, tie_record>& tie_records();

/// Runs the case on GPU 0, and as if its divisions and square roots were as bad as Vulkan allows, upwards and
/// downwards; counts the results of GPU 0 under `name`. Fails if an element is not, bit by bit, the reference's.
/// `subnormal`: the case is of subnormal numbers, which a GPU that flushes them may compute as zeros.
void check_gpu_bits(const std::string& name, const kernel_case& c, bool subnormal = false);

/// Fails unless two tensors have the same type, dims and, within the tolerances, elements; returns the errors.
kernel_record check_close(const tensor& got, const tensor& wanted, double rtol, double atol);

/// Returns a float32 tensor in float16, and other tensors as they are.
tensor to_half(const tensor& t);

/// Tensors for cases: uniform in [low, high), seeded by `seed`.
tensor random_floats(shape dims, uint64_t seed, float low = -1, float high = 1);
/// Returns a tensor converted to `type`.
tensor to_type(const tensor& t, dtype type);
tensor random_integers(dtype type, shape dims, uint64_t seed, int64_t low, int64_t high);

} // namespace troupe::test

// What runs one node on the CPU: prepared once when a plan is installed, then run as often as the plan is.
//
// A kernel is chosen from the ordered list of kernel_list.hpp: the first factory that takes the call wins; the
// operator's reference kernel is last and takes everything. Preparation fixes types, shapes and layouts, so that `run`
// only needs addresses. A kernel is run by one thread at a time (its device's); it may use `parallel_for` and oneDNN
// inside.
#pragma once

#include "cpu/scratch.hpp"
#include "cpu/weight_cache.hpp"
#include "ops/call.hpp"
#include "ops/op.hpp"

namespace troupe {

/// What the kernels of one device share; outlives them.
struct kernel_resources {
  weight_cache weights;
  scratch_buffer scratch;
};

/// A call to prepare a kernel for. `call` and `resources` outlive the kernel.
struct kernel_request {
  const node& call;
  std::vector<operand> inputs;
  std::vector<operand> outputs;
  kernel_resources& resources;

  bool has_input(size_t i) const { return i < inputs.size() && inputs[i].present(); }
  bool has_output(size_t i) const { return i < outputs.size() && outputs[i].present(); }
  /// Returns whether every present operand has element type `type`.
  bool all_of_type(dtype type) const;
  /// Returns whether every present operand is plain.
  bool all_plain() const;
  /// Returns the layout that operand `o` has for oneDNN: its own, or, if its elements are in the same order in both
  /// layouts, the one that the call's other operands have.
  layout layout_of(const operand& o) const;
};

/// Addresses of one run. Absent operands, and inputs that the kernel does not read at run time, are null.
struct kernel_run {
  const void* const* in;
  void* const* out;
  /// Takes output `i` of a node whose output shape depends on data; set by the device, by output.
  tensor* allocated;

  template <class T>
  const T* input(size_t i) const {
    return static_cast<const T*>(in[i]);
  }
  template <class T>
  T* output(size_t i) const {
    return static_cast<T*>(out[i]);
  }
};

class kernel {
public:
  virtual ~kernel() = default;

  /// Computes the outputs. Throws what the operator throws on bad elements (an index out of range …).
  virtual void run(const kernel_run& r) = 0;

  /// Returns whether `run` reads input `i`; false for a weight that preparation has packed.
  virtual bool reads(size_t i) const {
    (void)i;
    return true;
  }
};

using kernel_ptr = std::unique_ptr<kernel>;

} // namespace troupe

// Which nodes a GPU can run, before dims are bound.
//
// The launch rules of an operator (launch/launch_table.hpp) say how a GPU runs a call. Planning asks them with symbolic
// dims replaced by representative ones, a device asks again with those of a bound plan (`make_gpu_call`). Never on a
// GPU: control flow, strings, nodes that define a data-dependent dim (the host has to look at the result anyway), and
// operands of 2^32 elements or more (kernels count in 32 bits). Views launch nothing, so that every GPU can "run" them.
// What a GPU computes in float32 instead (wide_floats.hpp), it can run.
#pragma once

#include "plan/plan.hpp"

namespace troupe {

/// Why a GPU cannot run a node.
enum class gpu_obstacle : uint8_t {
  none, // it can
  control_flow,
  strings,
  data_dependent, // the node defines a dim that depends on data
  too_large,      // an operand has 2^32 elements or more
  no_kernel,      // the operator has no launches for this call
};

/// Returns what stands in the way for people: "no GPU kernel for NonZero".
std::string describe(gpu_obstacle obstacle, const node& n);

/// The value of a symbol whose value is not known yet: small, so that values stay below the limits of bindings.
inline constexpr int64_t representative_dim = 8;

/// Asks operators what GPUs can run before dims are bound (see the top of this file). Refers to the graph, which must
/// be inferred and not change meanwhile. One thread at a time.
class gpu_support {
public:
  /// Symbols that `expected` lacks count as `representative_dim`.
  explicit gpu_support(const graph& program, bindings expected = {});

  /// Returns why a GPU with these features cannot run a node. Never throws for what the node is: an operator that
  /// refuses a call by an exception counts as one without a kernel.
  gpu_obstacle obstacle(node_id n, const gpu_features& gpu);

  /// Returns the call of a node with representative dims; it refers to the node's attributes and to `gpu`.
  gpu_call representative_call(node_id n, const gpu_features& gpu);

  /// Returns a value's dims with expected values for symbols, and `representative_dim` for every dim that is then
  /// negative or undefined.
  const shape& representative_dims(value_id v);

  /// Whether some symbol that was asked for so far is not among the expected ones.
  bool has_guessed() const { return has_guessed_; }

private:
  int64_t evaluate(const dim& d);
  void guess(const std::string& symbol);
  bool has_wide_launches(const node& n, gpu_call call) const;
  operand representative_operand(value_id v);
  bool defines_data_symbol(node_id n) const;

  const graph& program_;
  const data_symbols symbols_;
  std::vector<std::optional<shape>> dims_; // by value, found when asked for
  bindings values_;                        // of the symbols that were seen
  bool has_guessed_ = false;
};

/// Returns whether the operator has launches for a call; an exception counts as none.
bool has_launches(const op_def& def, const gpu_call& call);

/// Returns the first operand that has 2^32 elements or more; null if none has.
const operand* find_too_large(const gpu_call& call);

} // namespace troupe

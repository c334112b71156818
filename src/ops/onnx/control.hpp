// Control flow as data: what the attributes and operands of an If, Loop, Scan or SequenceMap say.
#pragma once

#include "graph/bodies.hpp"

#include <array>

namespace troupe {

enum class control_kind : uint8_t {
  branch, // If
  loop,   // Loop
  scan,   // Scan of opset 9 and newer
  map,    // SequenceMap
};

/// How Scan walks over one of its operands.
struct scan_walk {
  int64_t axis = 0;     // as the model states it; may count from the end
  bool reverse = false; // last element first
};

/// One control-flow node. Operands: Loop has the trip count, the condition and `carried` values; Scan `carried` values
/// and `scan_inputs`. Results: `carried` values, then `scan_outputs`; an If's are those of its branches. A Loop may
/// carry an optional whose body gives what it holds: the next iteration gets it as an optional, and the result is what
/// it holds. A SequenceMap's operands are sequences, of which each execution gets an element, and tensors, of which
/// each gets the whole; its results are sequences.
struct control_call {
  control_kind kind = control_kind::branch;
  std::vector<node_body> bodies; // If: the else branch, then the then branch
  /// If: why a branch cannot be executed, parallel to `bodies`; empty if it can. See `refuse_branch`.
  std::array<std::string, 2> refusals;
  size_t carried = 0;
  std::vector<scan_walk> scan_inputs,
      scan_outputs; // of Loop too: scan outputs along axis 0; of SequenceMap: one a result

  /// Formal inputs of a Loop's node and body before the carried values: trip count or iteration number, and the
  /// condition.
  size_t leading_inputs() const { return kind == control_kind::loop ? 2 : 0; }
  /// Outputs of a Loop's body before the carried values: the condition.
  size_t leading_outputs() const { return kind == control_kind::loop ? 1 : 0; }
};

/// Positions of an If's bodies in `control_call::bodies`.
inline constexpr size_t else_branch = 0, then_branch = 1;

/// Returns whether a node is control flow that can be executed as it is. A Scan of opset 8 is not: the rewrite replaces
/// it.
bool is_control(const node& n);

/// Returns what a node for which `is_control` holds is.
control_kind control_kind_of(const node& n);

/// Reads a node for which `is_control` holds. Throws `errc::invalid_model` naming the body whose inputs or outputs do
/// not fit the node's, or the attribute that is wrong; the caller adds the node's name.
control_call parse_control(const node& n);

/// Notes in an If that one of its branches, called `name`, cannot be executed. What depends on a result of different
/// ranks is part of both branches, and some of it may not take the rank that one of them gives: such a model is right
/// as long as that branch is not taken.
void refuse_branch(attributes& attrs, const std::string& name, const std::string& why);

/// Returns the dims of a Loop's iteration number, which its body decides: [1] if it says so, else none.
shape iteration_dims(const graph& body);

/// Returns whether a Loop's rewritten body never ends the loop: its condition is what it was given, or true.
bool keeps_condition(const graph& body);

} // namespace troupe

// The model as plain data: nodes and values in two arrays, joined by index.
//
// Invariants, checked by `validate`: every value has at most one producer; inputs and constants have none; node order
// in `nodes` is topological after `sort_topologically`. Passes may leave dead nodes until `compact`.
#pragma once

#include "graph/attributes.hpp"
#include "graph/dim.hpp"
#include "graph/weight.hpp"

#include <optional>

namespace troupe {

struct model_annotations;
using value_id = int32_t;
using node_id = int32_t;
/// An absent optional input or output of a node.
inline constexpr value_id no_value = -1;

/// How the elements of a value are laid out in memory. `dims` are always logical (N, C, spatial…), whatever the layout.
enum class layout : uint8_t {
  plain,         // row-major in the order of the dims
  channels_last, // N, spatial…, C: what oneDNN's and the GPU's convolutions want; rank ≥ 3 only
};

/// What is known before a run of the shapes of the tensors in a sequence or optional; of one that holds a sequence: of
/// the tensors in that.
struct element_shapes {
  /// Their dims, −1 where they differ or only the run tells; nullopt if not even the rank is known.
  std::optional<shape> dims;
  /// Nothing has been put in yet: what comes first decides `dims`.
  bool empty = false;

  bool operator==(const element_shapes&) const = default;
};
/// Returns what is known of tensors that are each of one of these two kinds.
element_shapes join(const element_shapes& a, const element_shapes& b);
/// Returns what is known of tensors of these dims.
element_shapes shapes_of_elements(const std::optional<symbolic_shape>& dims);

/// A tensor that flows through the graph.
struct value {
  std::string name;
  dtype type = dtype::undefined;
  /// Dims; nullopt while not even the rank is known (before shape inference, and graph inputs without a shape).
  std::optional<symbolic_shape> dims;
  /// Of a sequence or optional, whose dims are its length alone.
  element_shapes elements = {};
  troupe::layout layout = troupe::layout::plain;
  /// The constant this value is, else null.
  weight_ptr constant;
  /// The elements, where they are known on the host (shape arithmetic): row-major, symbolic. Small integer values only.
  /// The rewrite removes nodes that only compute known values; such a value has no producer, and binding makes its
  /// bytes.
  std::optional<std::vector<dim>> known;
};

/// One operator call.
struct node {
  std::string name;
  std::string op_type;
  std::string domain; // "" is ai.onnx
  attributes attrs;
  /// no_value if absent. Control-flow nodes list what their bodies capture after the formal inputs, body by body in
  /// the order of the attributes' names.
  std::vector<value_id> inputs;
  std::vector<value_id> outputs; // no_value if absent
  /// How many of `inputs` are formal; the rest are captures.
  size_t formal_inputs() const { return inputs.size() - captures; }
  size_t captures = 0;
  /// The operator's row, set by `ops::resolve`; null before.
  const op_def* def = nullptr;
};

/// A model, or the body of a control-flow node.
struct graph {
  std::string name;
  std::vector<value> values;
  std::vector<node> nodes;
  std::vector<value_id> inputs;  // without the initializers
  std::vector<value_id> outputs; // in the order the file states
  /// In the body of a control-flow node: the values for the captured values of the enclosing graph. They are listed
  /// in `inputs` too, after the formal ones.
  std::vector<value_id> captured;
  /// Opset version by domain, as the file imports them ("" for ai.onnx).
  std::map<std::string, int64_t> opsets;
  /// Calls that others have taken the place of (ops/expansion.hpp), over copies of their operands: what they ask of
  /// these is asked at each binding (plan/bind/operand_checks.hpp), whatever becomes of the others. Null for none.
  std::shared_ptr<const graph> asked;
  /// Where the file says that nodes run (graph/annotations.hpp). Null: it does not say, or this is a body.
  std::shared_ptr<const model_annotations> annotations;

  value_id add_value(value v);
  value_id add_constant(std::string name, tensor bytes);
  node_id add_node(node n);
};

/// Producer and consumers of every value; valid until the graph changes.
struct adjacency {
  std::vector<node_id> producer;               // by value; -1 for inputs and constants
  std::vector<std::vector<node_id>> consumers; // by value, each node once, ascending
  std::vector<bool> is_output;                 // by value
};
adjacency adjacency_of(const graph& g);

/// Checks the invariants; throws `errc::invalid_model` naming the node or value: duplicate producers, an input that
/// nothing produces, indices out of range.
void validate(const graph& g);

/// Orders `nodes` topologically, stable if it can be; throws `errc::invalid_model` that names a cycle's nodes.
void sort_topologically(graph& g);

/// Removes nodes that no output depends on and values that nothing uses; ids change. Graph inputs stay, and nodes that
/// define a data-dependent dim which something uses (data_symbols.hpp).
void remove_dead(graph& g);

/// Replaces each use of `from` (node inputs and graph outputs) by `to`.
void replace_uses(graph& g, value_id from, value_id to);

/// Returns "Conv", or "troupe.Conv" for an operator outside the standard's domain.
std::string operator_name(const node& n);

/// Returns "Conv 'layer1/conv'" for messages, printable.
std::string describe(const node& n);

} // namespace troupe

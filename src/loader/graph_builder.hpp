// GraphProto → graph: names become value ids, subgraphs become graphs with captures, local functions are inlined.
//
// Names: a graph's names are all declared first (inputs, initializers, node outputs), so nodes may come in any order
// and each reference is resolved exactly; a name that a body does not declare is captured from the enclosing scope. A
// scope is one space of names: a graph's, or a called function's, whose values live in the caller's graph under a
// prefix.
//
// Initializers that are also graph inputs (all of them in IR versions below 4) are constants and inputs of the model:
// the caller may give another value, as long as the rewrite has not begun. A captured constant is a constant of the
// body, unless the caller may change it. Functions are resolved with their own opset imports.
//
// An input that is a map (of ai.onnx.ml) is two inputs here, vectors of one length: its keys, NAME.keys, and their
// values, NAME.values. The operators that take maps take both in its place; nothing else may refer to it.
//
// Bounds: nesting of bodies and calls, nodes after inlining, and the bytes that inlining writes.
#pragma once

#include "base/checked.hpp"
#include "graph/graph.hpp"
#include "loader/tensor_proto.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace troupe {

using opset_map = std::map<std::string, int64_t>;

/// Returns opset versions by canonical domain; of several imports of one domain, the last counts, as in ONNX Runtime.
template <class Imports>
opset_map opsets_of(const Imports& imports) {
  opset_map opsets;
  for (const auto& import : imports)
    opsets[canonical_domain(import.domain())] = import.version();
  return opsets;
}

/// Returns a value of a stated type; an element type or shape that is not stated stays open. Throws `errc::unsupported`
/// for maps, sparse tensors, and containers of others than `dtype` knows.
value value_of(const onnx::TypeProto& type, const std::string& name);

/// Builds the graph of one model (see the top of this file).
class graph_builder {
public:
  /// `file_bytes` scales the bound on inlining.
  graph_builder(const onnx::ModelProto& model, tensor_reader& reader, opset_map opsets, int64_t file_bytes);

  /// Throws `errc::invalid_model`, `errc::unsupported`, `errc::io`.
  graph build();

private:
  /// A graph under construction.
  struct canvas {
    graph g;
    std::unordered_set<std::string> taken; // names of values
    std::vector<value_id> captured_from;   // in the enclosing canvas, parallel to g.captured
    std::unordered_set<value_id> defaults; // initializers that are inputs, too
  };

  /// A function of the model.
  struct function {
    const onnx::FunctionProto* proto = nullptr;
    opset_map opsets;
    std::vector<onnx::AttributeProto> defaults;
  };

  /// What a function's call gives its attributes.
  using call_attributes = std::map<std::string, const onnx::AttributeProto*>;

  /// A space of names (see the top of this file).
  struct scope {
    canvas& target;
    scope* parent = nullptr; // where names that are not declared here are captured from
    const opset_map& opsets;
    const call_attributes* call = nullptr; // inside a function
    std::string prefix = {};               // of names in the target
    std::unordered_map<std::string, value_id> names = {};
    std::unordered_set<std::string> maps = {}; // graph inputs
  };

  // graph_builder.cpp
  canvas build_graph(const onnx::GraphProto& proto, scope* parent, const opset_map& opsets,
                     const call_attributes* call);
  void declare_initializers(scope& s, const onnx::GraphProto& proto);
  void declare_initializer(scope& s, const std::string& name, sourced_tensor t);
  void declare_inputs(scope& s, const onnx::GraphProto& proto);
  static void declare_default(scope& s, value_id initializer, const onnx::ValueInfoProto& input);
  void declare_map(scope& s, const onnx::ValueInfoProto& input);
  void declare_outputs(scope& s, const onnx::GraphProto& proto, value_id first_result, value_id end_results);
  void declare_nodes(scope& s, const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes);
  value_id declare(scope& s, const std::string& name, value v);
  std::string unique_name(canvas& target, const std::string& name) const;
  value_id lookup(scope& s, const std::string& name, const std::string& reader);
  bool find(scope& s, const std::string& name, value_id& found);
  void add_nodes(scope& s, const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes);
  void add_node(scope& s, const onnx::NodeProto& proto);
  static bool is_map(const scope& s, const std::string& name);
  void add_operands(scope& s, const onnx::NodeProto& proto, node& n);
  void count_node(int64_t bytes);

  // node_attributes.cpp
  void load_attributes(scope& s, const onnx::NodeProto& proto, node& n);
  const onnx::AttributeProto* actual_attribute(const scope& s, const onnx::AttributeProto& stated) const;
  attribute load_attribute(scope& s, const onnx::AttributeProto& proto, node& n);
  tensor constant_tensor(const scope& s, const onnx::AttributeProto& a);

  // functions.cpp
  void index_functions();
  const function* function_of(const onnx::NodeProto& proto) const;
  void inline_call(scope& s, const onnx::NodeProto& proto, const function& f);
  call_attributes bind_attributes(const scope& s, const onnx::NodeProto& proto, const function& f) const;
  void bind_operands(scope& caller, scope& inner, const onnx::NodeProto& proto, const function& f);
  void pass_through(scope& inner, value_id from, value_id to);

  const onnx::ModelProto& model_;
  tensor_reader& reader_;
  opset_map opsets_;
  std::map<std::string, function> functions_; // by domain, name and overload
  std::vector<const function*> active_;       // being inlined, outermost first
  std::map<const google::protobuf::Message*, tensor> function_tensors_;
  int64_t depth_ = 0, nodes_ = 0, calls_ = 0, inline_bytes_left_ = 0;
};

} // namespace troupe

// GraphProto → graph: names become value ids, subgraphs become graphs with captures, local functions are inlined.
//
// Names: a graph's names are all declared first (inputs, initializers, node outputs), so nodes may come in any order
// and each reference is resolved exactly (name_scope.hpp).
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
#include "loader/name_scope.hpp"
#include "loader/tensor_proto.hpp"

#include <algorithm>

namespace troupe {

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
  /// A function of the model.
  struct function {
    const onnx::FunctionProto* proto = nullptr;
    opset_map opsets;
    std::vector<onnx::AttributeProto> defaults;
  };

  // graph_builder.cpp
  canvas build_graph(const onnx::GraphProto& proto, name_scope* parent, const opset_map& opsets,
                     const call_attributes* call);
  void declare_initializers(name_scope& s, const onnx::GraphProto& proto);
  void declare_initializer(name_scope& s, const std::string& name, sourced_tensor t);
  void declare_inputs(name_scope& s, const onnx::GraphProto& proto);
  static void declare_default(name_scope& s, value_id initializer, const onnx::ValueInfoProto& input);
  void declare_map(name_scope& s, const onnx::ValueInfoProto& input);
  void declare_outputs(name_scope& s, const onnx::GraphProto& proto, value_id first_result, value_id end_results);
  void declare_nodes(name_scope& s, const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes);
  void add_nodes(name_scope& s, const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes);
  void add_node(name_scope& s, const onnx::NodeProto& proto);
  void add_operands(name_scope& s, const onnx::NodeProto& proto, node& n);
  void count_node(int64_t bytes);

  // node_attributes.cpp
  void load_attributes(name_scope& s, const onnx::NodeProto& proto, node& n);
  const onnx::AttributeProto* actual_attribute(const name_scope& s, const onnx::AttributeProto& stated) const;
  attribute load_attribute(name_scope& s, const onnx::AttributeProto& proto, node& n);
  tensor constant_tensor(const name_scope& s, const onnx::AttributeProto& a);

  // functions.cpp
  void index_functions();
  const function* function_of(const onnx::NodeProto& proto) const;
  void inline_call(name_scope& s, const onnx::NodeProto& proto, const function& f);
  call_attributes bind_attributes(const name_scope& s, const onnx::NodeProto& proto, const function& f) const;
  void bind_operands(name_scope& caller, name_scope& inner, const onnx::NodeProto& proto, const function& f);
  void pass_through(name_scope& inner, value_id from, value_id to);

  const onnx::ModelProto& model_;
  tensor_reader& reader_;
  opset_map opsets_;
  std::map<std::string, function> functions_; // by domain, name and overload
  std::vector<const function*> active_;       // being inlined, outermost first
  std::map<const google::protobuf::Message*, tensor> function_tensors_;
  int64_t depth_ = 0, nodes_ = 0, calls_ = 0, inline_bytes_left_ = 0;
};

} // namespace troupe

// Local functions of a model (ModelProto.functions), inlined at each call.
#include "loader/graph_builder.hpp"

#include "ops/registry.hpp"

namespace troupe {
namespace {

/// Longest part of a call's name that goes into the names of its values. The number of the call makes them unique;
/// names of enclosing calls are left out, so that names do not grow with the depth.
constexpr size_t longest_call_name = 64;

std::string key_of(const std::string& domain, const std::string& name, const std::string& overload) {
  return canonical_domain(domain) + '\0' + name + '\0' + overload;
}

template <class Proto>
std::vector<onnx::AttributeProto> defaults_of(const Proto& proto) {
  if constexpr (requires { proto.attribute_proto(); }) {
    return {proto.attribute_proto().begin(), proto.attribute_proto().end()};
  } else {
    std::vector<onnx::AttributeProto> defaults;
    const auto& fields = proto.unknown_fields();
    for (int i = 0; i < fields.field_count(); ++i) {
      const auto& field = fields.field(i);
      if (field.number() != function_attribute_proto_field ||
          field.type() != google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED)
        continue;
      if (!defaults.emplace_back().ParsePartialFromString(field.length_delimited()))
        fail(errc::invalid_model, "function {}: a default attribute is malformed", in_quotes(proto.name()));
    }
    return defaults;
  }
}

} // namespace

void graph_builder::index_functions() {
  for (const auto& proto : model_.functions()) {
    function f{&proto, opsets_of(proto.opset_import()), defaults_of(proto)};
    const std::string key = key_of(proto.domain(), proto.name(), overload_of(proto, function_overload_field));
    if (!functions_.emplace(key, std::move(f)).second)
      fail(errc::invalid_model, "the function {} of domain {} is defined twice", in_quotes(proto.name()),
           in_quotes(proto.domain()));
  }
}

const graph_builder::function* graph_builder::function_of(const onnx::NodeProto& proto) const {
  if (functions_.empty())
    return nullptr;
  const auto it = functions_.find(key_of(proto.domain(), proto.op_type(), overload_of(proto, node_overload_field)));
  return it == functions_.end() ? nullptr : &it->second;
}

call_attributes graph_builder::bind_attributes(const name_scope& s, const onnx::NodeProto& proto,
                                               const function& f) const {
  call_attributes bound;
  for (const auto& a : f.defaults)
    bound[a.name()] = &a;
  for (const auto& a : proto.attribute()) {
    const onnx::AttributeProto* actual = actual_attribute(s, a);
    if (!actual)
      continue;
    if (actual->has_g() || actual->graphs_size() > 0)
      fail(errc::unsupported, "attribute {}: graphs cannot be given to a function", in_quotes(a.name()));
    bound[a.name()] = actual;
  }
  // One that the call leaves out is left out of the calls in the function, too: their operators' defaults hold.
  return bound;
}

/// Joins the function's formal inputs and outputs to the caller's values.
void graph_builder::bind_operands(name_scope& caller, name_scope& inner, const onnx::NodeProto& proto,
                                  const function& f) {
  const onnx::FunctionProto& formal = *f.proto;
  if (proto.input_size() > formal.input_size() || proto.output_size() > formal.output_size())
    fail(errc::invalid_model, "the call has {} inputs and {} outputs, but the function has {} and {}",
         proto.input_size(), proto.output_size(), formal.input_size(), formal.output_size());
  for (int i = 0; i < formal.input_size(); ++i) {
    const bool given = i < proto.input_size() && !proto.input(i).empty();
    const value_id actual = given ? caller.lookup(proto.input(i), "the call") : no_value;
    if (!inner.names.emplace(formal.input(i), actual).second)
      fail(errc::invalid_model, "the function has two inputs called {}", in_quotes(formal.input(i)));
  }
  std::map<std::string, value_id> results; // by formal name; no_value if the caller does not want it
  for (int i = 0; i < formal.output_size(); ++i) {
    const bool wanted = i < proto.output_size() && !proto.output(i).empty();
    const value_id actual = wanted ? caller.names.at(proto.output(i)) : no_value;
    if (!results.emplace(formal.output(i), actual).second)
      fail(errc::invalid_model, "the function has two outputs called {}", in_quotes(formal.output(i)));
    if (const auto it = inner.names.find(formal.output(i)); it != inner.names.end() && wanted)
      pass_through(inner, it->second, actual);
  }
  for (const auto& n : formal.node())
    for (const auto& name : n.output()) {
      if (name.empty())
        continue;
      const auto result = results.find(name);
      if (result == results.end() || result->second == no_value)
        inner.declare(name, {});
      else if (!inner.names.emplace(name, result->second).second)
        fail(errc::invalid_model, "the value name {} is defined twice", in_quotes(name));
    }
  for (const auto& [name, actual] : results)
    if (!inner.names.count(name))
      fail(errc::invalid_model, "the function's output {} is not produced by any of its nodes", in_quotes(name));
}

/// A function's output that is its input: the caller's two values are one.
void graph_builder::pass_through(name_scope& inner, value_id from, value_id to) {
  const op_def* identity = find_op("", "Identity", 14);
  if (!identity || from == no_value)
    fail(errc::unsupported, "the function returns an input unchanged{}", identity ? " that the call leaves out" : "");
  node n;
  n.op_type = "Identity";
  n.name = inner.prefix + "Identity";
  n.def = identity;
  n.inputs = {from};
  n.outputs = {to};
  count_node(static_cast<int64_t>(n.name.size()));
  inner.target.g.add_node(std::move(n));
}

void graph_builder::inline_call(name_scope& s, const onnx::NodeProto& proto, const function& f) {
  const std::string name = proto.name().empty() ? proto.op_type() : proto.name();
  try {
    if (std::find(active_.begin(), active_.end(), &f) != active_.end())
      fail(errc::invalid_model, "the function calls itself");
    constexpr size_t max_call_depth = 64;
    if (active_.size() >= max_call_depth)
      fail(errc::unsupported, "functions call each other more than {} levels deep", max_call_depth);
    const call_attributes attributes = bind_attributes(s, proto, f);
    const std::string prefix = fmt::format("{}#{}/", name.substr(0, longest_call_name), ++calls_);
    name_scope inner{s.target, nullptr, f.opsets, &attributes, prefix};
    active_.push_back(&f);
    constexpr int64_t name_bytes = 16; // what joining a formal name costs, about
    count_node(static_cast<int64_t>(prefix.size()) +
               name_bytes * (f.proto->input_size() + f.proto->output_size() + f.proto->attribute_size()));
    bind_operands(s, inner, proto, f);
    add_nodes(inner, f.proto->node());
    active_.pop_back();
  } catch (const error& e) {
    fail(e.code(), "in function {}: {}", in_quotes(proto.op_type()), e.what());
  }
}

} // namespace troupe

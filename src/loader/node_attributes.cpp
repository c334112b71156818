// Attributes of nodes: values, subgraphs with their captures, references to a function's attributes.
#include "loader/graph_builder.hpp"
#include "ops/onnx/own_attributes.hpp"

namespace troupe {
namespace {

using onnx::AttributeProto;

/// The type of an attribute; the oldest files do not state it.
AttributeProto::AttributeType type_of(const AttributeProto& a) {
  if (a.has_type() && a.type() != AttributeProto::UNDEFINED)
    return a.type();
  const std::pair<bool, AttributeProto::AttributeType> present[] = {
      {a.has_f(), AttributeProto::FLOAT},        {a.has_i(), AttributeProto::INT},
      {a.has_s(), AttributeProto::STRING},       {a.has_t(), AttributeProto::TENSOR},
      {a.has_g(), AttributeProto::GRAPH},        {a.floats_size() > 0, AttributeProto::FLOATS},
      {a.has_tp(), AttributeProto::TYPE_PROTO},  {a.has_sparse_tensor(), AttributeProto::SPARSE_TENSOR},
      {a.ints_size() > 0, AttributeProto::INTS}, {a.strings_size() > 0, AttributeProto::STRINGS},
  };
  for (const auto& [is_there, type] : present)
    if (is_there)
      return type;
  fail(errc::invalid_model, "attribute {} has neither type nor value", in_quotes(a.name()));
}

/// Sparse tensors are made dense when they are read: such a Constant is like any other.
bool is_sparse_value(const node& n, const std::string& attribute) {
  return n.op_type == "Constant" && n.domain.empty() && attribute == "sparse_value";
}

} // namespace

const AttributeProto* graph_builder::actual_attribute(const name_scope& s, const AttributeProto& stated) const {
  if (stated.ref_attr_name().empty())
    return &stated;
  if (!s.call)
    fail(errc::invalid_model, "attribute {} refers to {}, but it is not in a function", in_quotes(stated.name()),
         in_quotes(stated.ref_attr_name()));
  const auto it = s.call->find(stated.ref_attr_name());
  if (it == s.call->end())
    return nullptr; // absent at the call and without a default: the operator's own default holds
  if (stated.has_type() && stated.type() != AttributeProto::UNDEFINED && stated.type() != type_of(*it->second))
    fail(errc::invalid_model, "attribute {} refers to {}, which has another type", in_quotes(stated.name()),
         in_quotes(stated.ref_attr_name()));
  return it->second;
}

void graph_builder::load_attributes(name_scope& s, const onnx::NodeProto& proto, node& n) {
  // By name: captures are listed body by body in the order of the attributes' names.
  std::map<std::string, const AttributeProto*> by_name;
  for (const auto& a : proto.attribute()) {
    if (a.name().empty() || !by_name.emplace(a.name(), &a).second)
      fail(errc::invalid_model, "{}: attribute {} {}", describe(n), in_quotes(a.name()),
           a.name().empty() ? "has no name" : "is there twice");
  }
  try {
    std::erase_if(by_name, [](const auto& a) { return a.first.starts_with(own_attribute_prefix); });
    for (const auto& [name, stated] : by_name)
      if (const AttributeProto* actual = actual_attribute(s, *stated))
        n.attrs.set(is_sparse_value(n, name) ? "value" : name, load_attribute(s, *actual, n));
  } catch (const error& e) {
    fail(e.code(), "{}: {}", describe(n), e.what());
  }
}

attribute graph_builder::load_attribute(name_scope& s, const AttributeProto& a, node& n) {
  switch (type_of(a)) {
    case AttributeProto::FLOAT: return a.f();
    case AttributeProto::INT: return int64_t{a.i()};
    case AttributeProto::STRING: return a.s();
    case AttributeProto::FLOATS: return std::vector<float>(a.floats().begin(), a.floats().end());
    case AttributeProto::INTS: return std::vector<int64_t>(a.ints().begin(), a.ints().end());
    case AttributeProto::STRINGS: return std::vector<std::string>(a.strings().begin(), a.strings().end());
    case AttributeProto::TENSOR:
    case AttributeProto::SPARSE_TENSOR:
      if (!a.has_t() && !a.has_sparse_tensor())
        fail(errc::invalid_model, "attribute {} has no tensor", in_quotes(a.name()));
      return constant_tensor(s, a);
    case AttributeProto::TYPE_PROTO: // of Optional; the shape that it may state says nothing of an empty one
      if (!a.has_tp())
        fail(errc::invalid_model, "attribute {} has no type", in_quotes(a.name()));
      return static_cast<int64_t>(value_of(a.tp(), a.name()).type);
    case AttributeProto::GRAPH: {
      if (!a.has_g())
        fail(errc::invalid_model, "attribute {} has no graph", in_quotes(a.name()));
      canvas body = build_graph(a.g(), &s, s.opsets, s.call);
      n.inputs.insert(n.inputs.end(), body.captured_from.begin(), body.captured_from.end());
      n.captures += body.captured_from.size();
      return std::make_shared<const graph>(std::move(body.g));
    }
    default:
      fail(errc::unsupported, "attribute {} has a type that is not supported ({})", in_quotes(a.name()),
           onnx::AttributeProto_AttributeType_Name(a.type()));
  }
}

tensor graph_builder::constant_tensor(const name_scope& s, const AttributeProto& a) {
  const auto read = [&] { return a.has_t() ? reader_.read(a.t()).value : reader_.read_sparse(a.sparse_tensor()); };
  if (!s.call)
    return read();
  // A function may be inlined many times; its tensors are read once.
  auto& cached = function_tensors_[&a];
  if (!cached.defined())
    cached = read();
  return cached;
}

} // namespace troupe

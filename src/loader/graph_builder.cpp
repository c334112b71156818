#include "loader/graph_builder.hpp"

#include "base/limits.hpp"
#include "graph/element_symbols.hpp"
#include "ops/families.hpp"
#include "ops/registry.hpp"

namespace troupe {
namespace {

/// Counts a level of nesting as long as it lives.
class level {
public:
  explicit level(int64_t& depth) : depth_(depth) {
    if (++depth_ > limits::max_nesting) {
      --depth_;
      fail(errc::unsupported, "graphs and function calls are nested more than {} levels deep", limits::max_nesting);
    }
  }
  ~level() { --depth_; }
  level(const level&) = delete;
  level& operator=(const level&) = delete;

private:
  int64_t& depth_;
};

/// A dim of -1 is not known, as older exporters wrote it.
dim dim_of(const onnx::TensorShapeProto::Dimension& proto, const std::string& value_name, int axis) {
  if (proto.has_dim_value() && proto.dim_value() != -1) {
    if (proto.dim_value() < 0)
      fail(errc::invalid_model, "dim {} of {} is negative: {}", axis, in_quotes(value_name), proto.dim_value());
    return proto.dim_value();
  }
  if (!proto.dim_param().empty())
    return stated_symbol(proto.dim_param());
  return stated_symbol(value_name + "." + std::to_string(axis));
}

symbolic_shape shape_of(const onnx::TensorShapeProto& proto, const std::string& value_name) {
  if (static_cast<size_t>(proto.dim_size()) > limits::max_rank)
    fail(errc::unsupported, "{} has a rank of {}; at most {} is supported", in_quotes(value_name), proto.dim_size(),
         limits::max_rank);
  symbolic_shape dims;
  shape known;
  for (int i = 0; i < proto.dim_size(); ++i) {
    dims.push_back(dim_of(proto.dim(i), value_name, i));
    if (dims.back().is_constant())
      known.push_back(dims.back().constant());
  }
  // Whatever the symbols, the bytes must be countable (8 bytes is the largest element).
  bytes_of(dtype::int64, volume(known));
  return dims;
}

/// A sequence of tensors; its length is a dim of its own.
value sequence_value(const onnx::TypeProto_Sequence& proto, const std::string& name) {
  if (proto.elem_type().has_map_type())
    fail(errc::unsupported,
         "{} is a sequence of maps, which are not supported; only the result of ZipMap may be declared so",
         in_quotes(name));
  if (!proto.elem_type().has_tensor_type() || proto.elem_type().tensor_type().elem_type() == 0)
    fail(errc::unsupported, "{} is a sequence of something else than tensors of a stated type", in_quotes(name));
  const value element = value_of(proto.elem_type(), name);
  return {.name = name,
          .type = sequence_of(element.type),
          .dims = symbolic_shape{stated_symbol(name + ".0")},
          .elements = shapes_of_elements(element.dims)};
}

value optional_value(const onnx::TypeProto_Optional& proto, const std::string& name) {
  const value held = value_of(proto.elem_type(), name);
  if (held.type == dtype::undefined || is_optional(held.type))
    fail(errc::unsupported, "{} is an optional of something else than tensors or sequences of a stated type",
         in_quotes(name));
  return {.name = name,
          .type = optional_of(held.type),
          .dims = symbolic_shape{stated_symbol(name + ".0")},
          .elements = is_sequence(held.type) ? held.elements : shapes_of_elements(held.dims)};
}

} // namespace

value value_of(const onnx::TypeProto& type, const std::string& name) {
  if (type.has_sequence_type())
    return sequence_value(type.sequence_type(), name);
  if (type.has_optional_type())
    return optional_value(type.optional_type(), name);
  if (!type.has_tensor_type())
    fail(errc::unsupported, "{} is not a tensor, sequence or optional; maps and sparse tensors are not supported",
         in_quotes(name));
  value v{.name = name};
  if (type.tensor_type().elem_type() != 0)
    v.type = dtype_from_onnx(type.tensor_type().elem_type());
  if (type.tensor_type().has_shape())
    v.dims = shape_of(type.tensor_type().shape(), name);
  return v;
}

namespace {

/// What the names of a map's inputs end with.
constexpr const char *map_keys = ".keys", *map_values = ".values";

/// The value that a ValueInfoProto describes; a type that is not stated stays undefined.
value declared_value(const onnx::ValueInfoProto& proto) {
  if (!proto.has_type() || proto.type().value_case() == onnx::TypeProto::VALUE_NOT_SET)
    return {.name = proto.name()};
  return value_of(proto.type(), proto.name());
}

/// Whether an output is declared as a sequence of maps: of ZipMap, whose result is a tensor (ops/ml/features.cpp).
bool is_zipped(const onnx::ValueInfoProto& output) {
  return output.type().has_sequence_type() && output.type().sequence_type().elem_type().has_map_type();
}

} // namespace

graph_builder::graph_builder(const onnx::ModelProto& model, tensor_reader& reader, opset_map opsets, int64_t file_bytes)
    : model_(model), reader_(reader), opsets_(std::move(opsets)),
      inline_bytes_left_(checked_add(limits::inlined_bytes, checked_mul(file_bytes, limits::inlined_bytes_a_byte))) {}

graph graph_builder::build() {
  index_functions();
  graph g = build_graph(model_.graph(), nullptr, opsets_, nullptr).g;
  for (value_id v : g.inputs)
    if (g.values[v].type == dtype::undefined)
      fail(errc::invalid_model, "graph input {} has no element type", in_quotes(g.values[v].name));
  return g;
}

canvas graph_builder::build_graph(const onnx::GraphProto& proto, name_scope* parent, const opset_map& opsets,
                                  const call_attributes* call) {
  const level nested(depth_);
  canvas target;
  target.g.name = proto.name();
  target.g.opsets = opsets;
  name_scope s{target, parent, opsets, call};
  declare_initializers(s, proto);
  declare_inputs(s, proto);
  const auto first_result = static_cast<value_id>(target.g.values.size());
  declare_nodes(s, proto.node());
  declare_outputs(s, proto, first_result, static_cast<value_id>(target.g.values.size()));
  add_nodes(s, proto.node());
  graph& g = target.g;
  g.inputs.insert(g.inputs.end(), g.captured.begin(), g.captured.end());
  validate(g);
  sort_topologically(g);
  resolve(g);
  return target;
}

void graph_builder::declare_initializers(name_scope& s, const onnx::GraphProto& proto) {
  for (const auto& initializer : proto.initializer())
    declare_initializer(s, initializer.name(), reader_.read(initializer));
  for (const auto& initializer : proto.sparse_initializer())
    declare_initializer(s, initializer.values().name(), {reader_.read_sparse(initializer), ""});
}

/// Of several initializers of one name, the last counts.
void graph_builder::declare_initializer(name_scope& s, const std::string& name, sourced_tensor t) {
  const auto known = s.names.find(name);
  const value_id id = known != s.names.end() ? known->second : s.declare(name, {});
  value& v = s.target.g.values[id];
  v.type = t.value.type();
  v.dims = to_symbolic(t.value.dims());
  v.constant = weight::from_tensor(std::move(t.value), t.source);
}

void graph_builder::declare_inputs(name_scope& s, const onnx::GraphProto& proto) {
  std::unordered_set<std::string> seen;
  for (const auto& input : proto.input()) {
    if (!seen.insert(input.name()).second)
      fail(errc::invalid_model, "the graph has two inputs called {}", in_quotes(input.name()));
    const auto it = s.names.find(input.name());
    if (input.type().has_map_type()) {
      declare_map(s, input);
      seen.insert({input.name() + map_keys, input.name() + map_values});
    } else if (it == s.names.end()) {
      s.target.g.inputs.push_back(s.declare(input.name(), declared_value(input)));
    } else if (!s.parent) {
      declare_default(s, it->second, input);
    }
  }
}

/// An initializer that contradicts its declaration stays the constant that it is.
void graph_builder::declare_default(name_scope& s, value_id initializer, const onnx::ValueInfoProto& input) {
  value& v = s.target.g.values[initializer];
  const value stated = declared_value(input);
  if (stated.type != dtype::undefined && stated.type != v.type)
    return;
  bool fits = !stated.dims || stated.dims->size() == v.dims->size();
  for (size_t axis = 0; fits && stated.dims && axis < v.dims->size(); ++axis)
    fits = !(*stated.dims)[axis].is_constant() || (*stated.dims)[axis] == (*v.dims)[axis];
  if (!fits)
    return;
  if (stated.dims)
    v.dims = stated.dims;
  s.target.defaults.insert(initializer);
  s.target.g.inputs.push_back(initializer);
}

void graph_builder::declare_map(name_scope& s, const onnx::ValueInfoProto& input) {
  const onnx::TypeProto_Map& map = input.type().map_type();
  const dtype key = map.key_type() == 0 ? dtype::undefined : dtype_from_onnx(map.key_type());
  const value held = value_of(map.value_type(), input.name());
  const bool single = !held.dims || held.dims->empty();
  if (key == dtype::undefined || held.type == dtype::undefined || !map.value_type().has_tensor_type() || !single)
    fail(errc::unsupported, "{} is a map of other than single numbers and strings of stated types",
         in_quotes(input.name()));
  for (const auto& [end, type] : {std::pair(map_keys, key), {map_values, held.type}})
    s.target.g.inputs.push_back(
        s.declare(input.name() + end, {.type = type, .dims = symbolic_shape{stated_symbol(input.name() + ".0")}}));
  if (s.names.count(input.name()))
    fail(errc::invalid_model, "the value name {} is defined twice", in_quotes(input.name()));
  s.maps.insert(input.name());
}

void graph_builder::declare_nodes(name_scope& s, const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes) {
  for (const auto& n : nodes)
    for (const auto& output : n.output())
      if (!output.empty())
        s.declare(output, {});
}

/// Values in [first_result, end_results) are what nodes produce: only those have the type that the output states.
void graph_builder::declare_outputs(name_scope& s, const onnx::GraphProto& proto, value_id first_result,
                                    value_id end_results) {
  graph& g = s.target.g;
  std::unordered_set<std::string> seen;
  for (const auto& output : proto.output()) {
    if (!seen.insert(output.name()).second) {
      if (s.parent) // a body's results are known by their places, a model's by their names
        g.outputs.push_back(s.lookup(output.name(), "the list of graph outputs"));
      continue;
    }
    const value_id id = s.lookup(output.name(), "the list of graph outputs");
    value stated = is_zipped(output) ? value{.name = output.name()} : declared_value(output);
    if (id >= first_result && id < end_results) {
      g.values[id].type = stated.type;
      g.values[id].dims = std::move(stated.dims);
    }
    g.outputs.push_back(id);
  }
}

void graph_builder::count_node(int64_t bytes) {
  if (++nodes_ > limits::max_nodes)
    fail(errc::unsupported, "with its functions inlined, the model has more than {} nodes", limits::max_nodes);
  if (!active_.empty() && (inline_bytes_left_ -= bytes) < 0)
    fail(errc::unsupported, "the model's functions grow too large when they are inlined");
}

void graph_builder::add_nodes(name_scope& s, const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes) {
  for (const auto& n : nodes) {
    if (n.op_type().empty())
      fail(errc::invalid_model, "node {} names no operator", in_quotes(n.name()));
    if (std::max(n.input_size(), n.output_size()) > limits::max_operands)
      fail(errc::unsupported, "node {} has {} inputs and {} outputs; at most {} are supported", in_quotes(n.name()),
           n.input_size(), n.output_size(), limits::max_operands);
    if (std::max(n.name().size(), n.op_type().size()) > limits::longest_name)
      fail(errc::unsupported, "the name of node {} or of its operator {} has more than {} characters",
           in_quotes(n.name()), in_quotes(n.op_type()), limits::longest_name);
    if (const function* f = function_of(n))
      inline_call(s, n, *f);
    else
      add_node(s, n);
  }
}

void graph_builder::add_operands(name_scope& s, const onnx::NodeProto& proto, node& n) {
  const bool takes_maps = n.domain == machine_learning && (n.op_type == "CastMap" || n.op_type == "DictVectorizer");
  if (!takes_maps || proto.input_size() != 1) {
    for (const auto& input : proto.input())
      n.inputs.push_back(input.empty() ? no_value : s.lookup(input, describe(n)));
    return;
  }
  const std::string& map = proto.input(0);
  if (!s.is_map(map))
    fail(errc::unsupported, "{} takes a map, but {} is none: only inputs of a model can be maps", describe(n),
         in_quotes(map));
  for (const char* end : {map_keys, map_values})
    n.inputs.push_back(s.lookup(map + end, describe(n)));
}

void graph_builder::add_node(name_scope& s, const onnx::NodeProto& proto) {
  node n;
  n.op_type = proto.op_type();
  n.domain = canonical_domain(proto.domain());
  n.name = s.prefix + (proto.name().empty() && proto.output_size() > 0 ? proto.output(0) : proto.name());
  count_node(static_cast<int64_t>(active_.empty() ? 0 : proto.ByteSizeLong() + n.name.size() * 2));
  add_operands(s, proto, n);
  for (const auto& output : proto.output())
    n.outputs.push_back(output.empty() ? no_value : s.names.at(output));
  load_attributes(s, proto, n);
  if (s.call) // a function's nodes have the function's opsets, not the graph's
    resolve_node(n, s.opsets);
  s.target.g.add_node(std::move(n));
}

} // namespace troupe

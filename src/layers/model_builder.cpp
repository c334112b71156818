#include "layers/model_builder.hpp"

#include "ops/registry.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Adds the attributes that are stated.
void add_window(std::map<std::string, attribute>& attributes, const window_options& options) {
  for (const auto& [name, values] :
       {std::pair("strides", &options.strides), {"pads", &options.pads}, {"dilations", &options.dilations}})
    if (!values->empty())
      attributes[name] = *values;
}

} // namespace

// -- variables

model_builder& variable::owner() const {
  if (!owner_)
    fail(errc::invalid_argument, "a variable is used that stands for no value");
  return *owner_;
}

const value& variable::info() const {
  return owner().graph_.values[id_];
}

const std::string& variable::name() const {
  return info().name;
}

dtype variable::type() const {
  return info().type;
}

const symbolic_shape& variable::dims() const {
  return info().dims.value();
}

// -- the model's ends

model_builder::model_builder(std::string name, int64_t opset) {
  if (opset < 0 || opset > newest_opset(""))
    fail(errc::unsupported, "opset {} is not known; troupe knows 1 to {}, and 0 means the newest", opset,
         newest_opset(""));
  graph_.name = std::move(name);
  graph_.opsets = {{"", opset ? opset : newest_opset("")}, {"com.microsoft", newest_opset("com.microsoft")}};
}

void model_builder::take_name(const std::string& name, const char* what) {
  if (name.empty())
    fail(errc::invalid_argument, "the {} needs a name", what);
  if (!names_.insert(name).second)
    fail(errc::invalid_argument, "{} '{}': the model has something of that name already", what, name);
}

std::string model_builder::make_name(const std::string& stem) {
  std::string name = stem;
  while (!names_.insert(name).second)
    name = fmt::format("{}_{}", stem, ++last_number_.try_emplace(stem, 1).first->second);
  return name;
}

variable model_builder::input(const std::string& name, dtype type, symbolic_shape dims) {
  if (type == dtype::undefined)
    fail(errc::invalid_argument, "input '{}' needs an element type", name);
  for (const dim& d : dims)
    if (d.is_constant() && d.constant() < 0)
      fail(errc::invalid_argument, "input '{}' has a negative dim: {}", name, to_string(dims));
  take_name(name, "input");
  graph_.inputs.push_back(graph_.add_value({.name = name, .type = type, .dims = std::move(dims)}));
  return {*this, graph_.inputs.back()};
}

variable model_builder::constant(tensor bytes, const std::string& name) {
  if (!bytes.defined())
    fail(errc::invalid_argument, "constant '{}' is given, but holds no tensor", name);
  if (!name.empty())
    take_name(name, "constant");
  return {*this, graph_.add_constant(name.empty() ? make_name("constant") : name, std::move(bytes))};
}

void model_builder::output(const std::string& name, const variable& v) {
  check_owner(v, fmt::format("output '{}'", name));
  const auto is_listed = [&](const std::vector<value_id>& ids) {
    return std::find(ids.begin(), ids.end(), v.id_) != ids.end();
  };
  if (name.empty() || name == v.name()) {
    if (is_listed(graph_.outputs))
      fail(errc::invalid_argument, "'{}' is an output already", v.name());
    graph_.outputs.push_back(v.id_);
    return;
  }
  // Inputs, constants and other outputs keep the name they have.
  if (is_listed(graph_.inputs) || is_listed(graph_.outputs) || v.info().constant)
    return output(name, call("Identity", {v}, {}, {.name = name}));
  take_name(name, "output");
  graph_.values[v.id_].name = name;
  graph_.outputs.push_back(v.id_);
}

// -- calls

void model_builder::check_owner(const variable& v, const std::string& where) const {
  if (!v)
    fail(errc::invalid_argument, "{} is given a variable that stands for no value", where);
  if (v.owner_ != this)
    fail(errc::invalid_argument, "{} is given '{}', which belongs to another model", where, v.name());
}

value_id model_builder::id_of(const argument& a, const std::string& call, size_t position) {
  const std::string where = fmt::format("{}: input {}", call, position);
  if (const auto* v = std::get_if<variable>(&a)) {
    if (!*v)
      return no_value;
    check_owner(*v, where);
    return v->id_;
  }
  const tensor& bytes = std::get<tensor>(a);
  if (!bytes.defined())
    fail(errc::invalid_argument, "{} is a tensor without elements or type", where);
  return graph_.add_constant("", bytes);
}

std::vector<variable> model_builder::call_all(const std::string& op_type, const std::vector<argument>& inputs,
                                              const std::map<std::string, attribute>& attributes,
                                              const call_options& options) {
  const size_t values_before = graph_.values.size();
  node n{.op_type = op_type, .domain = options.domain};
  if (!options.name.empty())
    take_name(options.name, "call");
  n.name = options.name.empty() ? make_name(op_type) : options.name;
  try {
    for (const auto& [name, value] : attributes)
      n.attrs.set(name, value);
    for (size_t i = 0; i < inputs.size(); ++i) {
      n.inputs.push_back(id_of(inputs[i], describe(n), i));
      if (std::holds_alternative<tensor>(inputs[i]))
        graph_.values[n.inputs.back()].name = make_name(fmt::format("{}.{}", n.name, i));
    }
    while (!n.inputs.empty() && n.inputs.back() == no_value)
      n.inputs.pop_back();
    for (size_t i = 0; i < options.outputs; ++i)
      n.outputs.push_back(graph_.add_value({.name = i == 0 ? n.name : make_name(fmt::format("{}:{}", n.name, i))}));
    resolve_node(n, graph_.opsets);
    infer_node(graph_, n);
  } catch (...) {
    graph_.values.resize(values_before);
    names_.erase(n.name);
    throw;
  }
  std::vector<variable> results;
  for (value_id v : n.outputs)
    results.push_back({*this, v});
  graph_.add_node(std::move(n));
  return results;
}

variable model_builder::call(const std::string& op_type, const std::vector<argument>& inputs,
                             const std::map<std::string, attribute>& attributes, const call_options& options) {
  if (options.outputs != 1)
    fail(errc::invalid_argument, "{}: `call` makes one output; use `call_all` for {}", op_type, options.outputs);
  return call_all(op_type, inputs, attributes, options)[0];
}

// -- layers

variable model_builder::linear(const argument& x, const argument& weight, const argument& bias) {
  const variable product = matmul(x, weight);
  const auto* absent = std::get_if<variable>(&bias);
  return absent && !*absent ? product : add(product, bias);
}

variable model_builder::conv(const argument& x, const argument& weight, const argument& bias,
                             const window_options& options) {
  std::map<std::string, attribute> attributes{{"group", options.group}};
  add_window(attributes, options);
  return call("Conv", {x, weight, bias}, attributes);
}

variable model_builder::attention(const argument& query, const argument& key, const argument& value, int64_t heads,
                                  bool causal) {
  return call("Attention", {query, key, value},
              {{"q_num_heads", heads}, {"kv_num_heads", heads}, {"is_causal", int64_t{causal}}});
}

variable model_builder::pool(const char* op_type, const argument& x, std::vector<int64_t> window,
                             const window_options& options) {
  if (options.group != 1)
    fail(errc::invalid_argument, "{}: a pooling has no groups", op_type);
  std::map<std::string, attribute> attributes{{"kernel_shape", std::move(window)}};
  add_window(attributes, options);
  return call(op_type, {x}, attributes);
}

variable model_builder::max_pool(const argument& x, std::vector<int64_t> window, const window_options& options) {
  return pool("MaxPool", x, std::move(window), options);
}

variable model_builder::average_pool(const argument& x, std::vector<int64_t> window, const window_options& options) {
  return pool("AveragePool", x, std::move(window), options);
}

variable model_builder::layer_norm(const argument& x, const argument& scale, const argument& bias, float epsilon) {
  return call("LayerNormalization", {x, scale, bias}, {{"axis", int64_t{-1}}, {"epsilon", epsilon}});
}

variable model_builder::rms_norm(const argument& x, const argument& scale, float epsilon) {
  return call("RMSNormalization", {x, scale}, {{"axis", int64_t{-1}}, {"epsilon", epsilon}});
}

variable model_builder::batch_norm(const argument& x, const argument& scale, const argument& bias, const argument& mean,
                                   const argument& variance, float epsilon) {
  return call("BatchNormalization", {x, scale, bias, mean, variance}, {{"epsilon", epsilon}});
}

variable model_builder::mean(const argument& x, std::vector<int64_t> axes, bool keep_dims) {
  const auto count = static_cast<int64_t>(axes.size());
  return call("ReduceMean", {x, tensor::of<int64_t>({count}, axes)}, {{"keepdims", int64_t{keep_dims}}});
}

variable model_builder::reshape(const argument& x, const symbolic_shape& dims) {
  const auto rank = static_cast<int64_t>(dims.size());
  if (is_constant(dims))
    return call("Reshape", {x, tensor::of<int64_t>({rank}, constants(dims))});
  // The host knows the elements once the symbols have values.
  const value_id wanted =
      graph_.add_value({.name = make_name("shape"), .type = dtype::int64, .dims = symbolic_shape{rank}, .known = dims});
  return call("Reshape", {x, variable(*this, wanted)});
}

variable model_builder::transpose(const argument& x, std::vector<int64_t> order) {
  return call("Transpose", {x}, {{"perm", std::move(order)}});
}

variable operator+(const variable& a, const argument& b) {
  return a.owner().add(a, b);
}

variable operator-(const variable& a, const argument& b) {
  return a.owner().sub(a, b);
}

variable operator*(const variable& a, const argument& b) {
  return a.owner().mul(a, b);
}

variable operator/(const variable& a, const argument& b) {
  return a.owner().div(a, b);
}

// -- the whole

void model_builder::check_all_needed() const {
  const adjacency edges = adjacency_of(graph_);
  std::vector<bool> needed(graph_.values.size(), false);
  for (value_id v : graph_.outputs)
    needed[v] = true;
  for (auto n = static_cast<node_id>(graph_.nodes.size()); n-- > 0;) {
    const node& call = graph_.nodes[n];
    if (std::none_of(call.outputs.begin(), call.outputs.end(), [&](value_id v) { return needed[v]; }))
      fail(errc::invalid_model, "no output of the model depends on {}: make it an output, or leave it out",
           describe(call));
    for (value_id v : call.inputs)
      if (v != no_value)
        needed[v] = true;
  }
  for (value_id v : graph_.inputs)
    if (!needed[v])
      fail(errc::invalid_model, "no output of the model depends on the input '{}'", graph_.values[v].name);
}

graph model_builder::build() const {
  if (graph_.outputs.empty())
    fail(errc::invalid_model, "the model '{}' has no output: declare one with `output`", graph_.name);
  check_all_needed();
  graph g = graph_;
  const adjacency edges = adjacency_of(g);
  for (size_t v = 0; v < g.values.size(); ++v)
    if (edges.producer[v] >= 0 && !edges.is_output[v]) {
      g.values[v].type = dtype::undefined;
      g.values[v].dims.reset();
      g.values[v].known.reset();
    }
  validate(g);
  return g;
}

} // namespace troupe

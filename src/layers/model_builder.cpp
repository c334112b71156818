#include "troupe/model_builder.hpp"

#include "ops/registry.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

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

struct model_builder::state {
  troupe::graph graph;
  std::unordered_set<std::string> names;               // of values and nodes
  std::unordered_map<std::string, size_t> last_number; // of made-up names, by stem

  void take_name(const std::string& name, const char* what);
  std::string make_name(const std::string& stem);
  value_id id_of(const argument& a, const std::string& call, size_t position);
  void check_owner(const variable& v, const std::string& where) const;
  void check_all_needed() const;
};

built_model::built_model(graph source) : source_(std::make_shared<const graph>(std::move(source))) {}

// -- variables

model_builder& variable::owner() const {
  if (!owner_)
    fail(errc::invalid_argument, "a variable is used that names no value");
  return *owner_;
}

const value& variable::info() const {
  return owner().state_->graph.values[id_];
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

model_builder::model_builder(std::string name, int64_t opset) : state_(std::make_unique<state>()) {
  if (opset < 0 || opset > newest_opset(""))
    fail(errc::unsupported, "opset {} is not known; troupe knows 1 to {}, and 0 means the newest", opset,
         newest_opset(""));
  state_->graph.name = std::move(name);
  state_->graph.opsets = {{"", opset ? opset : newest_opset("")}};
  for (const char* domain : {"ai.onnx.ml", "com.microsoft"})
    state_->graph.opsets[domain] = newest_opset(domain);
}

model_builder::~model_builder() = default;

void model_builder::state::take_name(const std::string& name, const char* what) {
  if (name.empty())
    fail(errc::invalid_argument, "the {} needs a name", what);
  if (!names.insert(name).second)
    fail(errc::invalid_argument, "{} '{}': the model has something of that name already", what, name);
}

std::string model_builder::state::make_name(const std::string& stem) {
  std::string name = stem;
  while (!names.insert(name).second)
    name = fmt::format("{}_{}", stem, ++last_number.try_emplace(stem, 1).first->second);
  return name;
}

variable model_builder::input(const std::string& name, dtype type, symbolic_shape dims) {
  if (type == dtype::undefined)
    fail(errc::invalid_argument, "input '{}' needs an element type", name);
  for (const dim& d : dims)
    if (d.is_constant() && d.constant() < 0)
      fail(errc::invalid_argument, "input '{}' has a negative dim: {}", name, to_string(dims));
  state_->take_name(name, "input");
  state_->graph.inputs.push_back(state_->graph.add_value({.name = name, .type = type, .dims = std::move(dims)}));
  return {*this, state_->graph.inputs.back()};
}

variable model_builder::constant(tensor bytes, const std::string& name) {
  if (!bytes.defined())
    fail(errc::invalid_argument, "constant '{}' is given, but holds no tensor", name);
  if (!name.empty())
    state_->take_name(name, "constant");
  return {*this, state_->graph.add_constant(name.empty() ? state_->make_name("constant") : name, std::move(bytes))};
}

void model_builder::output(const std::string& name, const variable& v) {
  state_->check_owner(v, fmt::format("output '{}'", name));
  const auto is_listed = [&](const std::vector<value_id>& ids) {
    return std::find(ids.begin(), ids.end(), v.id_) != ids.end();
  };
  if (name.empty() || name == v.name()) {
    if (is_listed(state_->graph.outputs))
      fail(errc::invalid_argument, "'{}' is an output already", v.name());
    state_->graph.outputs.push_back(v.id_);
    return;
  }
  // Inputs, constants and other outputs keep the name they have.
  if (is_listed(state_->graph.inputs) || is_listed(state_->graph.outputs) || v.info().constant)
    return output(name, call("Identity", {v}, {}, {.name = name}));
  state_->take_name(name, "output");
  state_->graph.values[v.id_].name = name;
  state_->graph.outputs.push_back(v.id_);
}

// -- calls

void model_builder::state::check_owner(const variable& v, const std::string& where) const {
  if (!v)
    fail(errc::invalid_argument, "{} is given a variable that names no value", where);
  if (v.owner_->state_.get() != this)
    fail(errc::invalid_argument, "{} is given '{}', which belongs to another model", where, v.name());
}

value_id model_builder::state::id_of(const argument& a, const std::string& call, size_t position) {
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
  return graph.add_constant("", bytes);
}

std::vector<variable> model_builder::call_all(const std::string& op_type, const std::vector<argument>& inputs,
                                              const std::map<std::string, attribute>& attributes,
                                              const call_options& options) {
  const size_t values_before = state_->graph.values.size();
  node n{.op_type = op_type, .domain = options.domain};
  if (!options.name.empty())
    state_->take_name(options.name, "call");
  n.name = options.name.empty() ? state_->make_name(op_type) : options.name;
  try {
    for (const auto& [name, value] : attributes)
      n.attrs.set(name, value);
    for (size_t i = 0; i < inputs.size(); ++i) {
      n.inputs.push_back(state_->id_of(inputs[i], describe(n), i));
      if (std::holds_alternative<tensor>(inputs[i]))
        state_->graph.values[n.inputs.back()].name = state_->make_name(fmt::format("{}.{}", n.name, i));
    }
    while (!n.inputs.empty() && n.inputs.back() == no_value)
      n.inputs.pop_back();
    for (size_t i = 0; i < options.outputs; ++i)
      n.outputs.push_back(
          state_->graph.add_value({.name = i == 0 ? n.name : state_->make_name(fmt::format("{}:{}", n.name, i))}));
    resolve_node(n, state_->graph.opsets);
    infer_node(state_->graph, n);
  } catch (...) {
    state_->graph.values.resize(values_before);
    state_->names.erase(n.name);
    throw;
  }
  std::vector<variable> results;
  for (value_id v : n.outputs)
    results.push_back({*this, v});
  state_->graph.add_node(std::move(n));
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
  const value_id wanted = state_->graph.add_value(
      {.name = state_->make_name("shape"), .type = dtype::int64, .dims = symbolic_shape{rank}, .known = dims});
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

void model_builder::state::check_all_needed() const {
  std::vector<bool> needed(graph.values.size(), false);
  for (value_id v : graph.outputs)
    needed[v] = true;
  for (auto n = static_cast<node_id>(graph.nodes.size()); n-- > 0;) {
    const node& call = graph.nodes[n];
    if (std::none_of(call.outputs.begin(), call.outputs.end(), [&](value_id v) { return needed[v]; }))
      fail(errc::invalid_model, "no output of the model depends on {}: make it an output, or leave it out",
           describe(call));
    for (value_id v : call.inputs)
      if (v != no_value)
        needed[v] = true;
  }
  for (value_id v : graph.inputs)
    if (!needed[v])
      fail(errc::invalid_model, "no output of the model depends on the input '{}'", graph.values[v].name);
}

built_model model_builder::build() const {
  if (state_->graph.outputs.empty())
    fail(errc::invalid_model, "the model '{}' has no output: declare one with `output`", state_->graph.name);
  state_->check_all_needed();
  graph g = state_->graph;
  const adjacency edges = adjacency_of(g);
  // Inner results lose what is inferred, as in a loaded graph: the rewrite infers it from dims that callers may change.
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

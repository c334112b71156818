// Bodies that take the place of their node: branches whose condition is known, loops of a few known iterations.
#include "ops/evaluate.hpp"
#include "ops/onnx/control.hpp"
#include "rewrite/control_flow.hpp"
#include "rewrite/match.hpp"

namespace troupe {
namespace {

/// Returns the name of something copied: names of loops inside each other would grow with the depth.
std::string copied_name(const std::string& prefix, const std::string& name) {
  return (prefix + name.substr(0, limits::longest_copied_name)).substr(0, limits::longest_copied_name);
}

void check_type(const node_body& body, const value& input, const value& given) {
  if (input.type != dtype::undefined && given.type != dtype::undefined && input.type != given.type)
    fail(errc::invalid_model, "input '{}' of body '{}' is {}, but it is given {}", input.name, body.name,
         to_string(input.type), to_string(given.type));
}

/// Copies bodies of one node into the graph around it.
class body_copier {
public:
  body_copier(graph& outer, const node& n, const control_call& call, rewrite_context& context)
      : outer_(outer), node_(n), name_(copied_name("", n.name)), call_(call), context_(context) {}

  std::vector<node> branch(bool condition) {
    const node_body& body = call_.bodies[condition ? then_branch : else_branch];
    const std::vector<value_id> results = copy(body, {}, "");
    for (size_t i = 0; i < node_.outputs.size(); ++i)
      forward(results[i], node_.outputs[i]);
    return std::move(nodes_);
  }

  std::vector<node> loop(int64_t trips) {
    value_id condition = node_.inputs[1];
    if (condition == no_value)
      condition = constant("condition", tensor::scalar(true));
    std::vector<value_id> carried = carried_at_first();
    const shape dims = iteration_dims(*call_.bodies.front().program);
    for (int64_t t = 0; t < trips; ++t) {
      std::vector<value_id> given{constant("iteration", tensor::scalar(t).reshaped(dims)), condition};
      given.insert(given.end(), carried.begin(), carried.end());
      take(copy(call_.bodies.front(), given, fmt::format("[{}]", t)), carried);
    }
    finish(carried);
    return std::move(nodes_);
  }

  std::vector<node> scan(int64_t trips) {
    std::vector<value_id> carried = carried_at_first();
    for (int64_t t = 0; t < trips; ++t) {
      std::vector<value_id> given = carried;
      for (size_t i = 0; i < call_.scan_inputs.size(); ++i)
        given.push_back(element(node_.inputs[call_.carried + i], call_.scan_inputs[i], t, trips));
      take(copy(call_.bodies.front(), given, fmt::format("[{}]", t)), carried);
    }
    finish(carried);
    return std::move(nodes_);
  }

private:
  std::vector<value_id> carried_at_first() {
    scanned_.resize(call_.scan_outputs.size());
    const auto first = node_.inputs.begin() + static_cast<ptrdiff_t>(call_.leading_inputs());
    return {first, first + static_cast<ptrdiff_t>(call_.carried)};
  }

  /// Takes the results of one iteration.
  void take(const std::vector<value_id>& results, std::vector<value_id>& carried) {
    const auto first = results.begin() + static_cast<ptrdiff_t>(call_.leading_outputs());
    const auto scanned = first + static_cast<ptrdiff_t>(call_.carried);
    carried.assign(first, scanned);
    for (size_t i = 0; i < scanned_.size(); ++i)
      scanned_[i].push_back(scanned[static_cast<ptrdiff_t>(i)]);
  }

  void finish(const std::vector<value_id>& carried) {
    for (size_t i = 0; i < node_.outputs.size(); ++i)
      if (i < call_.carried)
        forward(carried[i], node_.outputs[i]);
      else
        stack(scanned_[i - call_.carried], call_.scan_outputs[i - call_.carried], node_.outputs[i]);
  }

  /// Adds a copy of the body's nodes over `given`, its formal inputs; returns its outputs.
  std::vector<value_id> copy(const node_body& body, std::span<const value_id> given, const std::string& suffix) {
    return copy_body(outer_, node_, body, given, name_ + suffix, context_, nodes_);
  }

  value_id constant(const std::string& name, tensor bytes) {
    return outer_.add_constant(take_name(context_, name_ + "/" + name), std::move(bytes));
  }

  /// Adds a call with one output and returns that.
  value_id call(std::string_view op, std::vector<value_id> inputs, attributes attrs = {}) {
    const std::string name = take_name(context_, fmt::format("{}/{}", name_, op));
    const value_id out = outer_.add_value({.name = name});
    nodes_.push_back(make_node(name, "", op, std::move(inputs), {out}, std::move(attrs)));
    return out;
  }

  void forward(value_id from, value_id to) {
    if (to != no_value)
      nodes_.push_back(make_node(outer_.values[to].name + "/forward", "", "Identity", {from}, {to}));
  }

  /// Element `t` of a scan input.
  value_id element(value_id scanned, const scan_walk& walk, int64_t t, int64_t trips) {
    attributes attrs;
    attrs.set("axis", walk.axis);
    return call("Gather", {scanned, constant("index", tensor::scalar(walk.reverse ? trips - 1 - t : t))},
                std::move(attrs));
  }

  /// Joins a scan output's elements along a new axis.
  void stack(std::vector<value_id> elements, const scan_walk& walk, value_id to) {
    if (to == no_value)
      return;
    if (walk.reverse)
      std::reverse(elements.begin(), elements.end());
    const value_id axes = constant("axes", tensor::of<int64_t>({1}, std::span(&walk.axis, 1)));
    for (value_id& v : elements)
      v = call("Unsqueeze", {v, axes});
    attributes attrs;
    attrs.set("axis", walk.axis);
    nodes_.push_back(
        make_node(outer_.values[to].name + "/stack", "", "Concat", std::move(elements), {to}, std::move(attrs)));
  }

  graph& outer_;
  const node& node_;
  const std::string name_; // of the node, shortened
  const control_call& call_;
  rewrite_context& context_;
  std::vector<node> nodes_;
  std::vector<std::vector<value_id>> scanned_; // by scan output
};

/// Returns the element that the host knows of input `i`, which has one.
std::optional<int64_t> known_element(graph& g, const node& n, size_t i) {
  node call = n;
  const infer_context c(g, call);
  const auto elements = c.has_input(i) ? c.known(i) : std::nullopt;
  if (!elements || elements->size() != 1 || !elements->front().is_constant())
    return std::nullopt;
  return elements->front().constant();
}

bool is_true(const tensor& t) {
  return t.type() == dtype::boolean && t.size() == 1 && *t.data<uint8_t>() != 0;
}

/// Whether a Loop's body, as the file has it, hands its condition on.
bool hands_condition_on(const graph& body) {
  const adjacency edges = adjacency_of(body);
  value_id v = body.outputs.at(0);
  while (edges.producer[v] >= 0 && is_op(body.nodes[edges.producer[v]], "Identity"))
    v = body.nodes[edges.producer[v]].inputs[0];
  if (v == body.inputs.at(1))
    return true;
  if (edges.producer[v] < 0)
    return body.values[v].constant && is_true(body.values[v].constant->leaf);
  const tensor* literal = literal_of(body.nodes[edges.producer[v]]);
  return literal && is_true(*literal);
}

/// Returns the length of a Scan's inputs along the scanned axes, if all of them say it.
std::optional<int64_t> known_length(const graph& g, const node& n, const control_call& call) {
  std::optional<int64_t> length;
  for (size_t i = 0; i < call.scan_inputs.size(); ++i) {
    const value& scanned = g.values[n.inputs[call.carried + i]];
    if (!scanned.dims)
      return std::nullopt;
    const dim& d = (*scanned.dims)[normalize_axis(call.scan_inputs[i].axis, scanned.dims->size())];
    if (!d.is_constant() || (length && *length != d.constant()))
      return std::nullopt;
    length = d.constant();
  }
  return length;
}

/// Returns how many iterations a Loop or Scan has if that is known and it always has as many.
std::optional<int64_t> known_trips(graph& g, const node& n, const control_call& call) {
  if (call.kind == control_kind::scan)
    return known_length(g, n, call);
  const auto is_optional_value = [&](value_id v) { return v != no_value && is_optional(g.values[v].type); };
  if (std::ranges::any_of(n.inputs,
                          is_optional_value)) // an iteration may make what the optional holds, not an optional
    return std::nullopt;
  const bool starts = n.inputs[1] == no_value || known_element(g, n, 1) == 1;
  if (!starts || !hands_condition_on(*call.bodies.front().program))
    return std::nullopt;
  return known_element(g, n, 0);
}

} // namespace

std::optional<std::vector<node>> unroll(graph& g, const node& n, rewrite_context& context) {
  const control_call call = parse_control(n);
  body_copier copier(g, n, call, context);
  if (call.kind == control_kind::branch) {
    const auto condition = known_element(g, n, 0);
    return condition ? std::optional(copier.branch(*condition != 0)) : std::nullopt;
  }
  if (call.kind == control_kind::map)
    return std::nullopt;
  const std::optional<int64_t> trips = known_trips(g, n, call);
  if (!trips || *trips < 1 || *trips > limits::copied_iterations)
    return std::nullopt;
  const int64_t nodes = *trips * static_cast<int64_t>(count_nodes(*call.bodies.front().program));
  if (nodes > limits::copied_nodes || nodes > context.copies_left)
    return std::nullopt;
  context.copies_left -= nodes;
  return call.kind == control_kind::loop ? copier.loop(*trips) : copier.scan(*trips);
}

std::vector<value_id> copy_body(graph& outer, const node& n, const node_body& body, std::span<const value_id> given,
                                const std::string& name, rewrite_context& context, std::vector<node>& nodes) {
  graph source = prepare_body(*body.program);
  std::vector<value_id> copied(source.values.size(), no_value);
  for (size_t i = 0; i < source.inputs.size(); ++i) {
    const bool formal = i < given.size();
    copied[source.inputs[i]] = formal ? given[i] : n.inputs[body.first_capture + i - given.size()];
    check_type(body, source.values[source.inputs[i]], outer.values[copied[source.inputs[i]]]);
  }
  const std::string prefix = name + "/";
  for (size_t v = 0; v < source.values.size(); ++v)
    if (copied[v] == no_value) {
      value& inside = source.values[v];
      inside.name = take_name(context, copied_name(prefix, inside.name));
      if (!inside.constant) { // inference says what it is
        inside.type = dtype::undefined;
        inside.dims.reset();
      }
      copied[v] = outer.add_value(std::move(inside));
    }
  for (node& inside : source.nodes) {
    for (auto* ids : {&inside.inputs, &inside.outputs})
      for (value_id& v : *ids)
        v = v == no_value ? v : copied[v];
    inside.name = copied_name(prefix, inside.name);
    nodes.push_back(std::move(inside));
  }
  std::vector<value_id> results;
  for (value_id v : source.outputs)
    results.push_back(copied[v]);
  return results;
}

} // namespace troupe

// Loops whose carried values change their rank: the iterations that do so go before the loop, one by one.
//
// A body is rewritten for the ranks of what it is given. If an iteration gives another rank, the next one needs a body
// of its own. So the loop becomes
//
//   If it has an iteration: that iteration's nodes; If it has another one: …
//
// until an iteration keeps all ranks: the rest is a Loop as ever. The results of these Ifs have different ranks, so
// what reads them moves into the branches (branches.cpp). If only the run tells an iteration's rank, because of an If
// in the body, the rest of the loop is such a reader.
//
// In an iteration of its own the iteration's number is a constant, and in the rest it is at least the number of those
// before: an If that asks for the first iteration is decided in both.
//
// Iterations that the body cannot take, or that are more than `limits::peeled_iterations`, are refused in the run that
// comes to them.
#include "ops/onnx/control.hpp"
#include "rewrite/control_flow.hpp"
#include "rewrite/match.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// What the next iteration of a Loop does to ranks.
struct rank_changes {
  std::vector<bool> carried; // by carried value: whether its rank is another one afterwards, or open
  bool open = false;         // whether only the run tells the rank of a result
  bool any() const { return open || std::ranges::find(carried, true) != carried.end(); }
};

/// Reads that off a Loop whose body is rewritten. No changes, if it carries optionals, since an iteration may make what
/// they hold, not an optional; nor if what it gathers are no tensors: inference says so.
rank_changes changes_of(const node& n) {
  const control_call call = parse_control(n);
  const graph& body = *call.bodies.front().program;
  rank_changes none{.carried = std::vector<bool>(call.carried)};
  rank_changes found = none;
  for (size_t i = 0; i < call.carried + call.scan_outputs.size(); ++i) {
    const value& after = body.values[body.outputs[call.leading_outputs() + i]];
    if (i >= call.carried) {
      if (i >= n.outputs.size() || n.outputs[i] == no_value)
        continue;
      if (is_container(after.type))
        return none;
      found.open |= !after.dims;
      continue;
    }
    const value& before = body.values[body.inputs[call.leading_inputs() + i]];
    if (is_optional(before.type))
      return none;
    found.open |= !after.dims;
    found.carried[i] = before.type == after.type && (!after.dims || after.dims->size() != before.dims->size());
  }
  return found;
}

/// Takes the first iteration of a Loop out of it.
class iteration_peeler {
public:
  iteration_peeler(graph& outer, const node& source, control_call rewritten, rank_changes changes,
                   rewrite_context& context)
      : outer_(outer), source_(source), body_(bodies_of(source).front()), rewritten_(std::move(rewritten)),
        changes_(std::move(changes)), context_(context), before_(source.attrs.integer(iterations_before, 0)),
        name_((source.name + fmt::format("[{}]", before_)).substr(0, limits::longest_copied_name)) {}

  std::vector<node> run() {
    if (!source_.attrs.has(iterations_before))
      enter();
    else
      take_iteration();
    return std::move(nodes_);
  }

private:
  /// The loop if it has an iteration, else what it is given.
  void enter() {
    node entered = source_;
    entered.attrs.set(std::string(iterations_before), int64_t{0});
    const value_id condition = go_on(source_.inputs[0], source_.inputs[1]);
    std::vector<node> none;
    for (size_t i = 0; i < source_.outputs.size(); ++i)
      if (has_output(i))
        none.push_back(forward(i < rewritten_.carried ? carried(source_, i) : empty(i), source_.outputs[i]));
    add_choice(condition, {std::move(none), {std::move(entered)}});
  }

  /// One iteration, and after it the loop if it has another one.
  void take_iteration() {
    check_limits();
    const std::vector<value_id> results = copy_iteration();
    node rest = source_;
    rest.attrs.set(std::string(iterations_before), before_ + 1);
    rest.attrs.set(body_.name, later_iterations());
    if (rest.inputs[0] != no_value)
      rest.inputs[0] = call("Sub", {rest.inputs[0], constant("one", tensor::scalar(int64_t{1}))});
    std::copy_n(results.begin(), 1 + rewritten_.carried, rest.inputs.begin() + 1);
    const value_id condition = go_on(rest.inputs[0], rest.inputs[1]);

    std::vector<node> ended, joined;
    for (size_t i = 0; i < source_.outputs.size(); ++i) {
      if (!has_output(i))
        continue;
      const bool scanned = i >= rewritten_.carried;
      const value_id result =
          scanned ? call("Unsqueeze", {results[1 + i], constant("axes", first_axis())}) : results[1 + i];
      ended.push_back(forward(result, source_.outputs[i]));
      if (scanned) {
        rest.outputs[i] = fresh("rest");
        joined.push_back(join(result, rest.outputs[i], i));
      }
    }
    joined.insert(joined.begin(), std::move(rest));
    add_choice(condition, {std::move(ended), std::move(joined)});
  }

  void check_limits() {
    if (before_ >= limits::peeled_iterations)
      fail(errc::unsupported, "its carried values change their rank in each of its first {} iterations", before_);
    const auto nodes = static_cast<int64_t>(count_nodes(*body_.program));
    if (changes_.open && nodes << context_.depth > limits::open_iteration_nodes)
      fail(errc::unsupported, "only the run tells which rank its carried values have after iteration {}", before_);
    if (nodes > context_.copies_left)
      fail(errc::unsupported, "carried values change their rank in too many iterations of the model's loops");
    context_.copies_left -= nodes;
  }

  /// Adds the first iteration's nodes; returns what its outputs are.
  std::vector<value_id> copy_iteration() {
    const shape dims = iteration_dims(*body_.program);
    std::vector<value_id> given{constant("iteration", tensor::scalar(int64_t{0}).reshaped(dims)), source_.inputs[1]};
    if (given[1] == no_value)
      given[1] = constant("condition", tensor::scalar(true));
    for (size_t i = 0; i < rewritten_.carried; ++i)
      given.push_back(carried(source_, i));
    return copy_body(outer_, source_, body_, given, name_, context_, nodes_);
  }

  /// Returns the body for a loop without the first iteration.
  graph_ptr later_iterations() const {
    auto body = std::make_shared<graph>(*body_.program);
    for (size_t i = 0; i < changes_.carried.size(); ++i)
      if (changes_.carried[i])
        body->values[body->inputs[2 + i]].dims.reset();
    const value_id iteration = body->inputs[0];
    const value_id earlier = body->add_value(body->values[iteration]);
    body->values[earlier].name += "/earlier";
    body->inputs[0] = earlier;
    const value_id one = body->add_constant(body->values[iteration].name + "/one", tensor::scalar(int64_t{1}));
    body->add_node(make_node(name_ + "/iteration", "", "Add", {earlier, one}, {iteration}));
    return body;
  }

  /// Adds what says whether a loop of these trips and this condition has an iteration.
  value_id go_on(value_id trips, value_id condition) {
    if (trips == no_value)
      return condition == no_value ? constant("go", tensor::scalar(true)) : condition;
    const value_id some = call("Greater", {trips, constant("none", tensor::scalar(int64_t{0}))});
    return condition == no_value ? some : call("And", {some, condition});
  }

  /// Adds an If that makes the results of the loop, whose else branch comes first.
  void add_choice(value_id condition, const std::array<std::vector<node>, 2>& branches) {
    const auto nothing = std::make_shared<graph>();
    nothing->opsets = outer_.opsets;
    node choice = make_node(name_, "", "If", {condition}, {});
    choice.attrs.set("else_branch", graph_ptr(nothing));
    choice.attrs.set("then_branch", graph_ptr(nothing));
    choice.attrs.set(std::string(iterations_before), before_);
    if (changes_.open || context_.depth > 0)
      choice.attrs.set(std::string(takes_readers), int64_t{1});
    std::vector<value_id> results;
    for (const value_id v : source_.outputs)
      if (v != no_value) {
        results.push_back(v);
        outer_.values[v].dims.reset();
      }
    nodes_.push_back(extend_branches(outer_, choice, branches, std::move(results), context_));
  }

  /// Scan output `i` of no iterations.
  value_id empty(size_t i) {
    const graph& body = *rewritten_.bodies.front().program;
    const value& element = body.values[body.outputs[1 + i]];
    shape dims{0};
    if (element.dims)
      for (const dim& d : *element.dims)
        dims.push_back(d.is_constant() ? d.constant() : 0);
    return constant("nothing", tensor(element.type, dims));
  }

  bool has_output(size_t i) const { return source_.outputs[i] != no_value; }
  value_id carried(const node& n, size_t i) const { return n.inputs[rewritten_.leading_inputs() + i]; }
  static tensor first_axis() { return tensor::scalar(int64_t{0}).reshaped({1}); }
  value_id fresh(std::string_view what) {
    return outer_.add_value({.name = take_name(context_, fmt::format("{}/{}", name_, what))});
  }
  value_id constant(std::string_view what, tensor bytes) {
    return outer_.add_constant(take_name(context_, fmt::format("{}/{}", name_, what)), std::move(bytes));
  }

  /// Adds a call with one output and returns that.
  value_id call(std::string_view op, std::vector<value_id> inputs) {
    const value_id made = fresh(op);
    nodes_.push_back(make_node(outer_.values[made].name, "", op, std::move(inputs), {made}));
    return made;
  }

  node forward(value_id from, value_id to) const {
    return make_node(outer_.values[to].name + "/forward", "", "Identity", {from}, {to});
  }

  /// Joins scan output `i` of the first iteration, which has a dim for them, and of the rest.
  node join(value_id first, value_id rest, size_t i) const {
    attributes attrs;
    attrs.set("axis", int64_t{0});
    return make_node(fmt::format("{}/output_{}", source_.name, i), "", "Concat", {first, rest}, {source_.outputs[i]},
                     std::move(attrs));
  }

  graph& outer_;
  const node& source_;
  const node_body body_;
  const control_call rewritten_;
  const rank_changes changes_;
  rewrite_context& context_;
  const int64_t before_;   // iterations that were taken out of the loop before
  const std::string name_; // of the iteration
  std::vector<node> nodes_;
};

} // namespace

std::optional<std::vector<node>> rewrite_loop(graph& g, node& n, rewrite_context& context) {
  const node source = n;
  rewrite_bodies(g, n, context);
  rank_changes changes = changes_of(n);
  if (changes.open && n.attrs.has(iterations_before)) { // an If in the body may ask how many iterations went before
    n = source;
    n.attrs.set(std::string(counts_iterations), int64_t{1});
    rewrite_bodies(g, n, context);
    changes = changes_of(n);
  }
  if (!changes.any())
    return std::nullopt;
  return iteration_peeler(g, source, parse_control(n), std::move(changes), context).run();
}

} // namespace troupe

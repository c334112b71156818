// Bodies that stay: rewritten with what their node is given (control_flow.hpp).
#include "graph/element_symbols.hpp"
#include "ops/onnx/control.hpp"
#include "rewrite/control_flow.hpp"
#include "rewrite/match.hpp"

#include <set>

namespace troupe {
namespace {

/// Inputs that decide shapes and have at most this many elements are known by symbols.
constexpr int64_t max_element_symbols = 64;

/// A body under rewrite; `captured_from` are the enclosing graph's values, parallel to `program.captured`.
struct draft {
  graph program;
  std::vector<value_id> captured_from;
};

/// Counts a level of bodies, and keeps the names of a body's values taken, as long as it lives.
class level {
public:
  level(rewrite_context& context, const graph& source) : context_(context) {
    if (context.depth >= limits::max_body_depth)
      fail(errc::unsupported, "control flow is nested more than {} levels deep", limits::max_body_depth);
    if ((context.body_nodes_left -= 1 + static_cast<int64_t>(count_nodes(source))) < 0)
      fail(errc::unsupported,
           "the model has too much nested control flow: its bodies would have to be inferred too often");
    ++context.depth;
  }
  ~level() {
    --context_.depth;
    for (const std::string& name : taken_)
      context_.names.erase(name);
  }
  level(const level&) = delete;
  level& operator=(const level&) = delete;

  void take_names(graph& body) {
    const std::set<value_id> captured(body.captured.begin(), body.captured.end());
    for (value_id v = 0; v < static_cast<value_id>(body.values.size()); ++v)
      if (!captured.contains(v))
        taken_.push_back(body.values[v].name = take_name(context_, body.values[v].name));
  }

private:
  rewrite_context& context_;
  std::vector<std::string> taken_;
};

/// Rewrites one body of a node for what its inputs are given.
class body_rewriter {
public:
  body_rewriter(const graph& outer, const node& n, const control_call& call, const node_body& body,
                rewrite_context& context)
      : outer_(outer), node_(n), call_(call), body_(body), context_(context) {
    varies_.resize(call.kind == control_kind::branch ? 0 : call.carried);
    held_.resize(varies_.size(), {.dims = std::nullopt, .empty = true});
  }

  draft run() {
    for (;;) {
      level nested(context_, *body_.program);
      draft d = infer(nested);
      if (note_varying_dims(d.program))
        continue;
      finish(d);
      return d;
    }
  }

private:
  draft infer(level& nested) {
    draft d{prepare_body(*body_.program), {}};
    nested.take_names(d.program);
    const auto first = node_.inputs.begin() + static_cast<ptrdiff_t>(body_.first_capture);
    d.captured_from.assign(first, first + static_cast<ptrdiff_t>(d.program.captured.size()));
    for (size_t i = 0; i < d.program.inputs.size(); ++i)
      set_input(d.program.values[d.program.inputs[i]], i);
    drop_constants(d);
    state_elements(d.program);
    remove_dead(d.program);
    infer_and_fold(d.program, context_);
    return d;
  }

  void set_input(value& input, size_t i) {
    const value given = given_to(input.name, i);
    if (input.type != dtype::undefined && given.type != dtype::undefined && input.type != given.type)
      fail(errc::invalid_model, "input '{}' of body '{}' is {}, but it is given {}", input.name, body_.name,
           to_string(input.type), to_string(given.type));
    const bool formal = i >= call_.leading_inputs() && i < body_.formal_inputs();
    if (formal && given.dims && input.dims && given.dims->size() != input.dims->size())
      fail(errc::invalid_model, "input '{}' of body '{}' has shape {}, but it is given {}", input.name, body_.name,
           to_string(*input.dims), to_string(*given.dims));
    input.type = given.type;
    input.elements = given.elements;
    if (given.dims)
      input.dims = given.dims;
    if (!input.dims)
      fail(errc::unsupported, "the rank of input '{}' of body '{}' is not known", input.name, body_.name);
    input.constant = given.constant;
    input.known = given.known;
  }

  /// What input `i` of the body, called `name`, is: type and dims, and for captured values all that is known.
  value given_to(const std::string& name, size_t i) {
    if (i >= body_.formal_inputs())
      return captured(node_.inputs[body_.first_capture + i - body_.formal_inputs()]);
    if (i < call_.leading_inputs())
      return i == 0 ? value{.type = dtype::int64, .dims = to_symbolic(iteration_dims(*body_.program))}
                    : value{.type = dtype::boolean, .dims = condition_dims()};
    const size_t carried = i - call_.leading_inputs();
    const value& source = outer_.values[node_.inputs[i]];
    if (call_.kind == control_kind::map)
      return mapped(name, i);
    value given{.type = source.type, .dims = source.dims};
    if (carried >= call_.carried) {
      if (is_container(source.type))
        fail(errc::invalid_model, "scan input '{}' is {}, not a tensor", source.name, to_string(source.type));
      drop_scanned_axis(given, call_.scan_inputs[carried - call_.carried].axis);
      return given;
    }
    if (is_container(source.type))
      given.elements = join(source.elements, held_[carried]);
    if (given.dims) {
      varies_[carried].resize(given.dims->size());
      for (size_t axis = 0; axis < given.dims->size(); ++axis)
        if (varies_[carried][axis])
          (*given.dims)[axis] = body_dim(name, axis);
    }
    return given;
  }

  /// What a SequenceMap gives its body as input `i`, called `name`: an element of a sequence, or a tensor as it is.
  value mapped(const std::string& name, size_t i) const {
    const value& source = outer_.values[node_.inputs[i]];
    if (is_optional(source.type))
      fail(errc::invalid_model, "input {} is {}, neither a sequence nor a tensor", i, to_string(source.type));
    if (!is_sequence(source.type))
      return {.type = source.type, .dims = source.dims};
    value given{.type = element_of(source.type)};
    if (const auto& dims = source.elements.dims) {
      given.dims.emplace();
      for (size_t axis = 0; axis < dims->size(); ++axis)
        given.dims->push_back((*dims)[axis] < 0 ? body_dim(name, axis) : dim((*dims)[axis]));
    }
    return given;
  }

  /// A branch knows the condition on which it is taken.
  value captured(value_id v) const {
    value given = outer_.values[v];
    if (call_.kind == control_kind::branch && v == node_.inputs[0] && given.dims && is_constant(*given.dims)) {
      tensor condition(dtype::boolean, constants(*given.dims));
      std::fill_n(condition.mutable_data<bool>(), condition.size(), &body_ == &call_.bodies[then_branch]);
      given.constant = weight::from_tensor(std::move(condition));
    }
    return given;
  }

  /// The condition has the dims that it was given, a scalar's or one element's.
  std::optional<symbolic_shape> condition_dims() const {
    const value_id given = node_.inputs[1];
    return given != no_value && outer_.values[given].dims ? outer_.values[given].dims : symbolic_shape{};
  }

  static void drop_scanned_axis(value& given, int64_t axis) {
    if (!given.dims)
      return;
    const size_t position = normalize_axis(axis, given.dims->size());
    given.dims->erase(given.dims->begin() + static_cast<ptrdiff_t>(position));
  }

  /// Captured constants are not inputs.
  static void drop_constants(draft& d) {
    drop_captures(d, [](const value& v, value_id) { return v.constant != nullptr; });
  }

  template <class Predicate>
  static void drop_captures(draft& d, Predicate drop) {
    std::vector<value_id> captured, from;
    for (size_t i = 0; i < d.program.captured.size(); ++i) {
      const value_id v = d.program.captured[i];
      if (drop(d.program.values[v], v)) {
        std::erase(d.program.inputs, v);
        continue;
      }
      captured.push_back(v);
      from.push_back(d.captured_from[i]);
    }
    d.program.captured = std::move(captured);
    d.captured_from = std::move(from);
  }

  /// Gives symbols to the elements of inputs that decide shapes.
  void state_elements(graph& body) const {
    const std::vector<value_id> found = shape_deciding_values(body);
    const std::set<value_id> deciding(found.begin(), found.end());
    for (size_t i = 0; i < body.inputs.size(); ++i) {
      value& v = body.values[body.inputs[i]];
      const bool iteration = call_.kind == control_kind::loop && i == 0;
      const bool wanted = deciding.contains(body.inputs[i]) || (iteration && node_.attrs.has(counts_iterations));
      if (!wanted || v.known || !(types::integers & set_of(v.type)) || !is_constant(*v.dims))
        continue;
      const int64_t count = volume(constants(*v.dims));
      if (count <= max_element_symbols)
        v.known = element_symbols(v.name, static_cast<size_t>(count), iteration);
    }
  }

  /// Notes the carried dims that an iteration changes, and what is not known of a carried sequence's elements; returns
  /// whether there is something new.
  bool note_varying_dims(const graph& body) {
    bool changed = false;
    for (size_t c = 0; c < varies_.size(); ++c) {
      const value& carried = body.values[body.inputs[call_.leading_inputs() + c]];
      const value& result = body.values[body.outputs[call_.leading_outputs() + c]];
      const auto &before = carried.dims, &after = result.dims;
      if (is_container(carried.type)) {
        const element_shapes made = is_container(result.type) ? result.elements : shapes_of_elements(after);
        if (element_shapes held = join(carried.elements, made); held != carried.elements) {
          held_[c] = std::move(held);
          changed = true;
        }
      }
      if (is_optional(carried.type) &&
          carried.type != result.type) { // what an iteration makes is what the optional holds next
        changed |= !varies_[c][0];
        varies_[c][0] = true;
        continue;
      }
      if (!before || !after || before->size() != after->size())
        continue; // the node's own inference says what is wrong
      for (size_t axis = 0; axis < before->size(); ++axis)
        if (!varies_[c][axis] && (*before)[axis] != (*after)[axis])
          changed = varies_[c][axis] = true;
    }
    return changed;
  }

  void finish(draft& d) {
    simplify(d.program, context_.options);
    pass_through(d.program);
    remove_dead(d.program);
    drop_unread(d);
    remove_dead(d.program);
    validate(d.program);
  }

  /// Outputs that only repeat a value are that value: nothing has to run for them.
  static void pass_through(graph& body) {
    const adjacency edges = adjacency_of(body);
    for (value_id& output : body.outputs)
      for (node_id n = edges.producer[output]; n >= 0 && is_op(body.nodes[n], "Identity"); n = edges.producer[output])
        output = body.nodes[n].inputs[0];
  }

  /// Captures that nothing reads go, unless they say a data-dependent dim that the body may mention.
  static void drop_unread(draft& d) {
    std::set<value_id> read(d.program.outputs.begin(), d.program.outputs.end());
    for (const node& n : d.program.nodes)
      read.insert(n.inputs.begin(), n.inputs.end());
    const auto mentions_data = [](const auto& dims) {
      return dims && std::any_of(dims->begin(), dims->end(), [](const dim& x) { return x.depends_on_data(); });
    };
    drop_captures(d, [&](const value& v, value_id id) {
      return !read.contains(id) && !mentions_data(v.dims) && !mentions_data(v.known);
    });
  }

  const graph& outer_;
  const node& node_;
  const control_call& call_;
  const node_body& body_;
  rewrite_context& context_;
  std::vector<std::vector<bool>> varies_; // by carried value and axis
  std::vector<element_shapes> held_;      // by carried value: what iterations put into it, as far as seen
};

/// Returns whether an error in a branch of `call` says that it cannot be executed, not that the model is wrong.
bool refuses_branch(const control_call& call, const error& e, const rewrite_context& context) {
  const bool of_model =
      e.code() == errc::invalid_model || e.code() == errc::unsupported || e.code() == errc::invalid_input;
  const bool over_limit = context.body_nodes_left < 0 || context.moves_left < 0 || context.visits_left < 0;
  return call.kind == control_kind::branch && context.guesses > 0 && of_model && !over_limit;
}

/// Returns what takes the place of a refused branch: results of the types that the other branch gives.
draft stand_in(const graph& other) {
  draft d;
  d.program.name = "refused";
  d.program.opsets = other.opsets;
  for (value_id v : other.outputs)
    d.program.outputs.push_back(d.program.add_constant(other.values[v].name, tensor(other.values[v].type, {0})));
  return d;
}

} // namespace

void rewrite_bodies(const graph& g, node& n, rewrite_context& context) {
  const control_call call = parse_control(n);
  attributes attrs = n.attrs;
  std::vector<draft> drafts(call.bodies.size());
  std::optional<size_t> refused;
  std::optional<error> first;
  for (size_t i = 0; i < call.bodies.size(); ++i)
    try {
      drafts[i] = body_rewriter(g, n, call, call.bodies[i], context).run();
    } catch (const error& e) {
      if (!refuses_branch(call, e, context))
        throw;
      if (refused) // the then branch of a loop's iteration only says what went wrong many iterations later
        throw error(*first);
      refused = i;
      first = e;
      refuse_branch(attrs, call.bodies[i].name, e.what());
    }
  if (refused)
    drafts[*refused] = stand_in(drafts[1 - *refused].program);
  std::vector<value_id> inputs(n.inputs.begin(), n.inputs.begin() + static_cast<ptrdiff_t>(n.formal_inputs()));
  size_t captures = 0;
  for (size_t i = 0; i < call.bodies.size(); ++i) {
    draft& d = drafts[i];
    inputs.insert(inputs.end(), d.captured_from.begin(), d.captured_from.end());
    captures += d.captured_from.size();
    attrs.set(call.bodies[i].name, std::make_shared<const graph>(std::move(d.program)));
  }
  n.attrs = std::move(attrs);
  n.inputs = std::move(inputs);
  n.captures = captures;
}

} // namespace troupe

// If, Loop, Scan, SequenceMap: operators with bodies. They have no kernels: a session runs their bodies
// (run/control_flow.hpp).
//
// Inference reads what the bodies' inference has found: the rewrite infers bodies first, with their inputs set to what
// the node is given. A dim of a result is the body's if the node's operands say it; else it depends on data.
#include "ops/onnx/control.hpp"

#include "ops/evaluate.hpp"
#include "ops/families.hpp"
#include "ops/onnx/own_attributes.hpp"

#include <algorithm>
#include <set>

namespace troupe {
namespace {

void check_count(const node_body& body, std::string_view what, size_t found, size_t expected) {
  if (found != expected)
    fail(errc::invalid_model, "body '{}' has {} {}, but the node needs {}", body.name, found, what, expected);
}

const node_body& body_named(const std::vector<node_body>& bodies, std::string_view name) {
  for (const node_body& body : bodies)
    if (body.name == name)
      return body;
  fail(errc::invalid_model, "attribute '{}' is missing", name);
}

/// The attribute that says why a branch cannot be executed.
std::string refusal_of(const std::string& branch) {
  return fmt::format("{}{}_refusal", own_attribute_prefix, branch);
}

void parse_branches(control_call& c, const node& n) {
  body_named(c.bodies, "else_branch");
  body_named(c.bodies, "then_branch");
  if (c.bodies.size() != c.refusals.size())
    fail(errc::invalid_model, "{} bodies, but an If has two", c.bodies.size());
  for (size_t i = 0; i < c.bodies.size(); ++i) {
    const node_body& branch = c.bodies[i];
    c.refusals[i] = n.attrs.text(refusal_of(branch.name), "");
    check_count(branch, "inputs", branch.formal_inputs(), 0);
    if (branch.program->outputs.size() < n.outputs.size())
      check_count(branch, "outputs", branch.program->outputs.size(), n.outputs.size());
  }
}

void parse_loop(control_call& c, const node& n) {
  const node_body& body = body_named(c.bodies, "body");
  c.carried = n.formal_inputs() - 2;
  check_count(body, "inputs", body.formal_inputs(), c.carried + 2);
  const size_t outputs = body.program->outputs.size();
  if (outputs < c.carried + 1)
    check_count(body, "outputs", outputs, c.carried + 1);
  c.scan_outputs.resize(outputs - 1 - c.carried);
}

/// Reads the axes and directions of Scan's operands of one kind.
std::vector<scan_walk> scan_walks(const attributes& attrs, const std::string& kind, size_t count) {
  const auto axes = attrs.integers("scan_" + kind + "_axes", std::vector<int64_t>(count, 0));
  const auto directions = attrs.integers("scan_" + kind + "_directions", std::vector<int64_t>(count, 0));
  if (axes.size() != count || directions.size() != count)
    fail(errc::invalid_model, "Scan has {} scan {}s, but {} axes and {} directions", count, kind, axes.size(),
         directions.size());
  std::vector<scan_walk> walks;
  for (size_t i = 0; i < count; ++i)
    walks.push_back({axes[i], directions[i] == 1});
  return walks;
}

void parse_scan(control_call& c, const node& n) {
  const node_body& body = body_named(c.bodies, "body");
  const int64_t scanned = n.attrs.integer("num_scan_inputs");
  if (scanned < 1 || scanned > static_cast<int64_t>(n.formal_inputs()))
    fail(errc::invalid_model, "num_scan_inputs is {}, but the node has {} inputs", scanned, n.formal_inputs());
  c.carried = n.formal_inputs() - static_cast<size_t>(scanned);
  check_count(body, "inputs", body.formal_inputs(), n.formal_inputs());
  const size_t outputs = body.program->outputs.size();
  if (outputs < c.carried)
    check_count(body, "outputs", outputs, c.carried);
  c.scan_inputs = scan_walks(n.attrs, "input", static_cast<size_t>(scanned));
  c.scan_outputs = scan_walks(n.attrs, "output", outputs - c.carried);
}

void parse_map(control_call& c, const node& n) {
  const node_body& body = body_named(c.bodies, "body");
  check_count(body, "inputs", body.formal_inputs(), n.formal_inputs());
  c.scan_outputs.resize(body.program->outputs.size());
}

} // namespace

bool is_control(const node& n) {
  return has_body(n) && n.domain.empty() &&
         (n.op_type == "If" || n.op_type == "Loop" || n.op_type == "SequenceMap" ||
          (n.op_type == "Scan" && n.def && n.def->since >= 9));
}

control_kind control_kind_of(const node& n) {
  if (n.op_type == "If")
    return control_kind::branch;
  return n.op_type == "Loop" ? control_kind::loop : n.op_type == "Scan" ? control_kind::scan : control_kind::map;
}

control_call parse_control(const node& n) {
  control_call c{.kind = control_kind_of(n), .bodies = bodies_of(n)};
  if (c.kind == control_kind::branch) {
    parse_branches(c, n);
    return c;
  }
  const auto parse = c.kind == control_kind::loop ? parse_loop : c.kind == control_kind::scan ? parse_scan : parse_map;
  parse(c, n);
  for (size_t i = 0; i < n.formal_inputs(); ++i)
    if (n.inputs[i] == no_value && i >= c.leading_inputs())
      fail(errc::invalid_model, "input {} is missing", i);
  if (n.outputs.size() > c.carried + c.scan_outputs.size())
    fail(errc::invalid_model, "{} outputs, but body 'body' gives {}", n.outputs.size(),
         c.carried + c.scan_outputs.size());
  return c;
}

namespace {

/// Writes a node's results from its bodies' (see the top of this file).
class control_inference {
public:
  explicit control_inference(infer_context& c) : c_(c), call_(parse_control(c.call())) {
    for (size_t i = 0; i < c.input_count(); ++i)
      if (c.has_input(i) && c.has_rank(i))
        note_symbols(i);
  }

  void run() {
    if (call_.kind == control_kind::branch)
      return infer_branches();
    if (call_.kind == control_kind::loop)
      check_conditions();
    for (size_t i = 0; i < call_.carried; ++i)
      infer_carried(i);
    for (size_t i = 0; i < call_.scan_outputs.size(); ++i)
      call_.kind == control_kind::map ? infer_mapped(i) : infer_scanned(i);
  }

private:
  void note_symbols(size_t i) {
    std::vector<std::string> names;
    for (const dim& d : c_.dims(i))
      d.collect_symbols(names);
    if (const auto known = c_.known(i))
      for (const dim& d : *known)
        d.collect_symbols(names);
    given_.insert(names.begin(), names.end());
  }

  /// Whether a dim means the same outside of the body.
  bool is_given(const dim& d) const {
    std::vector<std::string> names;
    d.collect_symbols(names);
    return std::all_of(names.begin(), names.end(), [&](const std::string& name) { return given_.contains(name); });
  }

  const value& result(const node_body& body, size_t i) const {
    const value& v = body.program->values[body.program->outputs[i]];
    if (!v.dims)
      fail(errc::unsupported,
           "the rank of output '{}' of body '{}' is not known: branches of an If in it give different ones", v.name,
           body.name);
    return v;
  }

  void check_conditions() const {
    const value& next = result(call_.bodies.front(), 0);
    if (c_.has_input(1) && c_.type(1) != dtype::boolean)
      fail(errc::invalid_model, "the condition is {}, not bool", to_string(c_.type(1)));
    if (next.type != dtype::boolean)
      fail(errc::invalid_model, "output '{}' of body 'body' is the condition, but it is {}", next.name,
           to_string(next.type));
  }

  /// Returns what a branch gives; if it cannot be executed, what the other one gives.
  const value& branch_result(size_t branch, size_t i) const {
    const graph& body = *call_.bodies[call_.refusals[branch].empty() ? branch : 1 - branch].program;
    return body.values[body.outputs[i]];
  }

  void infer_branches() {
    for (size_t i = 0; i < c_.output_count(); ++i) {
      const value &a = branch_result(then_branch, i), &b = branch_result(else_branch, i);
      if (a.type != b.type)
        fail(errc::invalid_model, "output {} is {} in then_branch ('{}') and {} in else_branch ('{}')", i,
             to_string(a.type), a.name, to_string(b.type), b.name);
      if (!a.dims || !b.dims || a.dims->size() != b.dims->size()) {
        c_.set_output_of_any_rank(i, a.type);
        continue;
      }
      symbolic_shape dims = *a.dims;
      for (size_t axis = 0; axis < dims.size(); ++axis)
        if (dims[axis] != (*b.dims)[axis] || !is_given(dims[axis]))
          dims[axis] = c_.data_dependent(i, axis);
      c_.set_output(i, a.type, std::move(dims), join(a.elements, b.elements));
    }
  }

  void infer_carried(size_t i) {
    const node_body& body = call_.bodies.front();
    const value& before = body.program->values[body.program->inputs[call_.leading_inputs() + i]];
    const value& after = result(body, call_.leading_outputs() + i);
    if (before.type != after.type &&
        before.type == optional_of(after.type)) // the next iteration gets it as an optional
      return c_.set_element(i, after.type, before.elements);
    if (before.type != after.type)
      fail(errc::invalid_model, "carried value {} is {} ('{}'), but {} after an iteration ('{}')", i,
           to_string(before.type), before.name, to_string(after.type), after.name);
    if (before.dims->size() != after.dims->size())
      fail(errc::unsupported, "carried value {} has shape {} ('{}'), but {} after an iteration ('{}'): {}", i,
           to_string(*before.dims), before.name, to_string(*after.dims), after.name, "its rank must not change");
    symbolic_shape dims = *after.dims;
    for (size_t axis = 0; axis < dims.size(); ++axis)
      if (dims[axis] != (*before.dims)[axis] || !is_given(dims[axis]))
        dims[axis] = c_.data_dependent(i, axis);
    c_.set_output(i, after.type, std::move(dims), join(before.elements, after.elements));
  }

  void infer_scanned(size_t i) {
    const size_t output = call_.carried + i;
    if (!c_.has_output(output))
      return;
    const value& element = result(call_.bodies.front(), call_.leading_outputs() + output);
    check_tensor(element);
    symbolic_shape dims = *element.dims;
    const size_t axis = normalize_axis(call_.scan_outputs[i].axis, dims.size() + 1);
    const std::optional<dim> trips = trip_count();
    dims.insert(dims.begin() + static_cast<ptrdiff_t>(axis), trips ? *trips : c_.data_dependent(output, axis));
    for (size_t d = 0; d < dims.size(); ++d)
      if (d != axis && !is_given(dims[d]))
        dims[d] = c_.data_dependent(output, d);
    c_.set_output(output, element.type, std::move(dims));
  }

  void infer_mapped(size_t i) {
    const graph& body = *call_.bodies.front().program;
    const value& element = body.values[body.outputs[i]];
    check_tensor(element);
    c_.set_output(i, sequence_of(element.type), {c_.dims(0)[0]}, shapes_of_elements(element.dims));
  }

  /// Results of iterations are gathered into tensors, or into sequences, which hold only tensors.
  static void check_tensor(const value& element) {
    if (is_container(element.type))
      fail(errc::invalid_model, "output '{}' of the body is {}, but its results are gathered: it must be a tensor",
           element.name, to_string(element.type));
  }

  /// How often the body is executed, if that is known before the run.
  std::optional<dim> trip_count() const {
    if (call_.kind == control_kind::scan) {
      const size_t first = call_.carried;
      return c_.dims(first)[normalize_axis(call_.scan_inputs[0].axis, c_.rank(first))];
    }
    const auto trips = c_.has_input(0) ? c_.known(0) : std::nullopt;
    if (!trips || trips->size() != 1 || !runs_all_trips())
      return std::nullopt;
    return is_nonnegative(trips->front()) ? trips->front() : max(trips->front(), 0);
  }

  bool runs_all_trips() const {
    const auto start = c_.has_input(1) ? c_.known(1) : std::optional(std::vector<dim>{1});
    return start && start->size() == 1 && start->front().is(1) && keeps_condition(*call_.bodies.front().program);
  }

  infer_context& c_;
  const control_call call_;
  std::set<std::string> given_;
};

void infer_control(infer_context& c) {
  control_inference(c).run();
}

void infer_old_scan(infer_context&) {
  fail(errc::unsupported, "a Scan of opset 8 must be rewritten before its shapes are inferred");
}

constexpr std::string_view has_bodies = "is control flow, whose bodies are not followed";

constexpr op_def control_row(std::string_view name, int64_t since, operand_range inputs, dtype_set types,
                             void (*infer)(infer_context&) = infer_control) {
  return op_row(name, since, infer, nullptr,
                {.inputs = inputs, .max_outputs = 255, .types = types, .mixes = has_bodies});
}

constexpr op_def rows[] = {
    control_row("If", 1, {}, types::boolean),
    control_row("Loop", 1, {2, 255}, set_of(dtype::int64)),
    control_row("SequenceMap", 17, {1, 255}, types::sequence),
    control_row("Scan", 8, {2, 255}, types::any, infer_old_scan),
    control_row("Scan", 9, {1, 255}, types::any),
};

} // namespace

void refuse_branch(attributes& attrs, const std::string& name, const std::string& why) {
  attrs.set(refusal_of(name), why);
}

shape iteration_dims(const graph& body) {
  const auto& stated = body.values[body.inputs.at(0)].dims;
  return stated && stated->size() == 1 ? shape{1} : shape{};
}

bool keeps_condition(const graph& body) {
  const value_id condition = body.outputs.at(0);
  if (const weight_ptr& w = body.values[condition].constant)
    return volume(w->dims) == 1 && to_int64(materialise(*w).view()).front() != 0;
  return condition == body.inputs.at(1);
}

extern constinit const op_table onnx_control_ops = rows;

} // namespace troupe

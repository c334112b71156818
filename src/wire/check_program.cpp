#include "wire/check_program.hpp"

#include "base/limits.hpp"
#include "graph/bodies.hpp"
#include "ops/onnx/control.hpp"
#include "ops/registry.hpp"
#include "plan/bind/operand_checks.hpp"
#include "plan/place/layout.hpp"

#include <algorithm>

namespace troupe::wire {
namespace {

void require(bool condition, const char* what, const std::string& name) {
  if (!condition)
    fail(errc::invalid_input, "a plan from another host cannot run: {} ('{}')", what, name);
}

/// A dim that the node itself will tell: inference has no other name for it than a new one.
bool is_new_symbol(const dim& d) {
  return d.symbol_name().starts_with('#');
}

class program_checker {
public:
  program_checker(graph& g, std::span<const device_info> devices, std::span<const device_index> placement)
      : g_(g), devices_(devices), placement_(placement) {}

  std::vector<node_id> run() {
    validate(g_);
    for (value_id v : g_.inputs)
      require(!g_.values[v].constant, "an input is a constant", g_.values[v].name);
    check_order();
    for (const value& v : g_.values)
      check_value(v);
    check_places();
    for (size_t n = 0; n < g_.nodes.size(); ++n)
      check_node(static_cast<node_id>(n));
    check_layouts();
    return std::move(open_);
  }

private:
  void check_order() const {
    std::vector<bool> made(g_.values.size(), true);
    for (const node& n : g_.nodes)
      for (value_id v : n.outputs)
        if (v != no_value)
          made[v] = false;
    for (const node& n : g_.nodes) {
      for (value_id v : n.inputs)
        require(v == no_value || made[v], "a node reads what a later one makes", n.name);
      for (value_id v : n.outputs)
        if (v != no_value)
          made[v] = true;
    }
  }

  static void check_value(const value& v) {
    require(v.name.size() <= limits::longest_name && (!v.dims || v.dims->size() <= limits::max_rank),
            "a value's name or rank is too long", v.name);
    if (v.constant)
      require(v.type == v.constant->type && v.dims && *v.dims == to_symbolic(v.constant->dims) && !v.known,
              "a constant is not what it is said to be", v.name);
    if (v.layout == layout::channels_last)
      require(v.dims && v.dims->size() >= 3 && v.dims->size() <= 5, "a rank has no channels-last form", v.name);
    if (!v.known)
      return;
    const bool integral = (types::integers | types::boolean) & set_of(v.type);
    require(integral && v.known->size() <= max_known_elements && v.dims && is_constant(*v.dims) &&
                volume(constants(*v.dims)) == static_cast<int64_t>(v.known->size()),
            "host-known elements do not fill their shape", v.name);
  }

  /// Each control-flow node is on a device of its own after the real ones.
  void check_places() const {
    const auto is_control = [](const device_info& d) { return d.kind == device_kind::control; };
    const size_t real =
        static_cast<size_t>(std::find_if(devices_.begin(), devices_.end(), is_control) - devices_.begin());
    require(real > 0 && real <= 4096, "the number of devices", std::to_string(real));
    require(devices_.size() - real <= limits::max_control_nodes && placement_.size() == g_.nodes.size(),
            "the number of control-flow nodes", std::to_string(devices_.size() - real));
    size_t next = real;
    for (size_t n = 0; n < g_.nodes.size(); ++n) {
      const bool body = has_body(g_.nodes[n]);
      require(body ? placement_[n] >= real && placement_[n] < devices_.size() : placement_[n] < real,
              "a node's device cannot run it", g_.nodes[n].name);
      next += body;
    }
    require(next == devices_.size() &&
                std::all_of(devices_.begin() + static_cast<std::ptrdiff_t>(real), devices_.end(), is_control),
            "its devices for control flow are not as many as its control-flow nodes", std::to_string(devices_.size()));
  }

  void check_node(node_id id) {
    node& n = g_.nodes[static_cast<size_t>(id)];
    require(n.name.size() <= limits::longest_name && n.inputs.size() <= limits::max_operands &&
                n.outputs.size() <= limits::max_operands && n.captures <= n.inputs.size(),
            "a node's operands", n.name);
    resolve_node(n, {});
    if (has_body(n)) {
      require(is_control(n), "only control flow has bodies", n.name);
      bodies_of(n); // counts captures
      return;
    }
    require(n.def->reference && n.captures == 0 && !n.outputs.empty(), "a node without results or kernel", n.name);
    for (const auto* ids : {&n.inputs, &n.outputs})
      for (value_id v : *ids)
        require(v == no_value || (g_.values[v].dims && g_.values[v].type != dtype::undefined),
                "an operand has no type or rank", n.name);
    if (!is_inferred(n))
      open_.push_back(id);
  }

  /// Infers a node from its operands as they are said to be; returns whether that gives its outputs as they are said to
  /// be. Throws if it gives others, whatever the numbers.
  bool is_inferred(const node& n) const {
    graph alone;
    node call = n;
    for (value_id& v : call.inputs)
      if (v != no_value)
        v = alone.add_value(g_.values[v]);
    for (value_id& v : call.outputs)
      if (v != no_value)
        v = alone.add_value({.name = g_.values[v].name});
    try {
      infer_node(alone, call);
    } catch (const error&) {
      return false; // perhaps it can with numbers
    }
    bool same = true;
    for (size_t i = 0; i < n.outputs.size(); ++i)
      if (n.outputs[i] != no_value)
        same = fits(n, g_.values[n.outputs[i]], alone.values[call.outputs[i]]) && same;
    return same;
  }

  bool fits(const node& n, const value& said, const value& inferred) const {
    require(said.type == inferred.type && inferred.dims && said.dims->size() == inferred.dims->size(),
            "a result has another type or rank", n.name);
    bool same = true;
    for (size_t axis = 0; axis < said.dims->size(); ++axis) {
      const dim &a = (*said.dims)[axis], &b = (*inferred.dims)[axis];
      if (is_new_symbol(b) && !mentions(n, b))
        require(is_new_symbol(a) && !mentions(n, a), "a dim that depends on data is said not to", n.name);
      else
        same = settled(n, a, b) && same;
    }
    return same && (!said.known || said.known == inferred.known);
  }

  static bool settled(const node& n, const dim& said, const dim& inferred) {
    require(!said.is_constant() || !inferred.is_constant() || said == inferred, "a result has other dims", n.name);
    return said == inferred;
  }

  /// Whether a symbol is in the dims or elements of a node's operands.
  bool mentions(const node& n, const dim& symbol) const {
    std::vector<std::string> names;
    for (value_id v : n.inputs)
      if (v != no_value)
        for (const auto* list : {&*g_.values[v].dims, g_.values[v].known ? &*g_.values[v].known : nullptr})
          for (size_t i = 0; list && i < list->size(); ++i)
            (*list)[i].collect_symbols(names);
    return std::find(names.begin(), names.end(), symbol.symbol_name()) != names.end();
  }

  void check_layouts() const {
    try {
      verify_layouts(g_, placement_, devices_);
    } catch (const error& e) {
      fail(errc::invalid_input, "a plan from another host cannot run: {}", e.what());
    }
  }

  graph& g_;
  const std::span<const device_info> devices_;
  const std::span<const device_index> placement_;
  std::vector<node_id> open_;
};

void check_node_numbers(const bound_plan& bound, const node& n) {
  const plan& p = *bound.source;
  const std::vector<value> inferred = infer_numbers(*p.program, n, bound.values);
  for (size_t i = 0; i < inferred.size(); ++i) {
    const value_id v = n.outputs[i];
    if (v == no_value)
      continue;
    const value& said = p.program->values[v];
    bool same = inferred[i].dims && inferred[i].dims->size() == said.dims->size();
    for (size_t axis = 0; same && p.segment_of_value[v] <= bound.segment && axis < said.dims->size(); ++axis)
      same = (*inferred[i].dims)[axis].is(bound.dims[v][axis]);
    for (size_t e = 0; same && said.known && e < said.known->size(); ++e)
      same = inferred[i].known && (*inferred[i].known)[e].is((*said.known)[e].evaluate(bound.values));
    require(same, "a result has another shape than its operands give", n.name);
  }
}

} // namespace

std::vector<node_id> check_program(graph& g, std::span<const device_info> devices,
                                   std::span<const device_index> placement) {
  return program_checker(g, devices, placement).run();
}

void check_numbers(const bound_plan& bound, std::span<const node_id> nodes) {
  for (node_id n : nodes)
    if (bound.source->chunks[bound.source->chunk_of_node[n]].segment == bound.segment)
      check_node_numbers(bound, bound.source->program->nodes[n]);
}

} // namespace troupe::wire

#include "plan/place/widen.hpp"

#include "graph/bodies.hpp"
#include "graph/data_symbols.hpp"
#include "ops/evaluate.hpp"
#include "ops/registry.hpp"
#include "ops/scalar_function.hpp"
#include "plan/place/graph_rebuild.hpp"

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

bool is_narrow(const value& v) {
  return v.type == dtype::float16 || v.type == dtype::bfloat16;
}

/// Whether a node hands elements on as they are: only such operators take truth values and numbers alike. (A reduction
/// takes both, too, but computes, as its costs say.)
bool moves_elements(const node& n) {
  constexpr dtype_set both = set_of(dtype::boolean, dtype::float32);
  return (n.def->types & both) == both && !n.def->cost;
}

class widening_pass : graph_rebuild {
public:
  widening_pass(graph& g, std::vector<device_index>& placement, std::span<const device_info> devices)
      : graph_rebuild(g, placement, devices), chosen_(nodes_.size(), false), wide_(g.values.size(), false) {
    for (const value& v : g.values)
      narrow_.push_back(is_narrow(v));
  }

  void run(const std::vector<bool>& defines_symbols) {
    for (size_t n = 0; n < nodes_.size(); ++n)
      if (widens_floats(devices_[old_placement_[n]]) && !defines_symbols[n])
        choose(n);
    begin_anew();
    for (size_t n = 0; n < nodes_.size(); ++n)
      emit(n);
  }

private:
  /// Whether node `n` reads operand `i` in float32 if it is chosen. What the host must know keeps its type.
  bool is_float_operand(const node& n, size_t i) const {
    const value_id v = n.inputs[i];
    return v != no_value && narrow_[v] && !(i < 32 && (n.def->host_inputs >> i & 1));
  }

  void choose(size_t index) {
    const node& n = nodes_[index];
    if (!n.def || !n.def->infer || has_body(n) || n.def->converts) // which rounds to what the model says
      return;
    bool reads = false, comes_wide = false;
    for (size_t i = 0; i < n.inputs.size(); ++i)
      if (is_float_operand(n, i)) {
        const node_id from = edges_.producer[n.inputs[i]];
        reads = true;
        comes_wide |= wide_[n.inputs[i]] && old_placement_[from] == old_placement_[index];
      }
    const auto stays_narrow = [&](value_id v) { return v != no_value && !narrow_[v]; };
    if (!reads || (moves_elements(n) && !comes_wide) || std::any_of(n.outputs.begin(), n.outputs.end(), stays_narrow) ||
        !gives_float32(n))
      return;
    chosen_[index] = true;
    for (value_id v : n.outputs)
      if (v != no_value)
        wide_[v] = true;
  }

  /// Whether all results are float32 if the operands are. They are not where an attribute says so.
  bool gives_float32(node n) {
    const size_t known = g_.values.size();
    for (size_t i = 0; i < n.inputs.size(); ++i)
      if (is_float_operand(n, i))
        n.inputs[i] = g_.add_value(twin(n.inputs[i]));
    for (value_id& v : n.outputs)
      v = v == no_value ? no_value : g_.add_value({.name = g_.values[v].name});
    bool fits = true;
    try {
      infer_node(g_, n);
      for (value_id v : n.outputs)
        fits &= v == no_value || g_.values[v].type == dtype::float32;
    } catch (const error&) {
      fits = false; // an operator that takes no float32 there
    }
    g_.values.resize(known);
    return fits;
  }

  value twin(value_id v) const {
    return {.name = g_.values[v].name + "/float32", .type = dtype::float32, .dims = g_.values[v].dims};
  }

  /// Whether anyone needs the value that the node makes on `device` as the model states it.
  bool needs_narrow(value_id v, device_index device) const {
    const auto reads_narrow = [&](node_id reader) {
      if (old_placement_[reader] != device || !chosen_[reader])
        return true;
      for (size_t i = 0; i < nodes_[reader].inputs.size(); ++i)
        if (nodes_[reader].inputs[i] == v && !is_float_operand(nodes_[reader], i))
          return true;
      return false;
    };
    return edges_.is_output[v] || std::any_of(edges_.consumers[v].begin(), edges_.consumers[v].end(), reads_narrow);
  }

  void add_cast(value_id from, value_id to, device_index device) {
    node n = make_call(inserted_op::cast, g_.values[from].name + "/cast", {from}, to);
    n.attrs.set("to", static_cast<int64_t>(g_.values[to].type));
    add(std::move(n), device);
  }

  /// The float32 form of a value on a device; `no_value` if there is none yet. Constants have one for all devices.
  value_id& wide_form(value_id v, device_index device) { return form_of(v, g_.values[v].constant ? 0 : device); }

  value_id widened(value_id v, device_index device) {
    value_id& form = wide_form(v, device);
    if (form != no_value)
      return form;
    form = g_.add_value(twin(v));
    if (const weight_ptr w = g_.values[v].constant) {
      attributes to;
      to.set("to", static_cast<int64_t>(dtype::float32));
      g_.values[form].constant = make_step(row_of(inserted_op::cast), std::move(to), {w}, dtype::float32, w->dims);
    } else {
      add_cast(v, form, device);
    }
    return form;
  }

  /// An absent bound is the largest number of the model's type, not float32's.
  void state_bounds(node& call, dtype narrow) {
    if (!call.def->bounded_by_type)
      return;
    const double most = largest_number(narrow);
    call.inputs.resize(3, no_value);
    for (const size_t i : {1, 2})
      if (call.inputs[i] == no_value) {
        call.inputs[i] = g_.add_value({.name = call.name + "/bound", .type = dtype::float32, .dims = symbolic_shape()});
        const auto bound = static_cast<float>(i == 1 ? -most : most);
        g_.values[call.inputs[i]].constant = weight::from_tensor(tensor::of<float>({}, std::span(&bound, 1)));
      }
  }

  void emit(size_t index) {
    node call = nodes_[index];
    const device_index device = old_placement_[index];
    std::vector<std::pair<value_id, value_id>> narrowed;
    if (chosen_[index]) {
      for (size_t i = 0; i < call.inputs.size(); ++i)
        if (is_float_operand(nodes_[index], i))
          call.inputs[i] = widened(call.inputs[i], device);
      state_bounds(call, g_.values[call.outputs.at(0)].type); // what it reads may be wide already
      for (value_id& v : call.outputs)
        if (v != no_value)
          v = made_wide(v, device, narrowed);
    }
    add(std::move(call), device);
    for (const auto& [from, to] : narrowed)
      add_cast(from, to, device);
  }

  /// Returns what a chosen node makes instead of `v`; adds to `narrowed` what is still needed as it was.
  value_id made_wide(value_id v, device_index device, std::vector<std::pair<value_id, value_id>>& narrowed) {
    if (!needs_narrow(v, device)) {
      g_.values[v].type = dtype::float32;
      return wide_form(v, device) = v;
    }
    const value_id made = wide_form(v, device) = g_.add_value(twin(v));
    narrowed.emplace_back(made, v);
    return made;
  }

  std::vector<bool> narrow_; // by old value: the model stores it in 16 bits
  std::vector<bool> chosen_; // by old node: it computes in float32
  std::vector<bool> wide_;   // by old value: its node makes float32
};

} // namespace

bool widens_floats(const device_info& device) {
  return !device.gpu && (device.kind == device_kind::cpu || device.kind == device_kind::slow);
}

void widen_floats(graph& g, std::vector<device_index>& placement, std::span<const device_info> devices) {
  if (std::none_of(g.values.begin(), g.values.end(), is_narrow) ||
      std::none_of(devices.begin(), devices.end(), widens_floats))
    return;
  const data_symbols symbols(g);
  std::vector<bool> defines(g.nodes.size(), false);
  for (data_symbols::id s = 0; s < symbols.size(); ++s)
    if (symbols.definer(s) >= 0)
      defines[static_cast<size_t>(symbols.definer(s))] = true;
  widening_pass(g, placement, devices).run(defines);
}

} // namespace troupe

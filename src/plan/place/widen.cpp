#include "plan/place/widen.hpp"

#include "graph/data_symbols.hpp"
#include "ops/registry.hpp"
#include "ops/scalar_function.hpp"
#include "plan/estimate/wide_floats.hpp"
#include "plan/place/graph_rebuild.hpp"

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

class widening_pass : graph_rebuild {
public:
  widening_pass(graph& g, std::vector<device_index>& placement, std::span<const device_info> devices)
      : graph_rebuild(g, placement, devices), chosen_(nodes_.size(), false), wide_(g.values.size(), false) {
    for (const value& v : g.values)
      types_.push_back(v.type);
  }

  void run(const std::vector<bool>& defines_symbols) {
    for (size_t n = 0; n < nodes_.size(); ++n)
      if (!defines_symbols[n])
        choose(n);
    begin_anew();
    for (size_t n = 0; n < nodes_.size(); ++n)
      emit(n);
  }

private:
  dtype_set narrow_on(size_t index) const { return wide_types(devices_[old_placement_[index]]); }

  /// Whether node `index` reads operand `i` in float32 if it is chosen.
  bool is_float_operand(size_t index, size_t i) const {
    const value_id v = nodes_[index].inputs[i];
    return v != no_value && is_narrow_operand(nodes_[index], i, types_[v], narrow_on(index));
  }

  void choose(size_t index) {
    const node& n = nodes_[index];
    if (!has_wide_form(g_, n, narrow_on(index)))
      return;
    const auto comes_wide = [&](value_id v) {
      return v != no_value && wide_[v] && old_placement_[edges_.producer[v]] == old_placement_[index];
    };
    if (moves_elements(n) && std::none_of(n.inputs.begin(), n.inputs.end(), comes_wide))
      return;
    chosen_[index] = true;
    for (value_id v : n.outputs)
      if (v != no_value)
        wide_[v] = true;
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
        if (nodes_[reader].inputs[i] == v && !is_float_operand(static_cast<size_t>(reader), i))
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

  value_id wide(value_id v, device_index device) {
    value_id& form = wide_form(v, device);
    if (form != no_value)
      return form;
    form = g_.add_value(twin(v));
    if (const weight_ptr w = g_.values[v].constant)
      g_.values[form].constant = widened(w);
    else
      add_cast(v, form, device);
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
        if (is_float_operand(index, i))
          call.inputs[i] = wide(call.inputs[i], device);
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

  std::vector<dtype> types_; // by old value: as the model states it
  std::vector<bool> chosen_; // by old node: it computes in float32
  std::vector<bool> wide_;   // by old value: its node makes float32
};

} // namespace

void widen_floats(graph& g, std::vector<device_index>& placement, std::span<const device_info> devices) {
  dtype_set narrow = 0;
  for (const device_info& d : devices)
    narrow |= wide_types(d);
  if (std::none_of(g.values.begin(), g.values.end(), [&](const value& v) { return narrow & set_of(v.type); }))
    return;
  const data_symbols symbols(g);
  std::vector<bool> defines(g.nodes.size(), false);
  for (data_symbols::id s = 0; s < symbols.size(); ++s)
    if (symbols.definer(s) >= 0)
      defines[static_cast<size_t>(symbols.definer(s))] = true;
  widening_pass(g, placement, devices).run(defines);
}

} // namespace troupe

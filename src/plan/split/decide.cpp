#include "plan/split/decide.hpp"

#include "graph/bodies.hpp"
#include "graph/data_symbols.hpp"
#include "plan/place/annotated.hpp"

#include <algorithm>
#include <bit>

namespace troupe {
namespace {

/// A part has at least this many indices where a cut begins: fewer are not worth it.
constexpr int64_t least_part = 4;
/// Parts begin at multiples of up to this many indices, so that tiles are full and halves stay whole.
constexpr int64_t most_grain = 64;

/// A way to cut one node.
struct cut_option {
  call_axis axis;
  part_bounds bounds; // see `node_cut`
  int64_t bytes = 0;  // of the operands that are cut so already
};

class decider {
public:
  decider(placement_problem& problem, std::span<const device_index> home, const split_team& team, int along)
      : problem_(problem), g_(problem.program()), home_(home), team_(team), along_(along), alike_(is_alike()) {
    if (along == along_annotations)
      annotations_ = followed(g_, problem.devices());
  }

  split_decision run() {
    made_.nodes.resize(g_.nodes.size());
    made_.values.resize(g_.values.size());
    find_fixed();
    for (node_id n = 0; n < static_cast<node_id>(g_.nodes.size()); ++n)
      decide(n);
    for (auto n = static_cast<node_id>(g_.nodes.size()); n-- > 0;)
      if (made_.nodes[n].is == node_cut::kind::cut && gathers_before(n))
        repeat(n);
    return std::move(made_);
  }

private:
  bool in_team(device_index d) const { return std::ranges::find(team_.devices, d) != team_.devices.end(); }

  /// Returns whether all devices compute the same bits.
  bool is_alike() const {
    const device_info& first = problem_.devices()[team_.devices.front()];
    return std::ranges::all_of(team_.devices, [&](device_index i) {
      const device_info& d = problem_.devices()[i];
      return d.kind == first.kind && d.description == first.description && d.host == first.host;
    });
  }

  /// Returns whether a node runs once unless it is cut: it makes integers of floats (ranks, masks, codes), which differ
  /// wholly where floats differ in their last bits, and all parts go by the same ones.
  bool decides_for_all(node_id n) const {
    const auto any = [&](const std::vector<value_id>& ids, bool floats) {
      return std::ranges::any_of(ids, [&](value_id v) {
        return v != no_value && ((types::floats & set_of(g_.values[v].type)) != 0) == floats;
      });
    };
    return !alike_ && any(g_.nodes[n].inputs, true) && any(g_.nodes[n].outputs, false);
  }

  /// Finds the nodes that can only run once.
  void find_fixed() {
    fixed_.assign(g_.nodes.size(), false);
    const data_symbols symbols(g_);
    for (data_symbols::id s = 0; s < symbols.size(); ++s)
      if (symbols.definer(s) >= 0)
        fixed_[symbols.definer(s)] = true;
    for (node_id n = 0; n < static_cast<node_id>(g_.nodes.size()); ++n) {
      const std::string_view why = fixed_[n] ? "decides shapes by its data" : why_once(n);
      fixed_[n] = !why.empty();
      if (fixed_[n])
        made_.once.push_back(fmt::format("{} ({})", describe(g_.nodes[n]), why));
    }
  }

  /// Returns why a node can only run once; "" if it can be cut or repeated.
  std::string_view why_once(node_id n) {
    const node& call = g_.nodes[n];
    const auto is_held = [&](value_id v) { return v != no_value && is_container(g_.values[v].type); };
    if (has_body(call))
      return "control flow";
    if (std::ranges::any_of(call.inputs, is_held) || std::ranges::any_of(call.outputs, is_held))
      return "sequences or optionals";
    if (!is_repeatable(call))
      return "draws random numbers";
    if (problem_.pinned(n) != no_device)
      return "is pinned";
    const auto runs = [&](device_index d) { return problem_.allows(n, d); };
    return in_team(home_[n]) && std::ranges::all_of(team_.devices, runs) ? "" : "not every device can run it";
  }

  void decide(node_id n) {
    const double seconds = has_body(g_.nodes[n]) ? 0 : problem_.seconds(n, home_[n]);
    made_.seconds += seconds;
    if (fixed_[n])
      return;
    node_cut& how = made_.nodes[n];
    how.is = decides_for_all(n) ? node_cut::kind::single : node_cut::kind::repeated;
    const auto option = best_option(n);
    if (!option)
      return;
    how = {node_cut::kind::cut, option->axis, option->bounds};
    made_.cut_seconds += seconds;
    for (size_t r = 0; r < g_.nodes[n].outputs.size(); ++r)
      if (g_.nodes[n].outputs[r] != no_value)
        made_.values[g_.nodes[n].outputs[r]] = result_of(*option, r);
  }

  /// Returns what the team has of result `r` of a node that is cut so.
  static value_cut result_of(const cut_option& option, size_t r) {
    if (option.axis.kind == axis_kind::reduced)
      return {value_cut::kind::partial, 0, {}, option.axis.combined};
    const auto& place = option.axis.outputs[r];
    if (!place)
      return {};
    value_cut made{value_cut::kind::parts, place->axis, {}};
    for (const dim& b : option.bounds)
      made.bounds.push_back(b * place->unit);
    return made;
  }

  std::optional<cut_option> best_option(node_id n) {
    std::vector<call_axis> all;
    try {
      const call_axes axes = axes_of(infer_context::of(g_, g_.nodes[n]));
      all.assign(axes.all().begin(), axes.all().end());
    } catch (const error&) {
      return std::nullopt;
    }
    const node_annotation* stated = annotation_of(annotations_, g_, g_.nodes[n]);
    if (stated)
      std::erase_if(all, [&](const call_axis& axis) { return !is_stated(g_.nodes[n], axis, *stated); });
    std::optional<cut_option> best;
    for (const call_axis& axis : all)
      if (auto option = following(n, axis); option && (!best || option->bytes > best->bytes))
        best = std::move(option);
    return best || (annotations_.from && !stated) ? best : beginning(n, all);
  }

  /// Returns whether an annotation cuts a result along an axis, or if it cuts none an operand.
  bool is_stated(const node& call, const call_axis& axis, const node_annotation& stated) const {
    const auto cuts = [&](value_id v, const std::optional<axis_place>& place) {
      const auto s = v == no_value ? stated.shardings.end()
                                   : std::ranges::find(stated.shardings, g_.values[v].name, &tensor_sharding::tensor);
      if (s == stated.shardings.end() || !place)
        return false;
      const auto rank = static_cast<int64_t>(g_.values[v].dims->size());
      return (s->axis < 0 ? s->axis + rank : s->axis) == static_cast<int64_t>(place->axis);
    };
    if (axis.kind == axis_kind::reduced) {
      for (size_t i = 0; i < call.inputs.size(); ++i)
        if (cuts(call.inputs[i], axis.inputs[i]))
          return true;
      return false;
    }
    return cuts(call.outputs[0], axis.outputs[0]);
  }

  /// Returns the bounds, in indices of an axis, of operand `i` if it is cut along it.
  std::optional<part_bounds> index_bounds(const node& call, const call_axis& axis, size_t i) const {
    const auto& place = axis.inputs[i];
    if (!place || call.inputs[i] == no_value)
      return std::nullopt;
    const value_cut& operand = made_.values[call.inputs[i]];
    if (operand.is != value_cut::kind::parts || operand.axis != place->axis)
      return std::nullopt;
    part_bounds bounds;
    for (const dim& b : operand.bounds) {
      bounds.push_back(floor_div(b, place->unit));
      if (!(bounds.back() * place->unit == b))
        return std::nullopt;
    }
    return bounds;
  }

  /// Returns how a node goes on with the cut of its operands along an axis.
  std::optional<cut_option> following(node_id n, const call_axis& axis) {
    const node& call = g_.nodes[n];
    cut_option option{axis, {}};
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      auto bounds = index_bounds(call, axis, i);
      if (bounds && axis.kind == axis_kind::windowed && i == 0)
        bounds = after_windows(call, axis, *bounds);
      if (!bounds || (!option.bounds.empty() && option.bounds != *bounds))
        continue;
      option.bounds = std::move(*bounds);
      option.bytes += 1 + problem_.bytes(call.inputs[i]);
    }
    if (option.bounds.empty() || !fits(call, option))
      return std::nullopt;
    return option;
  }

  /// Returns where the result of windows is cut if their operand is cut at `bounds`.
  std::optional<part_bounds> after_windows(const node& call, const call_axis& axis, const part_bounds& bounds) const {
    const int64_t stride = axis.window.stride;
    part_bounds made{0};
    for (size_t i = 1; i + 1 < bounds.size(); ++i) {
      made.push_back(floor_div(bounds[i] + (bounds[i].is_constant() ? stride / 2 : 0), stride));
      if (!bounds[i].is_constant() && !(made.back() * stride == bounds[i]))
        return std::nullopt;
    }
    made.push_back((*g_.values[call.outputs[0]].dims)[axis.outputs[0]->axis]);
    return made;
  }

  /// Returns whether a node can be cut so; notes what bindings must keep to.
  bool fits(const node& call, const cut_option& option) {
    std::vector<dim> nonnegative;
    if (option.bounds.back().depends_on_data())
      return false;
    for (size_t i = 0; i + 1 < option.bounds.size(); ++i) {
      const dim length = option.bounds[i + 1] - option.bounds[i] - 1;
      if (length.is_constant() && length.constant() < 0)
        return false;
      if (!length.is_constant())
        nonnegative.push_back(length);
      if (option.axis.kind == axis_kind::windowed && !reaches(call, option, i, nonnegative))
        return false;
    }
    for (size_t r = 0; r < call.outputs.size(); ++r)
      if (const auto& place = option.axis.outputs[r]; place && call.outputs[r] != no_value) {
        const auto& dims = g_.values[call.outputs[r]].dims;
        if (!dims || !(option.bounds.back() * place->unit == dims->at(place->axis)))
          return false;
      }
    for (size_t i = 0; i < call.inputs.size(); ++i)
      if (!is_as_long(call, option, i, nonnegative))
        return false;
    for (dim& d : nonnegative)
      if (std::ranges::find(made_.nonnegative, d) == made_.nonnegative.end())
        made_.nonnegative.push_back(std::move(d));
    return true;
  }

  /// Returns whether an operand is as long as the axis that it is cut along: one that is broadcast may have 1 there. If
  /// only the binding tells, that is noted.
  bool is_as_long(const node& call, const cut_option& option, size_t i, std::vector<dim>& nonnegative) const {
    const auto& place = option.axis.inputs[i];
    if (!place || call.inputs[i] == no_value || (option.axis.kind == axis_kind::windowed && i == 0))
      return true;
    const dim missing = g_.values[call.inputs[i]].dims->at(place->axis) - option.bounds.back() * place->unit;
    if (missing.is_constant())
      return missing.is(0);
    nonnegative.push_back(missing);
    return !missing.depends_on_data();
  }

  /// Returns whether device `i` can have what its part of the result needs of a windowed operand.
  bool reaches(const node& call, const cut_option& option, size_t i, std::vector<dim>& nonnegative) const {
    const axis_place& place = *option.axis.inputs[0];
    const value_id v = call.inputs[0];
    if (!place.unit.is(1) || !option.axis.outputs[0]->unit.is(1))
      return false;
    const auto need = need_of(option.axis.window, option.bounds, i, g_.values[v].dims->at(place.axis),
                              padding_after(call, place.axis), nonnegative);
    const value_cut& operand = made_.values[v];
    if (!need || operand.is != value_cut::kind::parts || operand.axis != place.axis)
      return need.has_value();
    return pieces_of(operand.bounds, i, need->first, need->end, nonnegative).has_value();
  }

  /// Returns how a node begins a cut, if it computes and has an axis for that.
  std::optional<cut_option> beginning(node_id n, const std::vector<call_axis>& all) {
    const node& call = g_.nodes[n];
    if ((!call.def->cost && !annotations_.from) || call.outputs[0] == no_value)
      return std::nullopt;
    const call_axis* longest = nullptr;
    int64_t most = least_part * static_cast<int64_t>(team_.size()) - 1;
    for (const call_axis& axis : all) {
      if (axis.kind == axis_kind::reduced || !axis.outputs[0] || !may_begin(call, axis))
        continue;
      const int64_t length = length_of(call, axis);
      if (length > most) {
        most = length;
        longest = &axis;
      }
    }
    if (!longest)
      return std::nullopt;
    const axis_place& place = *longest->outputs[0];
    const dim length = floor_div((*g_.values[call.outputs[0]].dims)[place.axis], place.unit);
    const auto grain = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(most) / (4 * team_.size())));
    cut_option option{*longest, divide(length, team_, std::clamp<int64_t>(grain, 1, most_grain))};
    return fits(call, option) ? std::optional(std::move(option)) : std::nullopt;
  }

  bool may_begin(const node& call, const call_axis& axis) const {
    if (annotations_.from)
      return true; // it is as stated
    if (along_ >= 0)
      return axis.outputs[0]->axis == static_cast<size_t>(along_);
    for (size_t i = 0; i < call.inputs.size(); ++i)
      if (axis.inputs[i] && call.inputs[i] != no_value && !g_.values[call.inputs[i]].constant)
        return true;
    return false;
  }

  /// Returns how many indices an axis is likely to have.
  int64_t length_of(const node& call, const call_axis& axis) {
    const axis_place& place = *axis.outputs[0];
    const int64_t whole = problem_.dims(call.outputs[0])[place.axis];
    return place.unit.is_constant() ? whole / std::max<int64_t>(1, place.unit.constant()) : 0;
  }

  /// Returns whether a node rather runs where its results are read, on operands that are gathered: it computes nothing,
  /// and no part of its results is read, which are at least as large.
  bool gathers_before(node_id n) {
    const node& call = g_.nodes[n];
    if (call.def->cost || made_.nodes[n].axis->kind != axis_kind::mapped || decides_for_all(n))
      return false;
    int64_t before = 0, after = 0;
    for (value_id v : call.inputs)
      if (v != no_value && made_.values[v].is != value_cut::kind::whole)
        before += problem_.bytes(v);
    for (value_id v : call.outputs)
      if (v != no_value)
        after += problem_.bytes(v);
    return before <= after && std::ranges::none_of(call.outputs, [&](value_id v) {
             return v != no_value && std::ranges::any_of(problem_.edges().consumers[v],
                                                         [&](node_id reader) { return reads_part(reader, v); });
           });
  }

  bool reads_part(node_id reader, value_id v) const {
    const node& call = g_.nodes[reader];
    if (made_.nodes[reader].is != node_cut::kind::cut)
      return false;
    for (size_t i = 0; i < call.inputs.size(); ++i)
      if (call.inputs[i] == v && !reads_whole(made_.use_of(call, made_.nodes[reader], i)))
        return true;
    return false;
  }

  void repeat(node_id n) {
    made_.nodes[n] = {node_cut::kind::repeated, std::nullopt, {}};
    made_.cut_seconds -= problem_.seconds(n, home_[n]);
    for (value_id v : g_.nodes[n].outputs)
      if (v != no_value)
        made_.values[v] = {};
  }

  placement_problem& problem_;
  const graph& g_;
  const std::span<const device_index> home_;
  const split_team& team_;
  const int along_;
  const bool alike_;
  followed_configuration annotations_; // none unless nodes are cut as they say
  std::vector<bool> fixed_;            // by node: runs once
  split_decision made_;
};

} // namespace

operand_use split_decision::use_of(const node& call, const node_cut& how, size_t i) const {
  const auto& place = how.axis->inputs[i];
  if (call.inputs[i] == no_value || !place)
    return operand_use::all;
  const value_cut& operand = values[call.inputs[i]];
  if (operand.is != value_cut::kind::parts || operand.axis != place->axis)
    return operand_use::slice;
  if (i == 0 && how.axis->kind == axis_kind::windowed)
    return operand_use::pieces;
  for (size_t k = 0; k < operand.bounds.size(); ++k)
    if (!(operand.bounds[k] == how.bounds[k] * place->unit))
      return operand_use::slice;
  return operand_use::own;
}

std::vector<int64_t> stated_pads(const node& call) {
  const bool stated = call.attrs.text("auto_pad", "NOTSET") == "NOTSET";
  return stated ? call.attrs.integers("pads", {}) : std::vector<int64_t>{};
}

int64_t padding_after(const node& call, size_t axis) {
  const std::vector<int64_t> pads = stated_pads(call);
  const size_t at = pads.size() / 2 + axis - 2;
  return at < pads.size() ? pads[at] : 0;
}

split_decision decide_split(placement_problem& problem, std::span<const device_index> home, const split_team& team,
                            int along) {
  return decider(problem, home, team, along).run();
}

} // namespace troupe

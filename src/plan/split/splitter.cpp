#include "plan/split/splitter.hpp"

#include "plan/split/part_writer.hpp"

#include <algorithm>
#include <set>

namespace troupe {
namespace {

/// Values of symbols at which dims that are written differently are compared.
bindings sample(const std::vector<std::string>& symbols, int64_t seed) {
  bindings values;
  for (const std::string& name : symbols)
    values[name] = 64 + (seed = (seed * 1103515245 + 12345) & 0x7fffffff) % 4096;
  return values;
}

/// Returns whether two dims are equal for all that is known of them.
bool are_equal(const dim& a, const dim& b) {
  if (a == b || (a.is_constant() && b.is_constant()))
    return a == b;
  std::vector<std::string> symbols;
  a.collect_symbols(symbols);
  b.collect_symbols(symbols);
  for (int64_t seed = 1; seed <= 16; ++seed) {
    const bindings values = sample(symbols, seed);
    if (a.evaluate(values) != b.evaluate(values))
      return false;
  }
  return true;
}

class splitter : part_writer {
public:
  splitter(graph& g, std::vector<device_index>& placement, std::span<const device_info> devices, const split_team& team,
           const split_decision& decision)
      : part_writer(g, placement, devices), team_(team), decision_(decision), wanted_(g.values.size()),
        parts_(g.values.size()) {}

  void run() {
    for (value_id v : g_.outputs)
      want(v, team_.devices.front());
    for (auto n = static_cast<node_id>(nodes_.size()); n-- > 0;)
      want_operands(n);
    begin_anew();
    for (node_id n = 0; n < static_cast<node_id>(nodes_.size()); ++n)
      write(n);
  }

private:
  const node_cut& how(node_id n) const { return decision_.nodes[n]; }
  bool in_team(device_index d) const { return std::ranges::find(team_.devices, d) != team_.devices.end(); }

  /// The device whose whole form of `v` device `d` reads.
  device_index home_of_whole(value_id v, device_index d) const {
    const bool anywhere = decision_.values[v].is != value_cut::kind::whole; // made of parts
    return anywhere || in_team(d) ? d : team_.devices.front();
  }

  // -- what is read where

  void want(value_id v, device_index d) {
    if (v != no_value && edges_.producer[v] >= 0 && how(edges_.producer[v]).is != node_cut::kind::single)
      wanted_[v].insert(home_of_whole(v, d));
  }

  std::set<device_index> devices_of(const node& n) const {
    std::set<device_index> all;
    for (value_id v : n.outputs)
      if (v != no_value)
        all.insert(wanted_[v].begin(), wanted_[v].end());
    return all;
  }

  void want_operands(node_id n) {
    const node& call = nodes_[n];
    switch (how(n).is) {
      case node_cut::kind::single:
        for (value_id v : call.inputs)
          want(v, old_placement_[n]);
        return;
      case node_cut::kind::repeated:
        for (const device_index d : devices_of(call))
          for (value_id v : call.inputs)
            want(v, d);
        return;
      case node_cut::kind::cut:
        for (size_t i = 0; i < call.inputs.size(); ++i)
          if (reads_whole(use_of(n, i)))
            for (const device_index d : team_.devices)
              want(call.inputs[i], d);
        return;
    }
  }

  operand_use use_of(node_id n, size_t i) const { return decision_.use_of(nodes_[n], how(n), i); }

  bool is_windowed(node_id n, size_t i) const { return i == 0 && how(n).axis->kind == axis_kind::windowed; }

  // -- nodes

  void write(node_id n) {
    const node& call = nodes_[n];
    switch (how(n).is) {
      case node_cut::kind::single: return write_copy(n, old_placement_[n], call.outputs);
      case node_cut::kind::repeated: return write_repeated(n);
      case node_cut::kind::cut: return write_parts(n);
    }
  }

  void write_copy(node_id n, device_index device, std::vector<value_id> outputs) {
    node copy = nodes_[n];
    for (value_id& v : copy.inputs)
      v = whole(v, device);
    if (outputs != copy.outputs)
      copy.name += "/" + devices_[device].name;
    copy.outputs = std::move(outputs);
    const auto is_inferred = [&](value_id v) { return v == no_value || g_.values[v].type != dtype::undefined; };
    if (std::ranges::all_of(copy.outputs, is_inferred))
      add(std::move(copy), device);
    else
      add_inferred(std::move(copy), device);
  }

  /// The device whose whole form of a value keeps the value's own id: the caller reads the first device's.
  device_index first_of(const std::set<device_index>& all) const {
    return all.contains(team_.devices.front()) ? team_.devices.front() : *all.begin();
  }

  void write_repeated(node_id n) {
    const std::set<device_index> all = devices_of(nodes_[n]);
    for (const device_index d : all) {
      std::vector<value_id> outputs = nodes_[n].outputs;
      for (value_id& v : outputs)
        if (v != no_value)
          v = form_of(v, d) = d == first_of(all) ? v : add_like(v, "/" + devices_[d].name);
      write_copy(n, d, std::move(outputs));
    }
  }

  void write_parts(node_id n) {
    const std::vector<value_id>& results = nodes_[n].outputs;
    for (size_t i = 0; i < team_.size(); ++i) {
      node part = nodes_[n];
      part.name += fmt::format("/part_{}", i);
      for (size_t k = 0; k < part.inputs.size(); ++k)
        part.inputs[k] = operand(n, k, i);
      resize(part, n, i);
      if (how(n).axis->kind == axis_kind::windowed)
        pad(part, n, i);
      for (value_id& v : part.outputs)
        if (v != no_value)
          v = result(v, i);
      const std::vector<value_id> made = part.outputs;
      add_inferred(std::move(part), team_.devices[i]);
      for (size_t r = 0; r < made.size(); ++r)
        if (made[r] != no_value)
          check(made[r], results[r], i);
    }
    for (value_id v : results)
      if (v != no_value && decision_.values[v].is != value_cut::kind::whole)
        for (const device_index d : wanted_[v])
          make_whole(v, d);
  }

  /// Adds what device `i` of the team makes of a result of a cut node.
  value_id result(value_id v, size_t i) {
    if (decision_.values[v].is == value_cut::kind::whole)
      return form_of(v, team_.devices[i]) = i == 0 ? v : add_like(v, "/" + devices_[team_.devices[i]].name);
    parts_[v].push_back(add_like(v, fmt::format("/part_{}", i)));
    return parts_[v].back();
  }

  /// Requires that a part is what the decision says, and states it in the same words.
  void check(value_id part, value_id whole, size_t i) {
    const value_cut& cut = decision_.values[whole];
    value& made = g_.values[part];
    symbolic_shape dims = *g_.values[whole].dims;
    if (cut.is == value_cut::kind::parts)
      dims[cut.axis] = cut.bounds[i + 1] - cut.bounds[i];
    if (made.type != g_.values[whole].type || !made.dims || !std::ranges::equal(*made.dims, dims, are_equal))
      fail(errc::unsupported, "part {} of '{}' would have dims {} instead of {}", i, g_.values[whole].name,
           made.dims ? to_string(*made.dims) : "of no known rank", to_string(dims));
    made.dims = std::move(dims);
  }

  // -- operands

  /// Returns `v`, whole, for nodes on a device.
  value_id whole(value_id v, device_index d) {
    if (v == no_value || edges_.producer[v] < 0 || how(edges_.producer[v]).is == node_cut::kind::single)
      return v;
    return form_of(v, home_of_whole(v, d));
  }

  value_id operand(node_id n, size_t k, size_t i) {
    const value_id v = nodes_[n].inputs[k];
    const device_index d = team_.devices[i];
    const auto& place = how(n).axis->inputs[k];
    switch (use_of(n, k)) {
      case operand_use::all: return whole(v, d);
      case operand_use::own: return parts_[v][i];
      case operand_use::pieces: return joined_pieces(v, place->axis, need(n, i), i);
      case operand_use::slice: break;
    }
    if (is_windowed(n, k)) {
      const window_need range = need(n, i);
      return slice(whole(v, d), place->axis, range.first, range.end, d);
    }
    return slice(whole(v, d), place->axis, how(n).bounds[i] * place->unit, how(n).bounds[i + 1] * place->unit, d);
  }

  window_need need(node_id n, size_t i) const {
    const axis_place& place = *how(n).axis->inputs[0];
    std::vector<dim> known; // the decision has noted them
    return *need_of(how(n).axis->window, how(n).bounds, i, g_.values[nodes_[n].inputs[0]].dims->at(place.axis),
                    padding_after(nodes_[n], place.axis), known);
  }

  /// Returns what windows of device `i` need of a value in parts. Other devices send the rows that they have of it.
  value_id joined_pieces(value_id v, size_t axis, const window_need& range, size_t i) {
    std::vector<dim> known; // the decision has noted them
    std::vector<value_id> pieces;
    const auto found = pieces_of(decision_.values[v].bounds, i, range.first, range.end, known);
    for (const part_piece& p : *found)
      pieces.push_back(slice(parts_[v][p.from], axis, p.begin, p.end, team_.devices[p.from]));
    if (pieces.size() == 1)
      return pieces[0];
    return join(fmt::format("{}/{}_{}", g_.values[parts_[v][i]].name, range.first.to_string(), range.end.to_string()),
                std::move(pieces), axis, no_value, team_.devices[i]);
  }

  /// Makes a cut value whole on a device.
  void make_whole(value_id v, device_index d) {
    const value_cut& cut = decision_.values[v];
    const bool own = d == first_of(wanted_[v]);
    const std::string name = g_.values[v].name + "/" + devices_[d].name;
    const value_id into = own ? v : g_.add_value({.name = name, .type = g_.values[v].type, .dims = g_.values[v].dims});
    form_of(v, d) = into;
    if (cut.is == value_cut::kind::parts)
      join(name, parts_[v], cut.axis, into, d);
    else
      combine(cut.combined, name, parts_[v], into, d);
  }

  // -- what else of a call depends on the length of its result

  /// Operands that say how long the result is say it of the part, unless they say "as the operand" or "what is left".
  void resize(node& part, node_id n, size_t i) {
    for (const auto& [k, element] : how(n).axis->sizes) {
      std::vector<dim> elements = infer_context::of(g_, nodes_[n]).require_known(k);
      if (elements.at(element).is(0) || elements[element].is(-1))
        continue;
      elements[element] = (how(n).bounds[i + 1] - how(n).bounds[i]) * how(n).axis->outputs[0]->unit;
      part.inputs[k] = known_vector(part.name + "/dims", elements);
    }
  }

  /// Padding stays at the ends of the whole.
  void pad(node& part, node_id n, size_t i) {
    const size_t spatial = g_.values[nodes_[n].inputs[0]].dims->size() - 2, at = how(n).axis->inputs[0]->axis - 2;
    std::vector<int64_t> pads = stated_pads(part);
    pads.resize(2 * spatial);
    const window_need range = need(n, i);
    pads[at] = range.pad_begin;
    pads[at + spatial] = range.pad_end;
    part.attrs.set("pads", pads);
    part.attrs.set("auto_pad", std::string("NOTSET"));
  }

  const split_team& team_;
  const split_decision& decision_;
  std::vector<std::set<device_index>> wanted_; // by old value: where it is read whole
  std::vector<std::vector<value_id>> parts_;   // by old value and device of the team, if it is cut
};

} // namespace

void apply_split(graph& g, std::vector<device_index>& placement, std::span<const device_info> devices,
                 const split_team& team, const split_decision& decision) {
  splitter(g, placement, devices, team, decision).run();
}

} // namespace troupe

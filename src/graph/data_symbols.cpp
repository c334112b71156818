#include "graph/data_symbols.hpp"

#include <algorithm>
#include <numeric>
#include <set>

namespace troupe {
namespace {

std::vector<std::string> names_in(const value& v) {
  std::vector<std::string> names;
  const auto add = [&](const std::vector<dim>& dims) {
    for (const dim& d : dims)
      if (d.depends_on_data())
        d.collect_symbols(names);
  };
  if (v.dims)
    add(*v.dims);
  if (v.known)
    add(*v.known);
  std::erase_if(names, [](const std::string& name) { return !name.starts_with('#'); });
  return names;
}

} // namespace

data_symbols::data_symbols(const graph& g) {
  collect(g);
  definer_.assign(names_.size(), -1);
  symbols_.resize(names_.size());
  for (node_id n = 0; n < static_cast<node_id>(g.nodes.size()) && !names_.empty(); ++n)
    find_definitions(g, n);
}

void data_symbols::collect(const graph& g) {
  std::set<std::string> given;
  for (value_id v : g.inputs)
    for (std::string& name : names_in(g.values[v]))
      given.insert(std::move(name));
  for (size_t v = 0; v < g.values.size(); ++v)
    for (const std::string& name : names_in(g.values[v])) {
      if (given.contains(name))
        continue;
      const auto [it, inserted] = ids_.try_emplace(name, static_cast<id>(names_.size()));
      if (inserted)
        names_.push_back(name);
      of_value_.resize(g.values.size());
      of_value_[v].push_back(it->second);
    }
}

void data_symbols::find_definitions(const graph& g, node_id n) {
  const node& call = g.nodes[n];
  const auto is_given = [&](id s) {
    return std::any_of(call.inputs.begin(), call.inputs.end(), [&](value_id v) {
      return v != no_value && std::find(of_value_[v].begin(), of_value_[v].end(), s) != of_value_[v].end();
    });
  };
  for (value_id v : call.outputs) {
    if (v == no_value || of_value_[v].empty() || !g.values[v].dims)
      continue;
    const symbolic_shape& dims = *g.values[v].dims;
    for (uint32_t axis = 0; axis < dims.size(); ++axis) {
      const auto it = ids_.find(dims[axis].symbol_name());
      if (it == ids_.end() || definer_[it->second] >= 0 || is_given(it->second))
        continue;
      definer_[it->second] = n;
      symbols_[it->second] = {it->first, v, axis};
    }
  }
}

std::vector<data_symbol> data_symbols::definitions() const {
  std::vector<id> order(symbols_.size());
  std::iota(order.begin(), order.end(), id{0});
  std::stable_sort(order.begin(), order.end(), [&](id a, id b) { return definer_[a] < definer_[b]; });
  std::vector<data_symbol> sorted;
  for (id s : order)
    if (definer_[s] >= 0)
      sorted.push_back(symbols_[s]);
  return sorted;
}

} // namespace troupe

#include "wire/dims.hpp"

#include "base/limits.hpp"
#include "graph/dim_budget.hpp"

namespace troupe::wire {

uint32_t dim_flattener::add(const std::vector<dim>& list) {
  std::string key;
  for (const dim& d : list)
    key += canonical_text(d) + ',';
  const auto [found, is_new] = lists_.try_emplace(std::move(key), static_cast<uint32_t>(table.lists.size()));
  if (is_new) {
    std::vector<flat_dim> all;
    all.reserve(list.size());
    for (const dim& d : list)
      all.push_back(flat(d));
    table.lists.push_back(std::move(all));
  }
  return found->second;
}

flat_dim dim_flattener::flat(const dim& d) {
  if (d.is_constant())
    return d.is(0) ? flat_dim{} : flat_dim{{d.constant(), {}}};
  flat_dim sum;
  for (const dim_term& term : dim_polynomial::of(d)->terms) {
    flat_term& made = sum.emplace_back(flat_term{term.coefficient, {}});
    for (const auto& factor : term.factors)
      made.factors.push_back(add(*factor));
  }
  return sum;
}

/// Recurses as deep as the dim is nested, which its length bounds.
uint32_t dim_flattener::add(const dim_atom& atom) {
  if (const auto found = atoms_.find(atom.key); found != atoms_.end())
    return found->second;
  flat_atom made{atom.op, atom.name, {}};
  for (size_t i = 0; i < atom.args.size(); ++i)
    made.args.at(i) = flat(atom.args[i]);
  table.atoms.push_back(std::move(made));
  return atoms_[atom.key] = static_cast<uint32_t>(table.atoms.size() - 1);
}

dim_maker::dim_maker(const flat_dims& table) {
  for (const flat_atom& atom : table.atoms) {
    if (atom.name.size() > limits::longest_name)
      fail(errc::invalid_input, "a dim from another host has a name of {} characters", atom.name.size());
    const dim a = make(atom.args[0]), b = make(atom.args[1]);
    switch (atom.op) {
      case dim_atom::operation::symbol: atoms_.push_back(dim::symbol(atom.name)); break;
      case dim_atom::operation::floor_div: atoms_.push_back(floor_div(a, b)); break;
      case dim_atom::operation::min: atoms_.push_back(min(a, b)); break;
      case dim_atom::operation::max: atoms_.push_back(max(a, b)); break;
      case dim_atom::operation::broadcast: atoms_.push_back(broadcast(a, b)); break;
    }
  }
  for (const std::vector<flat_dim>& flat : table.lists) {
    std::vector<dim>& list = lists_.emplace_back();
    for (const flat_dim& d : flat)
      list.push_back(make(d));
  }
}

const std::vector<dim>& dim_maker::list(uint32_t index) const {
  if (index >= lists_.size())
    fail(errc::invalid_input, "a message from another host refers to dims {} of {}", index, lists_.size());
  dim_budget::spend(static_cast<int64_t>(lists_[index].size() * sizeof(dim)));
  return lists_[index];
}

dim dim_maker::make(const flat_dim& flat) const {
  dim sum;
  for (const flat_term& term : flat) {
    dim product = term.coefficient;
    for (uint32_t factor : term.factors) {
      if (factor >= atoms_.size())
        fail(errc::invalid_input, "a dim from another host refers to atom {}, but {} stand before", factor,
             atoms_.size());
      product = product * atoms_[factor];
    }
    sum = sum + product;
  }
  return sum;
}

} // namespace troupe::wire

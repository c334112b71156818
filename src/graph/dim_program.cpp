#include "graph/dim_program.hpp"

#include "base/checked.hpp"
#include "graph/dim_expression.hpp"

#include <algorithm>

namespace troupe {

dim_program::slot dim_program::emit(std::string key, instruction step) {
  steps_.push_back(step);
  const auto at = static_cast<slot>(steps_.size() - 1);
  known_.emplace(std::move(key), at);
  return at;
}

dim_program::slot dim_program::add(const dim& d) {
  const std::string key = canonical_text(d);
  if (auto it = known_.find(key); it != known_.end())
    return it->second;
  if (d.is_constant())
    return emit(key, {code::constant, 0, d.constant(), 0});

  const auto add_atom = [this](const dim_atom& atom) {
    if (auto it = known_.find(atom.key); it != known_.end())
      return it->second;
    if (atom.op == dim_atom::operation::symbol) {
      symbols_.push_back(atom.name);
      return emit(atom.key, {code::symbol, 0, static_cast<int64_t>(symbols_.size() - 1), 0});
    }
    const slot a = add(atom.args[0]), b = add(atom.args[1]);
    return emit(atom.key, {code::operation, static_cast<uint8_t>(atom.op), a, b});
  };
  const auto add_term = [&](const dim_term& term) {
    slot product = add(dim(term.coefficient));
    bool scaled = term.coefficient != 1;
    for (const auto& factor : term.factors) {
      const slot value = add_atom(*factor);
      product = scaled ? emit("", {code::multiply, 0, product, value}) : value;
      scaled = true;
    }
    return product;
  };
  const auto& terms = dim_polynomial::of(d)->terms;
  slot sum = add_term(terms[0]);
  for (size_t i = 1; i < terms.size(); ++i)
    sum = emit("", {code::add, 0, sum, add_term(terms[i])});
  known_.emplace(key, sum);
  return sum;
}

void dim_program::evaluate(std::span<const int64_t> values, std::vector<int64_t>& slots) const {
  expects(values.size() == symbols_.size(), "dim_program::evaluate: one value a symbol");
  slots.resize(steps_.size());
  for (size_t i = 0; i < steps_.size(); ++i) {
    const instruction& step = steps_[i];
    switch (step.what) {
      case code::constant: slots[i] = step.a; break;
      case code::symbol: slots[i] = values[static_cast<size_t>(step.a)]; break;
      case code::add: slots[i] = checked_add(slots[step.a], slots[step.b]); break;
      case code::multiply: slots[i] = checked_mul(slots[step.a], slots[step.b]); break;
      case code::operation:
        slots[i] = apply_dim_operation(static_cast<dim_atom::operation>(step.operation), slots[step.a], slots[step.b]);
        break;
    }
  }
}

std::vector<bool> dim_program::dependents(const std::vector<bool>& which) const {
  expects(which.size() == symbols_.size(), "dim_program::dependents: one entry a symbol");
  std::vector<bool> slots(steps_.size());
  for (size_t i = 0; i < steps_.size(); ++i) {
    const instruction& step = steps_[i];
    switch (step.what) {
      case code::constant: break;
      case code::symbol: slots[i] = which[static_cast<size_t>(step.a)]; break;
      case code::add:
      case code::multiply:
      case code::operation: slots[i] = slots[static_cast<size_t>(step.a)] || slots[static_cast<size_t>(step.b)]; break;
    }
  }
  return slots;
}

} // namespace troupe

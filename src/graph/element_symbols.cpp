#include "graph/element_symbols.hpp"

#include "graph/dim_expression.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr std::string_view plus = "plus", minus = "minus";

std::string element_name(const std::string& input, size_t index, std::string_view sign) {
  return fmt::format("@{}.{}.{}", input, index, sign);
}

/// Whether a symbol's name is one that only troupe gives.
bool is_ours(const std::string& name) {
  return name.starts_with('#') || name.starts_with('@');
}

} // namespace

bool is_positive_unless_empty(const dim& d) {
  if (d.is_constant())
    return d.constant() > 0;
  const auto is_input_dim = [](const auto& factor) {
    const std::string& name = factor->name;
    const bool is_element = name.starts_with('@') && (name.ends_with(plus) || name.ends_with(minus));
    return factor->op == dim_atom::operation::symbol && !is_element && !name.starts_with('#');
  };
  // No term is negative, so one that is positive is enough.
  return is_nonnegative(d) && std::ranges::any_of(dim_polynomial::of(d)->terms, [&](const dim_term& term) {
           return term.coefficient > 0 && std::ranges::all_of(term.factors, is_input_dim);
         });
}

dim stated_symbol(const std::string& name) {
  return dim::symbol(is_ours(name) ? '"' + name + '"' : name);
}

bool depend_on_run(std::span<const dim> dims) {
  std::vector<std::string> names;
  for (const dim& d : dims)
    d.collect_symbols(names);
  return std::ranges::any_of(names, is_ours);
}

dim body_dim(const std::string& input, size_t axis) {
  return dim::symbol(fmt::format("@{}.{}", input, axis));
}

std::vector<dim> element_symbols(const std::string& input, size_t count, bool counts) {
  std::vector<dim> elements;
  for (size_t i = 0; i < count; ++i) {
    const dim positive = dim::symbol(element_name(input, i, plus));
    elements.push_back(counts ? positive : positive - dim::symbol(element_name(input, i, minus)));
  }
  return elements;
}

void bind_elements(const value& input, const tensor& bytes, bindings& values) {
  if (!input.known || input.known->empty())
    return;
  std::vector<std::string> names;
  input.known->front().collect_symbols(names);
  if (std::find(names.begin(), names.end(), element_name(input.name, 0, plus)) == names.end())
    return; // the enclosing graph knows them
  const std::vector<int64_t> elements = to_int64(bytes.view());
  expects(elements.size() == input.known->size(), "bind_elements: another number of elements than was planned");
  for (size_t i = 0; i < elements.size(); ++i) {
    const bool counts = !(*input.known)[i].symbol_name().empty();
    if (counts && elements[i] < 0)
      fail(errc::invalid_input, "element {} of '{}' decides a shape, but it is {}", i, input.name, elements[i]);
    values[element_name(input.name, i, plus)] = std::max<int64_t>(elements[i], 0);
    values[element_name(input.name, i, minus)] = -std::clamp<int64_t>(elements[i], -INT64_MAX, 0);
  }
}

} // namespace troupe

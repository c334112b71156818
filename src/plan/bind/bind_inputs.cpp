#include "plan/bind/bind_inputs.hpp"

#include <algorithm>

namespace troupe {

input_symbols::input_symbols(const graph& program) : program_(&program), rules_(program.inputs.size()) {
  for (size_t i = 0; i < rules_.size(); ++i) {
    if (!input(i).dims)
      continue;
    std::vector<axis_rule>& rules = rules_[i].emplace();
    for (const dim& d : *input(i).dims) {
      axis_rule& rule = rules.emplace_back();
      if (d.is_constant()) {
        rule.constant = d.constant();
      } else if (const std::string name = d.symbol_name(); !name.empty()) {
        const auto known = std::find(names_.begin(), names_.end(), name);
        rule = {.is = axis_rule::kind::symbol, .symbol = static_cast<size_t>(known - names_.begin())};
        if (known == names_.end())
          names_.push_back(name);
      } else {
        rule.is = axis_rule::kind::expression;
        has_expressions_ = true;
      }
    }
  }
}

bindings input_symbols::bind(std::span<const shape* const> shapes, const bindings& given) const {
  expects(shapes.size() == rules_.size(), "input_symbols: a shape, or null, for every input");
  for (size_t i = 0; i < shapes.size(); ++i)
    if (!shapes[i])
      fail(errc::invalid_input, "input '{}' is missing", input(i).name);
  std::vector<std::optional<int64_t>> values = values_in(given);
  for (size_t i = 0; i < shapes.size(); ++i)
    if (rules_[i])
      bind_symbols(i, *shapes[i], given, values);
  bindings bound = given;
  for (size_t s = 0; s < names_.size(); ++s)
    if (values[s])
      bound.try_emplace(names_[s], *values[s]);
  for (size_t i = 0; has_expressions_ && i < shapes.size(); ++i)
    if (rules_[i])
      check_expressions(i, *shapes[i], bound);
  return bound;
}

std::vector<std::optional<int64_t>> input_symbols::values_in(const bindings& given) const {
  std::vector<std::optional<int64_t>> values(names_.size());
  for (size_t s = 0; s < names_.size(); ++s)
    if (const auto stated = given.find(names_[s]); stated != given.end())
      values[s] = stated->second;
  return values;
}

void input_symbols::bind_symbols(size_t i, const shape& found, const bindings& given,
                                 std::vector<std::optional<int64_t>>& values) const {
  const std::vector<axis_rule>& rules = *rules_[i];
  if (found.size() != rules.size())
    fail(errc::invalid_input, "input '{}': rank {} expected (shape {}), rank {} found (shape {})", input(i).name,
         rules.size(), to_string(*input(i).dims), found.size(), to_string(found));
  for (size_t axis = 0; axis < rules.size(); ++axis) {
    const axis_rule& rule = rules[axis];
    if (found[axis] < 0)
      fail(errc::invalid_input, "input '{}', axis {}: a dim of {} found", input(i).name, axis, found[axis]);
    if (rule.is == axis_rule::kind::constant) {
      check(i, axis, rule.constant, found[axis]);
    } else if (rule.is == axis_rule::kind::symbol) {
      std::optional<int64_t>& value = values[rule.symbol];
      if (!value)
        value = found[axis];
      else if (*value != found[axis])
        fail(errc::invalid_input, "input '{}', axis {}: {} expected ('{}', {}), {} found", input(i).name, axis, *value,
             names_[rule.symbol], origin_of(rule.symbol, given), found[axis]);
    }
  }
}

std::string input_symbols::origin_of(size_t symbol, const bindings& given) const {
  if (!given.contains(names_[symbol]))
    for (size_t i = 0; i < rules_.size(); ++i)
      for (size_t axis = 0; rules_[i] && axis < rules_[i]->size(); ++axis)
        if (const axis_rule& rule = (*rules_[i])[axis]; rule.is == axis_rule::kind::symbol && rule.symbol == symbol)
          return fmt::format("from input '{}', axis {}", input(i).name, axis);
  return "given beside the inputs";
}

void input_symbols::check_expressions(size_t i, const shape& found, const bindings& values) const {
  for (size_t axis = 0; axis < rules_[i]->size(); ++axis)
    if ((*rules_[i])[axis].is == axis_rule::kind::expression)
      check(i, axis, (*input(i).dims)[axis].evaluate(values), found[axis]);
}

void input_symbols::check(size_t i, size_t axis, int64_t expected, int64_t found) const {
  if (expected == found)
    return;
  const dim& declared = (*input(i).dims)[axis];
  fail(errc::invalid_input, "input '{}', axis {}: {} expected{}, {} found", input(i).name, axis, expected,
       declared.is_constant() ? "" : fmt::format(" ({})", declared.to_string()), found);
}

} // namespace troupe

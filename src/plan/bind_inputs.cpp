#include "plan/bind_inputs.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Where a symbol's value was said first, for messages.
struct origin {
  std::string_view input; // empty: given beside the inputs
  size_t axis = 0;
};

std::string to_string(const origin& from) {
  return from.input.empty() ? "given beside the inputs"
                            : fmt::format("from input '{}', axis {}", from.input, from.axis);
}

class input_binder {
public:
  input_binder(const graph& program, const std::map<std::string, shape>& shapes, const bindings& given)
      : program_(program), shapes_(shapes), values_(given) {
    for (const auto& [name, value] : given)
      origins_[name] = {};
  }

  bindings run() {
    check_names();
    for (value_id v : program_.inputs)
      if (program_.values[v].dims)
        bind_symbols(program_.values[v]);
    for (value_id v : program_.inputs)
      if (program_.values[v].dims)
        check_expressions(program_.values[v]);
    return std::move(values_);
  }

private:
  void check_names() const {
    for (value_id v : program_.inputs)
      if (!shapes_.contains(program_.values[v].name))
        fail(errc::invalid_input, "input '{}' is missing", program_.values[v].name);
    if (shapes_.size() == program_.inputs.size())
      return;
    for (const auto& [name, dims] : shapes_) {
      const auto is_named = [&](value_id v) { return program_.values[v].name == name; };
      if (std::none_of(program_.inputs.begin(), program_.inputs.end(), is_named))
        fail(errc::invalid_input, "the model has no input '{}'; its inputs are {}", name, input_names());
    }
  }

  std::string input_names() const {
    std::string names;
    for (value_id v : program_.inputs)
      names += fmt::format("{}'{}'", names.empty() ? "" : ", ", program_.values[v].name);
    return names.empty() ? "none" : names;
  }

  void bind_symbols(const value& input) {
    const shape& found = shapes_.at(input.name);
    const symbolic_shape& expected = *input.dims;
    if (found.size() != expected.size())
      fail(errc::invalid_input, "input '{}': rank {} expected (shape {}), rank {} found (shape {})", input.name,
           expected.size(), troupe::to_string(expected), found.size(), troupe::to_string(found));
    for (size_t axis = 0; axis < expected.size(); ++axis) {
      if (found[axis] < 0)
        fail(errc::invalid_input, "input '{}', axis {}: a dim of {} found", input.name, axis, found[axis]);
      if (expected[axis].is_constant())
        check(input, axis, expected[axis].constant(), found[axis]);
      else if (const std::string symbol = expected[axis].symbol_name(); !symbol.empty())
        bind_symbol(input, axis, symbol, found[axis]);
    }
  }

  void bind_symbol(const value& input, size_t axis, const std::string& symbol, int64_t found) {
    const auto [it, inserted] = values_.try_emplace(symbol, found);
    if (inserted)
      origins_[symbol] = {input.name, axis};
    else if (it->second != found)
      fail(errc::invalid_input, "input '{}', axis {}: {} expected ('{}', {}), {} found", input.name, axis, it->second,
           symbol, to_string(origins_[symbol]), found);
  }

  void check_expressions(const value& input) const {
    for (size_t axis = 0; axis < input.dims->size(); ++axis) {
      const dim& expected = (*input.dims)[axis];
      if (!expected.is_constant() && expected.symbol_name().empty())
        check(input, axis, expected.evaluate(values_), shapes_.at(input.name)[axis]);
    }
  }

  static void check(const value& input, size_t axis, int64_t expected, int64_t found) {
    if (expected != found)
      fail(errc::invalid_input, "input '{}', axis {}: {} expected{}, {} found", input.name, axis, expected,
           (*input.dims)[axis].is_constant() ? "" : fmt::format(" ({})", (*input.dims)[axis].to_string()), found);
  }

  const graph& program_;
  const std::map<std::string, shape>& shapes_;
  bindings values_;
  std::map<std::string, origin> origins_;
};

} // namespace

bindings bind_inputs(const graph& program, const std::map<std::string, shape>& shapes, const bindings& given) {
  return input_binder(program, shapes, given).run();
}

} // namespace troupe

#include "plan/bind/bind_inputs.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Where a symbol's value was said first, for messages.
struct origin {
  std::string_view input; // empty: given beside the inputs
  size_t axis = 0;
};

std::string origin_text(const origin& from) {
  return from.input.empty() ? "given beside the inputs"
                            : fmt::format("from input '{}', axis {}", from.input, from.axis);
}

class input_binder {
public:
  input_binder(const graph& program, std::span<const shape* const> shapes, const bindings& given)
      : program_(program), shapes_(shapes), values_(given) {
    expects(shapes.size() == program.inputs.size(), "bind_inputs: a shape, or null, for every input");
    for (const auto& [name, value] : given)
      origins_[name] = {};
  }

  bindings run() {
    for (size_t i = 0; i < shapes_.size(); ++i)
      if (!shapes_[i])
        fail(errc::invalid_input, "input '{}' is missing", input(i).name);
    for (size_t i = 0; i < shapes_.size(); ++i)
      if (input(i).dims)
        bind_symbols(input(i), *shapes_[i]);
    for (size_t i = 0; i < shapes_.size(); ++i)
      if (input(i).dims)
        check_expressions(input(i), *shapes_[i]);
    return std::move(values_);
  }

private:
  const value& input(size_t i) const { return program_.values[program_.inputs[i]]; }

  void bind_symbols(const value& input, const shape& found) {
    const symbolic_shape& expected = *input.dims;
    if (found.size() != expected.size())
      fail(errc::invalid_input, "input '{}': rank {} expected (shape {}), rank {} found (shape {})", input.name,
           expected.size(), to_string(expected), found.size(), to_string(found));
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
           symbol, origin_text(origins_[symbol]), found);
  }

  void check_expressions(const value& input, const shape& found) const {
    for (size_t axis = 0; axis < input.dims->size(); ++axis) {
      const dim& expected = (*input.dims)[axis];
      if (!expected.is_constant() && expected.symbol_name().empty())
        check(input, axis, expected.evaluate(values_), found[axis]);
    }
  }

  static void check(const value& input, size_t axis, int64_t expected, int64_t found) {
    if (expected != found)
      fail(errc::invalid_input, "input '{}', axis {}: {} expected{}, {} found", input.name, axis, expected,
           (*input.dims)[axis].is_constant() ? "" : fmt::format(" ({})", (*input.dims)[axis].to_string()), found);
  }

  const graph& program_;
  std::span<const shape* const> shapes_; // parallel to the program's inputs
  bindings values_;
  std::map<std::string, origin> origins_;
};

} // namespace

bindings bind_inputs(const graph& program, std::span<const shape* const> shapes, const bindings& given) {
  return input_binder(program, shapes, given).run();
}

} // namespace troupe

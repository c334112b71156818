// Symbol values from the shapes of a run's inputs.
#pragma once

#include "graph/graph.hpp"

namespace troupe {

/// What the dims of a program's inputs say about its symbols, read once. Refers to the program, which must outlive it.
class input_symbols {
public:
  explicit input_symbols(const graph& program);

  /// Returns the values of all symbols that the inputs' dims say. An input dim that is a lone symbol binds it; every
  /// other dim is checked against what is bound. `given` holds values stated beside the inputs. Throws
  /// `errc::invalid_input` naming input, axis, expected and found where inputs are missing, a rank or dim differs, or
  /// two inputs disagree. `shapes` are parallel to `program.inputs`, null for an input that is missing.
  bindings bind(std::span<const shape* const> shapes, const bindings& given = {}) const;

private:
  /// One axis of an input that has dims: a constant, a lone symbol, or an expression of symbols.
  struct axis_rule {
    enum class kind : uint8_t { constant, symbol, expression } is = kind::constant;
    int64_t constant = 0;
    size_t symbol = 0; // among `names_`
  };

  const value& input(size_t i) const { return program_->values[program_->inputs[i]]; }
  std::vector<std::optional<int64_t>> values_in(const bindings& given) const;
  void bind_symbols(size_t i, const shape& found, const bindings& given,
                    std::vector<std::optional<int64_t>>& values) const;
  void check_expressions(size_t i, const shape& found, const bindings& values) const;
  void check(size_t i, size_t axis, int64_t expected, int64_t found) const;
  /// Says where a symbol's value was said first.
  std::string origin_of(size_t symbol, const bindings& given) const;

  const graph* program_;
  std::vector<std::string> names_;                           // of lone symbols, in their order among the inputs
  std::vector<std::optional<std::vector<axis_rule>>> rules_; // by input; nullopt if it has no dims
  bool has_expressions_ = false;
};

} // namespace troupe

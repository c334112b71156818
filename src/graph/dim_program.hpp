// All the symbolic dims of a model, compiled once into straight-line code: equal subexpressions are computed once.
#pragma once

#include "graph/dim.hpp"

#include <unordered_map>

namespace troupe {

/// Evaluates many dims at once (see the top of this file). Build with `add`, then `evaluate` as often as needed.
class dim_program {
public:
  /// Position of a dim's value in the result of `evaluate`.
  using slot = uint32_t;

  /// Adds `d` and returns its slot.
  slot add(const dim& d);

  /// Names of the symbols, in the order in which `evaluate` takes their values.
  const std::vector<std::string>& symbols() const { return symbols_; }

  /// Computes every slot's value into `slots` (resized, its storage reused). `values` holds one value a symbol. Throws
  /// `errc::invalid_input` if the values do not fit (a broadcast of unequal dims, a division by zero, overflow).
  void evaluate(std::span<const int64_t> values, std::vector<int64_t>& slots) const;

  /// Returns by slot whether its value depends on a symbol for which `which` (one entry a symbol) is set.
  std::vector<bool> dependents(const std::vector<bool>& which) const;

private:
  enum class code : uint8_t { constant, symbol, add, multiply, operation };
  struct instruction {
    code what;
    uint8_t operation;    // dim_atom::operation
    int64_t a = 0, b = 0; // slots; a is the value of a constant, the index of a symbol
  };

  slot emit(std::string key, instruction step);

  std::vector<std::string> symbols_;
  std::vector<instruction> steps_;
  std::unordered_map<std::string, slot> known_;
};

} // namespace troupe

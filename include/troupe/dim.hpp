// Dims that may be symbolic: a number, or an integer expression over named symbols (`batch`, `seq`, `past`).
//
// Arithmetic is exact and canonical: two dims that are equal as polynomials compare equal, so `seq + past - past ==
// seq` and `batch * seq * 64 / 64 == batch * seq`. "Not equal" means "not provably equal". Values are immutable and may
// cross threads.
#pragma once

#include "troupe/export.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace troupe {

struct dim_polynomial;

/// Values of symbols by name.
using bindings = std::map<std::string, int64_t>;

/// An integer, known or symbolic.
class TROUPE_API dim {
public:
  /// A known integer.
  dim(int64_t value = 0) : value_(value) {} // NOLINT(google-explicit-constructor): constants are dims
  /// The symbol called `name`.
  static dim symbol(const std::string& name);

  bool is_constant() const { return !polynomial_; }
  /// Returns the integer; requires `is_constant()`.
  int64_t constant() const;
  /// Returns the symbol's name if this dim is exactly one symbol, else an empty string.
  std::string symbol_name() const;
  /// Returns whether the value is `value` whatever the symbols.
  bool is(int64_t value) const { return is_constant() && value_ == value; }

  /// Throw `errc::unsupported` if the expression grows too long.
  friend TROUPE_API dim operator+(const dim& a, const dim& b);
  friend TROUPE_API dim operator-(const dim& a, const dim& b);
  friend TROUPE_API dim operator*(const dim& a, const dim& b);
  /// Returns whether the two are provably equal.
  friend TROUPE_API bool operator==(const dim& a, const dim& b);

  /// Returns the value under `values`; throws `errc::invalid_input` if a symbol is unbound or the arithmetic fails.
  int64_t evaluate(const bindings& values) const;
  /// Returns e.g. "batch*seq + 1"; equal dims have equal texts.
  std::string to_string() const;
  /// Adds the names of all symbols to `names`, each once.
  void collect_symbols(std::vector<std::string>& names) const;
  /// Returns whether the value depends on what a run computes: some symbol's name begins with '#'.
  bool depends_on_data() const;

private:
  friend struct dim_polynomial;
  explicit dim(std::shared_ptr<const dim_polynomial> polynomial);

  int64_t value_ = 0;
  std::shared_ptr<const dim_polynomial> polynomial_; // canonical; null for a constant
};

/// Shape whose dims may be symbolic, outermost first.
using symbolic_shape = std::vector<dim>;

/// Returns e.g. "[batch, 3, 224, 224]".
TROUPE_API std::string to_string(std::span<const dim> dims);

} // namespace troupe

// Dims that may be symbolic: integer expressions over named symbols (`batch`, `seq`, `past`).
//
// A dim is a polynomial with integer coefficients over atoms; an atom is a symbol or an operation that a polynomial cannot
// express (floor division, min, max, broadcast). The form is canonical: two dims that are equal as polynomials compare
// equal, so `seq + past - past == seq` and `batch * seq * 64 / 64 == batch * seq`. "Not equal" means "not provably equal".
//
// Expressions are built once for each model (shape inference) and compiled into a `dim_program`; binding concrete symbol
// values then only evaluates that program. All values are immutable and may cross threads.
#pragma once

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
class dim {
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

  friend dim operator+(const dim& a, const dim& b);
  friend dim operator-(const dim& a, const dim& b);
  friend dim operator*(const dim& a, const dim& b);
  /// Returns whether the two are provably equal.
  friend bool operator==(const dim& a, const dim& b);

  /// Returns the value under `values`; throws `errc::invalid_input` where a symbol is unbound or the arithmetic fails.
  int64_t evaluate(const bindings& values) const;
  /// Returns e.g. "batch*seq + 1"; equal dims have equal texts.
  std::string to_string() const;
  /// Adds the names of all symbols to `names`, each once.
  void collect_symbols(std::vector<std::string>& names) const;
  /// Returns whether some symbol's name begins with '#': the value depends on data (`infer_context::data_dependent`).
  bool depends_on_data() const;

  /// The canonical polynomial; null for a constant. For dim.cpp and dim_program.cpp.
  const std::shared_ptr<const dim_polynomial>& polynomial() const { return polynomial_; }
  explicit dim(std::shared_ptr<const dim_polynomial> polynomial);

private:
  int64_t value_ = 0;
  std::shared_ptr<const dim_polynomial> polynomial_;
};

/// Returns whether the value is provably ≥ 0: symbols are (they count elements), and so are sums and products of them.
bool is_nonnegative(const dim& d);

/// Returns ⌊a / b⌋; exact polynomial division where every term divides. Evaluation throws where b is 0.
dim floor_div(const dim& a, const dim& b);
/// Returns ⌈a / b⌉.
dim ceil_div(const dim& a, const dim& b);
/// Returns whether `a` is provably ≥ 0 whatever the symbols, which are dims and so never negative.
bool is_non_negative(const dim& a);
dim min(const dim& a, const dim& b);
dim max(const dim& a, const dim& b);
/// Returns the broadcast of two dims: equal, or one of them 1. Throws `errc::invalid_model` where two constants do not
/// fit; two symbolic dims are checked when they are bound.
dim broadcast(const dim& a, const dim& b);

/// Shape whose dims may be symbolic, outermost first.
using symbolic_shape = std::vector<dim>;

/// Returns the product of the dims.
dim volume(std::span<const dim> dims);
/// Returns the NumPy-broadcast shape.
symbolic_shape broadcast(std::span<const dim> a, std::span<const dim> b);
/// Returns whether no dim is symbolic.
bool is_constant(std::span<const dim> dims);
/// Returns the dims as integers; requires `is_constant(dims)`.
std::vector<int64_t> constants(std::span<const dim> dims);
symbolic_shape to_symbolic(std::span<const int64_t> dims);
std::string to_string(std::span<const dim> dims);

} // namespace troupe

#include "graph/dim.hpp"

#include "base/checked.hpp"
#include "base/limits.hpp"
#include "graph/dim_budget.hpp"
#include "graph/dim_expression.hpp"

#include <algorithm>
#include <functional>

namespace troupe {
namespace {

using term_map = std::map<std::string, dim_term>;
using atom_ptr = std::shared_ptr<const dim_atom>;

std::vector<dim_term> terms_of(const dim& d) {
  if (const auto& polynomial = dim_polynomial::of(d))
    return polynomial->terms;
  if (d.constant() == 0)
    return {};
  return {dim_term{d.constant(), {}, ""}};
}

void accumulate(term_map& sum, const dim_term& term, int64_t scale) {
  const int64_t coefficient = checked_mul(term.coefficient, scale);
  auto [it, inserted] = sum.try_emplace(term.key, term);
  it->second.coefficient = inserted ? coefficient : checked_add(it->second.coefficient, coefficient);
  if (it->second.coefficient == 0)
    sum.erase(it);
}

/// Counts the characters of an expression, coefficients taken for long ones. Texts that repeat a part double with each
/// step, so this bounds what a small file can make.
void check_length(size_t characters) {
  if (characters > limits::max_dim_characters)
    fail(errc::unsupported,
         "a symbolic dim is an expression of more than {} characters; give the model's inputs fixed dims",
         limits::max_dim_characters);
  dim_budget::spend(static_cast<int64_t>(characters));
}

dim from_terms(term_map sum) {
  if (sum.empty())
    return 0;
  if (sum.size() == 1 && sum.begin()->first.empty())
    return sum.begin()->second.coefficient;
  constexpr size_t coefficient_characters = 20;
  size_t characters = 0;
  for (const auto& [key, term] : sum)
    characters += key.size() + coefficient_characters;
  check_length(characters);
  auto polynomial = std::make_shared<dim_polynomial>();
  for (auto& [key, term] : sum)
    polynomial->terms.push_back(std::move(term));
  return dim_polynomial::make_dim(std::move(polynomial));
}

dim_term make_term(int64_t coefficient, std::vector<atom_ptr> factors) {
  std::sort(factors.begin(), factors.end(), [](const auto& a, const auto& b) { return a->key < b->key; });
  std::string key;
  for (const auto& factor : factors)
    key += (key.empty() ? "" : "*") + factor->key;
  return {coefficient, std::move(factors), std::move(key)};
}

dim from_atom(dim_atom atom) {
  term_map sum;
  accumulate(sum, make_term(1, {std::make_shared<const dim_atom>(std::move(atom))}), 1);
  return from_terms(std::move(sum));
}

dim make_operation(dim_atom::operation op, const char* name, const dim& a, const dim& b) {
  return from_atom({op, "", {a, b}, fmt::format("{}({}, {})", name, canonical_text(a), canonical_text(b))});
}

bool is_like_a_number(const std::string& name) {
  return name.empty() || (name[0] >= '0' && name[0] <= '9') || name[0] == '-';
}

/// Names are any text, and part of the canonical texts of expressions: a name that could be taken for an expression
/// ("seq + 1") stands in quotes there.
std::string key_of_symbol(const std::string& name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c < 0 ||
           std::string_view("_.#@/:-[]").find(c) != std::string_view::npos;
  };
  if (!is_like_a_number(name) && std::all_of(name.begin(), name.end(), plain))
    return name;
  std::string text = "\"";
  for (char c : name)
    text += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
  return text + '"';
}

int64_t floor_div(int64_t a, int64_t b) {
  if (b == 0)
    fail(errc::invalid_input, "a dim is divided by zero");
  if (b == -1) // the processor traps if the quotient does not fit
    return checked_mul(a, -1);
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

int64_t broadcast(int64_t a, int64_t b) {
  if (a != b && a != 1 && b != 1)
    fail(errc::invalid_input, "dims {} and {} cannot be broadcast together", a, b);
  return a == 1 ? b : a;
}

/// Removes `divisor`'s factors from `factors`; returns false if one is missing.
bool remove_factors(std::vector<atom_ptr>& factors, const std::vector<atom_ptr>& divisor) {
  for (const auto& atom : divisor) {
    auto it = std::find_if(factors.begin(), factors.end(), [&](const auto& f) { return f->key == atom->key; });
    if (it == factors.end())
      return false;
    factors.erase(it);
  }
  return true;
}

/// Divides `a` by the single term `b` exactly, term by term; returns false if a term does not divide.
bool divide_exactly(const dim& a, const dim_term& b, dim& quotient) {
  term_map sum;
  for (dim_term term : terms_of(a)) {
    const bool divides = b.coefficient == -1 || term.coefficient % b.coefficient == 0; // by -1 the processor may trap
    if (!divides || !remove_factors(term.factors, b.factors))
      return false;
    accumulate(sum, make_term(floor_div(term.coefficient, b.coefficient), std::move(term.factors)), 1);
  }
  quotient = from_terms(std::move(sum));
  return true;
}

int64_t evaluate_atom(const dim_atom& atom, const bindings& values) {
  if (atom.op == dim_atom::operation::symbol) {
    auto it = values.find(atom.name);
    if (it == values.end())
      fail(errc::invalid_input, "the dim '{}' is not bound to a value", atom.name);
    return it->second;
  }
  return apply_dim_operation(atom.op, atom.args[0].evaluate(values), atom.args[1].evaluate(values));
}

} // namespace

int64_t apply_dim_operation(dim_atom::operation op, int64_t a, int64_t b) {
  switch (op) {
    case dim_atom::operation::floor_div: return floor_div(a, b);
    case dim_atom::operation::min: return std::min(a, b);
    case dim_atom::operation::max: return std::max(a, b);
    case dim_atom::operation::broadcast: return broadcast(a, b);
    case dim_atom::operation::symbol: break;
  }
  fail(errc::internal, "a symbol is not an operation");
}

dim::dim(std::shared_ptr<const dim_polynomial> polynomial) : polynomial_(std::move(polynomial)) {}

dim dim::symbol(const std::string& name) {
  return from_atom({dim_atom::operation::symbol, name, {}, key_of_symbol(name)});
}

int64_t dim::constant() const {
  expects(is_constant(), "dim::constant on a symbolic dim");
  return value_;
}

std::string dim::symbol_name() const {
  if (is_constant() || polynomial_->terms.size() != 1)
    return "";
  const dim_term& term = polynomial_->terms.front();
  const bool lone = term.coefficient == 1 && term.factors.size() == 1;
  return lone && term.factors[0]->op == dim_atom::operation::symbol ? term.factors[0]->name : "";
}

dim operator+(const dim& a, const dim& b) {
  if (a.is_constant() && b.is_constant())
    return checked_add(a.value_, b.value_);
  term_map sum;
  for (const auto& term : terms_of(a))
    accumulate(sum, term, 1);
  for (const auto& term : terms_of(b))
    accumulate(sum, term, 1);
  return from_terms(std::move(sum));
}

dim operator-(const dim& a, const dim& b) {
  return a + b * dim(-1);
}

dim operator*(const dim& a, const dim& b) {
  if (a.is_constant() && b.is_constant())
    return checked_mul(a.value_, b.value_);
  const std::vector<dim_term> left = terms_of(a), right = terms_of(b);
  if (left.size() * right.size() > limits::max_dim_products)
    fail(errc::unsupported,
         "a symbolic dim is a product of sums of {} and {} terms; give the model's inputs fixed dims", left.size(),
         right.size());
  term_map sum;
  for (const auto& x : left)
    for (const auto& y : right) {
      auto factors = x.factors;
      factors.insert(factors.end(), y.factors.begin(), y.factors.end());
      dim_term product = make_term(checked_mul(x.coefficient, y.coefficient), std::move(factors));
      check_length(product.key.size());
      accumulate(sum, product, 1);
    }
  return from_terms(std::move(sum));
}

bool operator==(const dim& a, const dim& b) {
  if (a.is_constant() || b.is_constant())
    return a.is_constant() && b.is_constant() && a.value_ == b.value_;
  const auto &x = a.polynomial_->terms, &y = b.polynomial_->terms;
  return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                    [](const auto& s, const auto& t) { return s.coefficient == t.coefficient && s.key == t.key; });
}

int64_t dim::evaluate(const bindings& values) const {
  if (is_constant())
    return value_;
  int64_t sum = 0;
  for (const auto& term : polynomial_->terms) {
    int64_t product = term.coefficient;
    for (const auto& factor : term.factors)
      product = checked_mul(product, evaluate_atom(*factor, values));
    sum = checked_add(sum, product);
  }
  return sum;
}

std::string dim::to_string() const {
  const std::string name = symbol_name();
  return is_like_a_number(name) ? canonical_text(*this) : name;
}

std::string canonical_text(const dim& d) {
  if (d.is_constant())
    return std::to_string(d.constant());
  std::string text;
  for (const auto& term : dim_polynomial::of(d)->terms) {
    if (!text.empty())
      text += " + ";
    if (term.key.empty() || term.coefficient != 1)
      text += std::to_string(term.coefficient) + (term.key.empty() ? "" : "*");
    text += term.key;
  }
  return text;
}

void dim::collect_symbols(std::vector<std::string>& names) const {
  if (is_constant())
    return;
  for (const auto& term : polynomial_->terms)
    for (const auto& factor : term.factors) {
      for (const auto& argument : factor->args)
        argument.collect_symbols(names);
      const bool is_symbol = factor->op == dim_atom::operation::symbol;
      if (is_symbol && std::find(names.begin(), names.end(), factor->name) == names.end())
        names.push_back(factor->name);
    }
}

bool dim::depends_on_data() const {
  const auto in_atom = [](const atom_ptr& atom) {
    const bool in_args = std::any_of(atom->args.begin(), atom->args.end(), std::mem_fn(&dim::depends_on_data));
    return in_args || (atom->op == dim_atom::operation::symbol && atom->name.starts_with('#'));
  };
  const auto in_term = [&](const dim_term& t) { return std::any_of(t.factors.begin(), t.factors.end(), in_atom); };
  return polynomial_ && std::any_of(polynomial_->terms.begin(), polynomial_->terms.end(), in_term);
}

bool is_nonnegative(const dim& d) {
  if (d.is_constant())
    return d.constant() >= 0;
  const auto atom_is = [](const atom_ptr& atom) {
    switch (atom->op) {
      case dim_atom::operation::symbol: return true;
      case dim_atom::operation::max: return is_nonnegative(atom->args[0]) || is_nonnegative(atom->args[1]);
      default: return is_nonnegative(atom->args[0]) && is_nonnegative(atom->args[1]);
    }
  };
  const auto& terms = dim_polynomial::of(d)->terms;
  return std::all_of(terms.begin(), terms.end(), [&](const dim_term& term) {
    return term.coefficient >= 0 && std::all_of(term.factors.begin(), term.factors.end(), atom_is);
  });
}

dim floor_div(const dim& a, const dim& b) {
  if (a.is_constant() && b.is_constant())
    return floor_div(a.constant(), b.constant());
  if (a == b)
    return 1;
  const auto divisor = terms_of(b);
  if (dim quotient; divisor.size() == 1 && divide_exactly(a, divisor[0], quotient))
    return quotient;
  return make_operation(dim_atom::operation::floor_div, "floor_div", a, b);
}

dim ceil_div(const dim& a, const dim& b) {
  return dim(0) - floor_div(dim(0) - a, b);
}

dim min(const dim& a, const dim& b) {
  const dim gap = a - b;
  if (is_nonnegative(gap))
    return b;
  if (is_nonnegative(dim(0) - gap))
    return a;
  return make_operation(dim_atom::operation::min, "min", a, b);
}

dim max(const dim& a, const dim& b) {
  const dim gap = a - b;
  if (is_nonnegative(gap))
    return a;
  if (is_nonnegative(dim(0) - gap))
    return b;
  return make_operation(dim_atom::operation::max, "max", a, b);
}

dim broadcast(const dim& a, const dim& b) {
  if (a == b || b.is(1))
    return a;
  if (a.is(1))
    return b;
  if (a.is_constant() && b.is_constant())
    fail(errc::invalid_model, "dims {} and {} cannot be broadcast together", a.constant(), b.constant());
  return make_operation(dim_atom::operation::broadcast, "broadcast", a, b);
}

dim volume(std::span<const dim> dims) {
  dim product = 1;
  for (const auto& d : dims)
    product = product * d;
  return product;
}

symbolic_shape broadcast(std::span<const dim> a, std::span<const dim> b) {
  const size_t rank = std::max(a.size(), b.size());
  symbolic_shape out(rank);
  for (size_t i = 0; i < rank; ++i) {
    const dim da = i + a.size() < rank ? dim(1) : a[i + a.size() - rank];
    const dim db = i + b.size() < rank ? dim(1) : b[i + b.size() - rank];
    out[i] = broadcast(da, db);
  }
  return out;
}

bool is_constant(std::span<const dim> dims) {
  return std::all_of(dims.begin(), dims.end(), [](const dim& d) { return d.is_constant(); });
}

std::vector<int64_t> constants(std::span<const dim> dims) {
  std::vector<int64_t> values;
  for (const auto& d : dims)
    values.push_back(d.constant());
  return values;
}

symbolic_shape to_symbolic(std::span<const int64_t> dims) {
  return {dims.begin(), dims.end()};
}

std::string to_string(std::span<const dim> dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i)
    text += (i ? ", " : "") + dims[i].to_string();
  return text + "]";
}

} // namespace troupe

// Symbolic dims as flat tables: atoms, each of which refers to earlier ones only, and lists of dims, each distinct one
// once.
//
// Dims that are read are made again by their own operators, so they are canonical and within the limits of these
// (base/limits.hpp), and nothing here recurses.
#pragma once

#include "graph/dim_expression.hpp"
#include "wire/archive.hpp"

#include <unordered_map>

namespace troupe::wire {

template <>
inline constexpr uint64_t count_of<dim_atom::operation> = 5;

/// coefficient × atoms[factors[0]] × atoms[factors[1]] × …
struct flat_term {
  int64_t coefficient = 0;
  std::vector<uint32_t> factors;
};
/// A sum; empty for 0.
using flat_dim = std::vector<flat_term>;

struct flat_atom {
  dim_atom::operation op{};
  std::string name;             // of a symbol
  std::array<flat_dim, 2> args; // of an operation
};

/// Dims of one message.
struct flat_dims {
  std::vector<flat_atom> atoms;
  std::vector<std::vector<flat_dim>> lists;
};

/// Fills a table.
class dim_flattener {
public:
  /// Returns the list's position in the table.
  uint32_t add(const std::vector<dim>& list);

  flat_dims table;

private:
  flat_dim flat(const dim& d);
  uint32_t add(const dim_atom& atom);

  std::unordered_map<std::string, uint32_t> atoms_, lists_; // by their texts
};

/// Makes dims from a table.
class dim_maker {
public:
  /// Throws `errc::invalid_input` if the table refers to what it does not have, and what arithmetic with dims throws.
  explicit dim_maker(const flat_dims& table);

  const std::vector<dim>& list(uint32_t index) const;

private:
  dim make(const flat_dim& flat) const;

  std::vector<dim> atoms_;
  std::vector<std::vector<dim>> lists_;
};

template <class Archive>
void visit(Archive& a, flat_term& t) {
  a(t.coefficient, t.factors);
}

template <class Archive>
void visit(Archive& a, flat_atom& atom) {
  a(atom.op, atom.name, atom.args);
}

template <class Archive>
void visit(Archive& a, flat_dims& d) {
  a(d.atoms, d.lists);
}

} // namespace troupe::wire

// One call of an operator as the rules of the row proof see it: its operands, and where their rows are.
#pragma once

#include "ops/op.hpp"

#include <initializer_list>

namespace troupe {

/// What a value has to do with the rows of a batch.
struct row_state {
  enum class relation : uint8_t {
    shared, // all rows have it: neither elements nor dims depend on the batch
    rows,   // dim `axis` counts the rows, and what is there of a row depends on that row alone
    size,   // the elements depend on the number of rows; the dims do not
    // Dim `axis` counts the rows; elements of row i are i · step + x, 0 ≤ x < bound, and x is the same for all rows.
    positions,
    folded, // dim `axis` has `step` neighbours for each row, which depend on that row alone
  };
  relation is = relation::shared;
  size_t axis = 0;
  dim step = 1, bound = 1;
};

/// Returns whether a dim depends on a symbol.
bool depends_on(const dim& d, const std::string& symbol);

/// See the top of this file. What refuses throws `errc::unsupported` with a text that follows the node's name: "sums
/// over the rows".
class row_call {
public:
  /// `g` and `n` are only read.
  row_call(graph& g, node& n, std::span<const row_state> states, const std::string& symbol)
      : context_(g, n), graph_(g), states_(states), symbol_(symbol) {}

  /// Types, dims, attributes and known elements, as inference sees them.
  const infer_context& context() const { return context_; }
  const attributes& attrs() const { return context_.attrs(); }
  const op_def& def() const { return *context_.call().def; }
  size_t rank(size_t i) const { return context_.rank(i); }
  const symbolic_shape& dims(size_t i) const { return context_.dims(i); }
  /// Returns the dims of output 0; refuses if its rank is not known.
  const symbolic_shape& output_dims() const;

  /// Returns what operand `i`, which must be there, has to do with rows.
  const row_state& state(size_t i) const { return states_[context_.call().inputs[i]]; }
  bool has_rows(size_t i) const { return is(i, row_state::relation::rows); }
  /// Returns the axis of operand `i` that has the rows; refuses if it has none.
  size_t rows_of(size_t i) const;
  /// Returns whether a dim is the number of rows, or at least depends on it.
  bool counts_rows(const dim& d) const { return d.symbol_name() == symbol_; }
  bool depends_on_rows(const dim& d) const { return depends_on(d, symbol_); }
  /// Returns the axis that counts rows among dims; refuses if there is none.
  size_t counting_axis(std::span<const dim> dims) const;

  /// Refuses unless operand `i`, where it is there, is shared by all rows.
  void require_shared(size_t i) const;
  /// Refuses unless the operands other than these are shared by all rows.
  void others_are_shared(std::initializer_list<size_t> with_rows) const;
  /// Refuses if an operand other than the first has rows.
  void only_first_has_rows() const;
  /// Refuses unless the rows of operand `i`, where it is there, are at `axis`.
  void require_rows(size_t i, size_t axis) const;
  /// Refuses unless operand `i`, where it is there, is one element that all rows share.
  void require_single(size_t i) const;
  /// Refuses unless operand `i`, where it is there, broadcasts into a result of `rank` dims with rows at `axis`: each
  /// row takes its own, or all take the same.
  void require_fit(size_t i, size_t axis, size_t rank) const;
  /// The same of all operands; returns the axis of the result, which is that of the first operand with rows.
  size_t broadcast_axis(size_t rank) const;
  /// Refuses if an operator combines what is along `axis` and the rows of operand 0 are there; returns where they are.
  size_t rows_beside(size_t axis, const char* what) const;

  /// Returns "operand 1 ('mask')".
  std::string operand_text(size_t i) const;

private:
  bool is(size_t i, row_state::relation wanted) const {
    return context_.has_input(i) && states_[context_.call().inputs[i]].is == wanted;
  }

  infer_context context_;
  const graph& graph_;
  std::span<const row_state> states_; // by value
  const std::string& symbol_;
};

} // namespace troupe

// One call of an operator as the row proof sees it: its operands, and where their rows are.
#pragma once

#include "ops/axes.hpp"

namespace troupe {

/// What a value has to do with the rows of a batch.
struct row_state {
  enum class relation : uint8_t {
    shared, // all rows have it: neither elements nor dims depend on the batch
    rows,   // dim `axis` has `unit` neighbours for each row, which depend on that row alone
    size,   // the elements depend on the number of rows; the dims do not
    // Dim `axis` counts the rows; elements of row i are i · step + x, 0 ≤ x < bound, and x is the same for all rows.
    positions,
  };
  relation is = relation::shared;
  size_t axis = 0;
  dim unit = 1;
  dim step = 1, bound = 1;
};

/// Returns whether a dim depends on a symbol.
bool depends_on(const dim& d, const std::string& symbol);

/// See the top of this file. What refuses throws `errc::unsupported` with a text that follows the node's name: "sums
/// over axis 1 of operand 0 ('x'), where the rows are".
class row_call {
public:
  row_call(const graph& g, const node& n, std::span<const row_state> states, const std::string& symbol)
      : context_(infer_context::of(g, n)), graph_(g), states_(states), symbol_(symbol) {}

  /// Types, dims, attributes and known elements, as inference sees them.
  const infer_context& context() const { return context_; }
  const op_def& def() const { return *context_.call().def; }
  size_t rank(size_t i) const { return context_.rank(i); }
  const symbolic_shape& dims(size_t i) const { return context_.dims(i); }
  /// Returns the dims of output 0; refuses if its rank is not known.
  const symbolic_shape& output_dims() const;

  /// Returns what operand `i`, which must be there, has to do with rows.
  const row_state& state(size_t i) const { return states_[context_.call().inputs[i]]; }
  /// Returns whether a dim is the number of rows, or at least depends on it.
  bool counts_rows(const dim& d) const { return d.symbol_name() == symbol_; }
  bool depends_on_rows(const dim& d) const { return depends_on(d, symbol_); }

  /// Returns where the rows are in each result, by the call's axes; nullopt for results that all rows share. Refuses
  /// if the call mixes rows.
  std::vector<std::optional<axis_place>> results() const;

private:
  bool is(size_t i, row_state::relation wanted) const {
    return context_.has_input(i) && states_[context_.call().inputs[i]].is == wanted;
  }
  /// An axis of the call that has rows, each of which is `span` indices of it.
  struct rows_on {
    const call_axis* axis;
    dim span;
  };
  rows_on axis_of_operand(const call_axes& axes, size_t i) const;
  rows_on axis_of_rows(const call_axes& axes) const;
  void require_separate(const call_axes& axes, const rows_on& rows) const;
  bool are_sizes(const call_axis& axis, size_t i) const;
  std::string operand_text(size_t i) const;

  const infer_context context_;
  const graph& graph_;
  std::span<const row_state> states_; // by value
  const std::string& symbol_;
};

} // namespace troupe

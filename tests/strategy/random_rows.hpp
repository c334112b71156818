// Random models whose rows are independent, or in which one call mixes them.
#pragma once

#include "support/graph_builder.hpp"

#include <random>

namespace troupe::test {

/// Builds a graph of float values that all count their rows by "batch", at one axis each. Its inputs are x [batch, 4,
/// 6] and z [3, batch].
class random_rows {
public:
  /// Rows are mixed by one of the calls if `mixes`.
  random_rows(uint32_t seed, bool mixes);

  /// The call that mixes rows, for messages; empty without one.
  const std::string& mixer() const { return mixer_; }

  graph_builder b;

private:
  struct item {
    value_id v;
    size_t rows; // axis
  };

  size_t draw(size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(engine_); }
  const symbolic_shape& dims(value_id v) const { return *b.g.values[v].dims; }
  size_t rank(const item& x) const { return dims(x.v).size(); }
  int64_t size(const item& x, size_t axis) const { return dims(x.v)[axis].constant(); }
  /// Returns an axis beside the rows.
  size_t other_axis(const item& x);
  /// Returns how many elements of a row an item has.
  int64_t row_elements(const item& x) const;
  item recent();
  value_id floats(shape dims);
  value_id call(const std::string& op, std::vector<value_id> inputs,
                std::initializer_list<std::pair<std::string, attribute>> attrs = {});
  /// Adds a call with outputs of which the first is returned.
  value_id call_first(const std::string& op, std::vector<value_id> inputs, size_t outputs,
                      std::initializer_list<std::pair<std::string, attribute>> attrs = {});
  item flat(const item& x);

  item independent(const item& x);
  item elementwise(const item& x);
  item along_an_axis(const item& x);
  item moved(const item& x);
  item reshaped(const item& x);
  item product(const item& x);
  item by_sizes(const item& x);
  item as_image(const item& x);
  item selected(const item& x);
  /// Element `columns[j]` of each row, picked from one long vector by row number · `step` + columns[j].
  item picked(const item& x, int64_t step, int64_t columns);
  item mixed(const item& x);
  item mixed_by_position(const item& x);
  item mixed_by_sum(const item& x);

  std::mt19937 engine_;
  std::vector<item> items_;
  std::string mixer_;
};

} // namespace troupe::test

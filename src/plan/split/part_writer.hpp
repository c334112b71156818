// Writes the nodes of a split program that are not parts of the model's own: slices, joins and sums of parts.
#pragma once

#include "ops/axes.hpp"
#include "plan/place/graph_rebuild.hpp"

#include <map>
#include <string>
#include <tuple>

namespace troupe {

class part_writer : protected graph_rebuild {
protected:
  using graph_rebuild::graph_rebuild;

  /// Adds a node whose results are inferred; values that have a type stay what they are.
  void add_inferred(node n, device_index device);
  /// Adds a value that a node is to make.
  value_id add_like(value_id v, const std::string& suffix) {
    return g_.add_value({.name = g_.values[v].name + suffix});
  }
  /// Adds a vector that the host knows.
  value_id known_vector(const std::string& name, const symbolic_shape& elements);

  /// Returns the indices [first, end) of dim `axis` of a value, on a device; of a constant, by its recipe.
  value_id slice(value_id v, size_t axis, const dim& first, const dim& end, device_index device);
  /// Joins parts along dim `axis` on a device; `into` is the value that they make, or none yet.
  value_id join(const std::string& name, std::vector<value_id> parts, size_t axis, value_id into, device_index device);
  /// Makes `into` of results that each device has of a reduced axis.
  void combine(combination by, const std::string& name, std::span<const value_id> partial, value_id into,
               device_index device);

private:
  /// Adds a call that makes `into`, or if that is none yet a value with the call's name; returns that.
  value_id apply(node call, value_id into, device_index device);

  std::map<std::tuple<value_id, device_index, std::string>, value_id> slices_; // by value, device and range
};

} // namespace troupe

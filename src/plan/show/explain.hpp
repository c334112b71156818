// What a plan does and why, as plain data: the way of a value, and the reason for which a node is where it is. The
// printers (print.hpp) and the inspector turn it into text.
#pragma once

#include "plan/bind/bound_plan.hpp"

namespace troupe {

/// Returns the bytes of a value, nullopt if `bound` is null or does not know its dims yet.
std::optional<int64_t> bytes_in(const plan& p, const bound_plan* bound, value_id v);
/// Returns the seconds that a transfer takes over the network; nullopt if its ends are on one host, or its bytes are
/// not known.
std::optional<double> network_seconds(const plan& p, const bound_plan* bound, const transfer& t);

/// Returns a value's dims as text: numbers if `bound` knows them, else with symbols; "[?]" without a rank.
std::string dims_text(const plan& p, const bound_plan* bound, value_id v);

/// Where a value comes from and goes to.
struct tensor_flow {
  value_id value = no_value;
  node_id maker = -1;           // -1: the caller gives it, it is a weight, or the host knows it
  value_id storage = no_value;  // whose bytes hold it, see `plan::storage`
  std::vector<value_id> views;  // other values in the same bytes
  std::vector<node_id> readers; // in the order of their chunks
  std::vector<transfer> moves;  // of the value itself
};

/// Follows the value called `name` through a plan. Throws `errc::invalid_argument`, with similar names, if the plan has
/// none: fusing and folding make values vanish.
tensor_flow flow_of(const plan& p, std::string_view name);

/// Returns up to five of `names` that hold `part`, quoted, joined by commas; empty if there are none.
std::string similar_names(std::span<const std::string> names, std::string_view part);

/// Why a node is where it is.
struct placement_reason {
  std::string text;
  /// Whether it is the policy's doing alone, which a reader does not need to be told node by node.
  bool ordinary = false;
};

/// Returns every node's reason, by node.
std::vector<placement_reason> placement_reasons(const plan& p);

/// Returns by node whether it appends to a cache that grows in place where it stays on its device
/// (cut/cache_appends.hpp).
std::vector<bool> growing_caches(const plan& p);

} // namespace troupe

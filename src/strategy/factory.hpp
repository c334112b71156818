// The factory: every strategy with every policy over the devices at hand, costed for one kind of request; the best of
// them and why the others are not. Pure: it plans and predicts, nothing runs.
#pragma once

#include "strategy/replica_sets.hpp"
#include "troupe/results.hpp"

namespace troupe {

class policy_library;

/// What is to be run, and on what.
struct factory_question {
  std::shared_ptr<const graph> program; // rewritten
  std::vector<device_info> devices;     // that may be used; at least one
  bindings symbols;                     // dims of a request, all that the program's inputs mention
  std::string rows;                     // the one of them that counts rows; empty if requests run whole
  std::vector<placement_pin> pins;
  /// Of model-parallel plans, the only one; `single`: all are compared. Pipelines have a policy of their own; other
  /// strategies have none.
  placement_policy policy = placement_policy::single;
  std::shared_ptr<const policy_library> plugin; // what `placement_policy::plug_in` is
  stream_options stream;
  choice_options limits;
};

/// A strategy with all that a session needs to follow it.
struct costed_strategy {
  strategy_choice shown;
  std::vector<replica_set> replicas;
};

/// Returns all of them: the best first, then in the order of the goal; those that are not possible last, the nearest to
/// the limits first. Never empty. Throws what planning throws if no plan can be made at all.
std::vector<costed_strategy> compare_strategies(const factory_question& asked);

/// Returns, in words, by how much a strategy over these replicas is predicted to answer fewer requests a second than
/// the best of its devices alone; empty if it is not, or either has no plan.
std::string slower_than_one(const factory_question& asked, strategy how, placement_policy policy,
                            const std::vector<replica_set>& replicas);

/// Returns the best of what `compare_strategies` found. Throws `errc::invalid_argument`, naming the nearest plan and
/// its figures, if none is within the limits.
const costed_strategy& best_of(std::span<const costed_strategy> compared, const choice_options& limits);

} // namespace troupe

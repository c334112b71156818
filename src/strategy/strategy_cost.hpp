// What one strategy costs for one kind of request: the replicas' plans, and a stream of requests played over them.
#pragma once

#include "strategy/factory.hpp"
#include "strategy/stream_forecast.hpp"

namespace troupe {

/// Returns the position of the device of this name; it is there.
size_t position_of(std::span<const device_info> devices, const std::string& name);

/// Costs strategies of one question; plans that several of them share are made once. Not thread-safe.
class strategy_coster {
public:
  explicit strategy_coster(const factory_question& asked) : asked_(asked) {}

  /// Returns what a strategy costs over these replicas. If it has no plan, or it does not fit, it is not possible, and
  /// says why.
  costed_strategy cost(strategy how, placement_policy policy, std::vector<replica_set> replicas);

  /// The first reason why there was no plan, apart from memory.
  const std::optional<error>& problem() const { return problem_; }

private:
  using plan_ptr = std::shared_ptr<const plan>;

  /// Requests of which each replica's part is known.
  struct divided {
    std::vector<forecast_piece> pieces;
    int64_t largest = 0; // rows of a piece
  };

  plan_ptr plan_for(const replica_set& on, placement_policy policy);
  bindings symbols_of(int64_t rows) const;
  int64_t rows() const;
  /// Divides requests of `all` rows each, as a session with this strategy would.
  divided divide(const strategy_choice& c, size_t requests, int64_t all, std::span<const replica_figures> speeds) const;
  /// Returns the bytes that all replicas take together; throws `errc::out_of_memory` if a device has too few.
  int64_t memory(std::span<const plan_ptr> plans, size_t depth, int64_t piece_rows) const;
  void predict(strategy_choice& c, std::span<const plan_ptr> plans, size_t stages);

  const factory_question& asked_;
  std::map<std::pair<std::string, placement_policy>, plan_ptr> plans_;
  std::optional<error> problem_;
};

} // namespace troupe

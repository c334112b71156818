// What a strategy makes of a loaded model before anything runs: its rows, its replicas' plans, and what
// `strategy::automatic` compares. Pure: sessions over real devices (actors) and simulated ones (sim) are both made of
// this.
#pragma once

#include "run/session_plans.hpp"
#include "strategy/factory.hpp"
#include "strategy/model_rows.hpp"

namespace troupe {

/// Devices that a session may use, and how they are.
struct devices_of_session {
  std::vector<device_info> infos;  // all, in the order in which sessions number them
  std::vector<size_t> lost;        // of these, those that no plan may use now
  std::vector<device_info> usable; // those that plans may use
};

/// Returns devices as a session with these options sees them; `lost` are positions in `infos`. Throws
/// `errc::invalid_argument` for devices that `whose`, the engine or the cluster, has not.
devices_of_session devices_for(std::vector<device_info> infos, std::vector<size_t> lost, const session_options& options,
                               std::string_view whose);

/// Returns the replicas that options ask for; without a strategy one.
std::vector<replica_set> replica_sets_for(const session_options& options, const devices_of_session& devices);

/// Returns what is known of the rows of a program, which is null if it follows from inputs.
model_rows rows_of(const model& m, const graph* program);

/// Throws for options that no stream can have, and `errc::unsupported` if requests are to be cut or joined and rows are
/// not independent.
void check_stream(const model& m, const model_rows& rows);

/// A replica before it has a coordinator.
struct prepared_replica {
  replica_set devices;
  std::shared_ptr<session_plans> plans;
  replica_figures predicted; // nothing if the model's plan follows from inputs, or there is no strategy
};

struct prepared_replicas {
  std::vector<prepared_replica> replicas;
  std::shared_ptr<const model_rows> rows;
};

/// Plans replicas of a model. `ahead`: what `session_plans::prepare_ahead` has made of it, if it has. Throws
/// `errc::invalid_argument` for a saved plan and several replicas, and what planning, `check_pins` and `check_stream`
/// throw.
prepared_replicas prepare_replicas(const model_ptr& m, const devices_of_session& devices,
                                   const std::vector<replica_set>& sets, session_plans::ahead ahead = {});

/// All strategies for a model on the devices that are there now, and what was rewritten on the way.
struct compared_strategies {
  std::vector<costed_strategy> found; // see `compare_strategies`
  session_plans::ahead ahead;
};

/// Compares them for a request with these inputs; null: for one whose open dims are `representative_dim`, if inputs
/// decide nothing. Throws what a run with these inputs throws before it begins.
compared_strategies compare_strategies(const model_ptr& m, const devices_of_session& devices,
                                       const given_inputs* inputs);

/// Returns that the strategy of the model over these replicas is predicted to be slower than one device for requests
/// with these inputs, in words; empty if it is not. Throws what `compare_strategies` throws.
std::string slower_than_one(const model_ptr& m, const devices_of_session& devices,
                            const std::vector<replica_set>& replicas, const given_inputs& inputs);

/// Returns a model whose strategy and policy are others; weights are shared.
model_ptr with_strategy(const model& m, strategy how, placement_policy policy);

} // namespace troupe

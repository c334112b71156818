// What a strategy makes of the devices at hand and of the caller's options: which replicas there are, and how a stream
// feeds them.
#pragma once

#include "plan/device_info.hpp"
#include "strategy/stream.hpp"
#include "troupe/options.hpp"

#include <array>

namespace troupe {

/// The devices of one replica.
struct replica_set {
  std::vector<std::string> own; // without which it is lost: the first of them leads its plan
  /// For nodes that `own` cannot run, and for what does not fit there.
  std::vector<std::string> helpers;

  std::vector<std::string> all() const;
};

/// Throws `errc::invalid_argument` if a pin names one of `devices` that the replica must not use; it may use all if it
/// names none.
void check_pins(std::span<const placement_pin> pins, const replica_set& replica, std::span<const device_info> devices);

/// Returns the replicas of a strategy over devices, those that may be used. Devices that are there only as a fallback
/// lead no replica, unless there are no others; CPUs help GPUs of their host. Throws `errc::invalid_argument` if there
/// are no devices.
std::vector<replica_set> replicas_of(strategy how, std::span<const device_info> devices);

/// Returns the replica that a device leads, with those of `devices` that help it.
replica_set led_by(const device_info& own, std::span<const device_info> devices);

/// Returns the policy by which each replica's nodes are placed.
placement_policy policy_of(strategy how, placement_policy wanted);
/// Returns it for what a session is to be: a plug-in that is named is what is wanted.
placement_policy policy_of(const session_options& options);

/// Returns how a machine feeds replicas that are expected to be so fast. `stages`: devices of a pipeline. Throws
/// `errc::invalid_argument` for options that are negative. `plugin`: of `strategy::plug_in`.
machine_options machine_for(strategy how, const stream_options& options, std::vector<replica_figures> replicas,
                            size_t stages, std::shared_ptr<const strategy_library> plugin = {});

/// Returns the most rows of a piece of a request with `rows` rows, if the caller does not say:
/// `stream_request::micro_batch`.
int64_t micro_batch_of(strategy how, int64_t rows, size_t stages);

struct request_rows;

/// Returns what a stream is told of a request with such rows; it has no priority, deadline or pin yet. `stages`:
/// devices of a pipeline.
stream_request request_for(strategy how, const stream_options& options, const request_rows& rows, size_t stages);

/// Those that share requests among devices in a way of their own.
inline constexpr std::array strategies{strategy::data_parallel, strategy::model_parallel, strategy::pipeline,
                                       strategy::work_stealing};

/// Returns a strategy's name as the command line and the documentation spell it.
std::string_view to_string(strategy how);
/// Returns the strategy of a name; throws `errc::invalid_argument` with those that there are.
strategy parse_strategy(std::string_view name);

} // namespace troupe

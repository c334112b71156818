// What the chunks of a bound plan cost virtual devices: the cost model's seconds for what a device does alone, and
// bytes with their routes for what may share links.
#pragma once

#include "plan/bind/bound_plan.hpp"
#include "plan/estimate/predict.hpp"
#include "sim/cluster.hpp"
#include "sim/links.hpp"

namespace troupe::sim {

/// A part of a chunk's copies: after a latency, bytes at a speed that others on its route may lower.
struct leg {
  double latency_s = 0;
  double bytes = 0;
  double bytes_per_s = 0;
  std::vector<link_index> route; // links that are shared; empty: none is
};

struct chunk_price {
  double host_s = 0; // of the device's thread, before anything else: it copies callers' inputs
  double work_s = 0;
  std::vector<leg> in, out;         // one after the other
  std::vector<leg> net_in, net_out; // likewise, over the network, before and after, beside what the device does
  double in_bytes = 0, out_bytes = 0;
  /// Whether large copies out may go beside the next chunk's work (plan/estimate/predict.hpp).
  bool next_is_free = false;
};

/// The routes of a network of zones, as legs over its links. Not thread-safe.
class zone_legs {
public:
  /// Adds the network's links.
  zone_legs(std::shared_ptr<const zoned_network> network, shared_links& links);

  /// Returns the leg from one host to another, without bytes. Throws as `route_finder` does.
  const leg& between(const std::string& from, const std::string& to);

private:
  std::shared_ptr<const zoned_network> network_;
  route_finder finder_;
  std::vector<std::optional<link_index>> shared_; // by the network's link; nullopt: transfers do not share it
  std::unordered_map<uint64_t, leg> known_;       // by both points
};

/// Which links a device's copies share.
struct device_routes {
  std::vector<link_index> up, down;                 // between it and its host's memory
  std::vector<link_index> network_in, network_out;  // between its host and others; none in the session's host
  std::vector<link_index> from_session, to_session; // beside those, if the other end is the session's host
  std::shared_ptr<zone_legs> zones;                 // if it is set, the network is this, and no link of those above
};

/// Adds a cluster's links; returns the routes of its devices, in their order. Each host has a link of its own in each
/// direction, which its devices share; what the session's carries all other hosts share.
std::vector<device_routes> add_links(const cluster& c, shared_links& links);

/// Returns the prices of the segment's chunks, by chunk; those of other segments, and of control flow, are empty.
/// `routes`: by the plan's real devices.
std::vector<chunk_price> price(const bound_plan& bound, std::span<const device_routes* const> routes);

} // namespace troupe::sim

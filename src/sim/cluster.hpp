// Clusters that need not exist: devices, the hosts that they are in, and the links between, as JSON or as a platform of
// SimGrid ([README](README.md) has the formats).
#pragma once

#include "cost/profile_file.hpp"
#include "plan/device_info.hpp"
#include "sim/zoned_network.hpp"

#include <filesystem>
#include <memory>

namespace troupe::sim {

/// What several devices' or hosts' transfers share beside their own links.
struct shared_link {
  std::string name;
  double bytes_per_s = 0; // in each direction, or of both together:
  bool half_duplex = false;
  std::vector<std::string> devices; // whose copies from and to their host's memory go over it
  std::vector<std::string> hosts;   // whose transfers from and to other hosts go over it

  bool operator==(const shared_link&) const = default;
};

/// What the session's process takes in from other hosts and gives out to them, all together: one thread of it moves the
/// bytes.
struct own_network {
  double in_bytes_per_s = std::numeric_limits<double>::infinity();
  double out_bytes_per_s = std::numeric_limits<double>::infinity();

  bool operator==(const own_network&) const = default;
};

/// See the top of this file.
struct cluster {
  /// As an engine would have them; those of the session's host have no host. Names are unique. At least one.
  std::vector<device_info> devices;
  std::vector<shared_link> links;
  own_network network;
  /// What a session's coordinator takes to hear of a chunk's end and send what that makes ready.
  double coordinator_s = 2e-6;
  /// Of a platform: the routes between its hosts, whose names are points. The session's process is on another
  /// host, which sends and takes at no cost. Null: each host has a link of its own.
  std::shared_ptr<const zoned_network> zones;

  bool operator==(const cluster&) const = default;
};

inline constexpr size_t max_cluster_devices = 10'000;

/// Returns the cluster of an engine's devices. As many links as there are: together they are as fast as the fastest of
/// them was measured to be.
cluster captured(std::vector<device_info> devices);

/// Reads a cluster, of JSON or XML. `known`: measured profiles, for devices that are described as "like" one of them.
/// Throws `errc::invalid_argument`, saying where in the text and what is allowed there.
cluster parse_cluster(std::string_view text, std::span<const measured_profile> known);

/// Reads a file; see `parse_cluster`. Throws `errc::io` if it cannot be read, or is larger than 64 MiB.
cluster read_cluster(const std::filesystem::path& file, std::span<const measured_profile> known);

/// Returns what `parse_cluster` reads; measured times of nodes are not part of it. Throws `errc::unsupported` for a
/// platform: JSON has no routes.
std::string write_cluster(const cluster& c);

} // namespace troupe::sim

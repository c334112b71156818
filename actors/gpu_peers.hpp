// Which GPUs of an engine can wait for each other's work, and what ties them (vulkan/peers.hpp).
#pragma once

#include "actors/device_names.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe::vulkan {
class instance;
class peer_timeline;
} // namespace troupe::vulkan

namespace troupe::actors {

/// What a device is opened with: its set, and its timeline for those in it; 0 and null: none.
struct gpu_ties {
  uint32_t set = 0;
  std::shared_ptr<vulkan::peer_timeline> timeline;
};

/// What was found for the devices that are to be opened.
struct gpu_peers {
  std::vector<gpu_ties> ties;         // by request
  std::vector<std::string> why_apart; // for a person: the pairs that go over the host, and why
};

/// Finds out for all pairs of GPUs among `requests`; pairs of which nothing is known are tried, once a machine and
/// driver, which takes seconds.
gpu_peers find_gpu_peers(const vulkan::instance& gpus, const std::vector<device_request>& requests);

} // namespace troupe::actors

#include "actors/gpu_peers.hpp"

#include "actors/engine_access.hpp"
#include "vulkan/peer_proof.hpp"
#include "vulkan/peers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace troupe {

bool tries_gpu_peers(std::span<const std::string> words) {
  if (words.empty() || words.front() != vulkan::trial_word)
    return false;
  vulkan::print_trials({words.begin() + 1, words.end()});
  return true;
}

namespace actors {

gpu_peers find_gpu_peers(const vulkan::instance& gpus, const std::vector<device_request>& requests) {
  gpu_peers found{std::vector<gpu_ties>(requests.size()), {}};
  std::vector<size_t> places, numbers; // of requests for GPUs that are there, and which these are
  for (size_t i = 0; i < requests.size(); ++i)
    if (requests[i].kind == device_kind::vulkan && requests[i].gpu < gpus.gpus().size()) {
      places.push_back(i);
      numbers.push_back(requests[i].gpu);
    }
  std::set<vulkan::gpu_pair> pairs;
  for (size_t i = 0; i < numbers.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      pairs.insert({std::min(numbers[i], numbers[j]), std::max(numbers[i], numbers[j])});
  if (pairs.empty())
    return found;
  std::vector<vulkan::gpu_snapshot> facts;
  for (const vulkan::listed_gpu& gpu : gpus.gpus())
    facts.push_back(gpu.snapshot);
  const std::vector<vulkan::peer_verdict> verdicts =
      vulkan::prove_peers(facts, {pairs.begin(), pairs.end()}, vulkan::usual_trials(), vulkan::peer_file_path());
  for (const vulkan::peer_verdict& v : verdicts)
    if (!v.why_not.empty())
      found.why_apart.push_back(fmt::format("vulkan:{} and vulkan:{}: {}", v.pair.first, v.pair.second, v.why_not));
  const std::vector<uint32_t> sets = vulkan::peer_sets(numbers, verdicts);
  for (size_t i = 0; i < places.size(); ++i)
    if (sets[i] != 0)
      found.ties[places[i]] = {sets[i], std::make_shared<vulkan::peer_timeline>()};
  return found;
}

} // namespace actors
} // namespace troupe

// Whether two GPUs can wait for each other's work (peers.hpp). Vulkan promises that a semaphore of one GPU can be
// imported by another only where both say the same device UUID; NVIDIA's driver does it for any two of its GPUs. So it
// is tried, by a process of its own, because a driver that cannot may crash or hang. What was found is kept beside the
// compiled kernels, by drivers, GPUs and version of the proof: a pair is tried once.
#pragma once

#include "vulkan/instance.hpp"

#include <chrono>
#include <span>

namespace troupe::vulkan {

/// Two GPUs of an instance by their numbers; `first` ≤ `second`. Equal: two devices on one GPU.
struct gpu_pair {
  size_t first = 0, second = 0;

  auto operator<=>(const gpu_pair&) const = default;
};

/// What is known of a pair.
struct peer_verdict {
  gpu_pair pair;
  std::string why_not; // in words for a person; empty: they can wait for each other
};

/// Lets two GPUs wait for each other, values going to and fro, in this process. Returns why they cannot, empty if they
/// can. May crash, or hang: `prove_peers` calls it elsewhere.
std::string try_peers(const std::shared_ptr<const instance>& gpus, gpu_pair pair);

/// The process that tries pairs: a program and its first arguments, to which the pairs are added as "0:1". It prints
/// `trial_line` for each, in their order.
using trial_command = std::vector<std::string>;

/// Returns what the process prints of a pair.
std::string trial_line(gpu_pair pair, std::string_view why_not);

/// The first argument of the command `troupe` that has it try pairs (`print_trials`).
inline constexpr std::string_view trial_word = "try-gpu-peers";
/// Seconds after which the process ends itself if a pair hangs it.
inline constexpr unsigned trial_seconds = 60;

/// Returns that command, if it is beside this library or program; else nothing.
trial_command usual_trials();

/// Tries pairs, given as words, and prints the lines.
void print_trials(const std::vector<std::string>& pairs);

/// Returns what is known of pairs, trying those of which nothing is: a process that ends early, or is silent for
/// `limit`, has found that the pair in its hands cannot. `gpus`: by number. `file`: where verdicts are kept; empty:
/// nowhere.
std::vector<peer_verdict> prove_peers(std::span<const gpu_snapshot> gpus, const std::vector<gpu_pair>& pairs,
                                      const trial_command& trials, const std::string& file,
                                      std::chrono::milliseconds limit = std::chrono::seconds(20));

/// Returns where verdicts are kept, in the user's cache folder; empty if there is none.
std::string peer_file_path();

/// Returns for devices on these GPUs the number of each one's set, from 1 on; 0 for those that are alone. All of a set
/// can wait for each other, as far as `verdicts` know.
std::vector<uint32_t> peer_sets(std::span<const size_t> gpus, std::span<const peer_verdict> verdicts);

} // namespace troupe::vulkan

// What an experiment compares, as JSON: the README here has the format and an example.
//
// A setting is one combination of what the file lists: a model with dims, a target, a policy, a strategy and a mode.
// Settings of one group differ in policy and strategy alone; each is compared with the group's baseline.
#pragma once

#include "troupe/simulation.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace troupe::experiments {

/// How a time is found.
enum class mode : uint8_t { simulated, real };
std::string_view to_string(mode m);

/// Devices that exist, as `--devices` names them, such as "vulkan:0*2" and "cpu".
using device_list = std::vector<std::string>;

/// Where a model runs: on a cluster described in a file, which can only be simulated, or on devices of this machine and
/// hosts.
using target = std::variant<std::filesystem::path, device_list>;
/// Returns the file's name, or the devices joined by commas.
std::string to_string(const target& t);

/// See the top of this file.
struct setting {
  std::filesystem::path model;
  bindings dims;
  target where;
  placement_policy policy = placement_policy::single; // of its plans: what the strategy makes of the wanted one
  troupe::strategy strategy = troupe::strategy::none;
  experiments::mode mode = mode::simulated;
  size_t baseline = 0; // the setting's number that it is compared with; a baseline's own
};

/// An experiment as it was read and checked.
struct experiment {
  std::string name; // for people; the file's, if it says none
  std::vector<setting> settings;
  size_t requests = 1;       // of one repetition
  troupe::arrivals arrivals; // closed, Poisson or listed
  size_t repetitions = 5;    // of each setting, in turns
  uint64_t seed = 1;         // repetition i of all settings has `seed + i`
  double noise = 0;          // the standard deviation of the logarithm of simulated times
};

/// What one experiment may ask for.
inline constexpr size_t max_settings = 10'000, max_repetitions = 10'000, max_rows = 1'000'000;

/// Reads an experiment. `source` names the text in errors; relative files are looked for in `folder`. Throws
/// `errc::invalid_argument` that says where in the text and what is allowed there.
experiment parse_experiment(std::string_view text, const std::string& source, const std::filesystem::path& folder);

/// Returns what a file, or a pipe, of at most 16 MiB holds. Throws `errc::io` if it cannot be read.
std::string read_experiment_text(const std::filesystem::path& file);

/// Reads a file; see `parse_experiment` and `read_experiment_text`.
experiment read_experiment(const std::filesystem::path& file);

} // namespace troupe::experiments

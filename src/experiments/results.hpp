// What an experiment's runs took, and what that says. The tables that show it are in result_tables.hpp.
#pragma once

#include "base/hash.hpp"
#include "experiments/experiment_file.hpp"
#include "troupe/statistics.hpp"

#include <span>

namespace troupe::experiments {

/// What one repetition of a setting took: all its requests, from the first to the last answer.
struct result_row {
  size_t setting = 0;
  size_t repetition = 0;
  double seconds = 0; // not negative
};

/// Why a setting has no time for some repetition, or for none at all: it fits no device, say.
struct run_problem {
  size_t setting = 0;
  std::optional<size_t> repetition;
  std::string what;
};

/// A file that the results depend on, as it was then.
struct file_record {
  std::string path;
  uint64_t bytes = 0;
  hash128 hash; // XXH3, 128 bits, of the content, as `xxhsum -H2` prints it
};

/// Hashes a file, piece by piece. Throws `errc::io` if it cannot be read.
file_record record_of(const std::filesystem::path& file);

/// What is needed to do it all again.
struct provenance {
  std::vector<std::pair<std::string, std::string>> versions; // such as {"troupe", "0.1.0"}
  std::vector<file_record> files;                            // models, clusters, the experiment, device profiles
};

/// An experiment and all that came of it.
struct results {
  experiment what;
  std::vector<result_row> rows; // in any order
  std::vector<run_problem> problems = {};
  provenance made_with = {};
};

/// How a setting does beside its baseline.
enum class verdict : uint8_t {
  equal,   // the times are the same
  faster,  // less time, and not by chance
  slower,  // more time, and not by chance
  unclear, // the difference may be chance, or there are too few pairs
};
std::string_view to_string(verdict v);

/// A setting beside its baseline, by the repetitions that both have.
struct comparison {
  double speedup = 0; // the baseline's mean by the setting's; 0 if the latter took no time
  paired_t t;         // of the setting's seconds less the baseline's
  signed_rank wilcoxon;
  /// The tests' probabilities after Holm's correction over all comparisons of the results; empty where the test has
  /// none.
  std::optional<double> t_adjusted, wilcoxon_adjusted;
  /// By `t_adjusted` and the confidence. Where nothing has scatter, as in a simulation without noise, by the times
  /// themselves.
  experiments::verdict verdict = verdict::unclear;
};

struct setting_results {
  std::vector<result_row> rows; // by repetition
  summary seconds;
  std::optional<comparison> beside_baseline; // empty for a baseline, and if they share no repetition
};

/// How far a simulation is from the real runs of the same setting.
struct simulation_error {
  size_t simulated = 0, real = 0; // settings
  double error = 0;               // of the medians: simulated / real − 1
};

/// What results say.
struct analysis {
  double confidence = 0.95;
  std::vector<setting_results> settings;           // by setting
  std::vector<simulation_error> simulation_errors; // of all settings with both
  std::optional<double> mean_error;                // the mean of their sizes; empty if there are none
};

/// Summarises and compares. Throws `errc::invalid_argument` for a row of a setting or repetition that the experiment
/// does not have, for two rows of one repetition, for seconds that are negative, not finite or above 1e100, and for a
/// wrong confidence.
analysis analyse(const results& all, double confidence = 0.95);

} // namespace troupe::experiments

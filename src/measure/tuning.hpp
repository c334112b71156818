// Which of the ways to run each call of a model is the fastest on a GPU, measured.
//
// The model itself is run: in each round every call takes another of its ways, in turns with the usual kernels. So a
// call is timed with the operands, the layouts and the state of the caches that it has in the model, and a round costs
// one installation, however many calls there are. Outputs must agree with those of the usual kernels; where they do
// not, halves of the round are tried until the wrong kernel is found, which is never chosen. What was fastest call by
// call is confirmed in longer rounds: all of it if a whole run takes less time with it, else those halves, and halves
// of halves, with which it does. Pure, but for the function that runs the model.
#pragma once

#include "cost/profile_file.hpp"
#include "launch/kernel_choices.hpp"
#include "plan/bind/bound_plan.hpp"

namespace troupe {

/// One way to run a call.
struct kernel_way {
  hash128 kernel;   // `key_of_kernel`
  std::string name; // with the tile, if it has one
};

/// Equal nodes of a plan, and the ways to run them: first the one that the launch rules take, then others, those first
/// that are predicted to be fast.
struct tunable_call {
  hash128 key;
  std::string what; // operator and operands, for people
  std::vector<node_id> nodes;
  std::vector<kernel_way> ways;
};

/// The most ways of a call that are tried.
inline constexpr size_t max_tried_ways = 32;

/// Returns the calls of a bound segment's nodes on `device`, a GPU, that can be run in more than one way. Ways that are
/// predicted to take more than `hopeless_time` times as long as the best are left out.
std::vector<tunable_call> tunable_calls(const bound_plan& bound, device_index device, const shader_revision& revision);

/// One round: medians of runs in turns, in seconds.
struct tuning_round {
  std::vector<double> usual_s, tried_s;    // by call: what one of its nodes took
  double usual_run_s = 0, tried_run_s = 0; // what the device was busy with in an untraced run
  std::string difference; // how outputs differ from the usual kernels'; empty if they agree, else there are no times
};

/// Runs the model with the given way of each call, 0 being the usual one; `long_round`: takes its time.
using tuning_runner = std::function<tuning_round(std::span<const size_t> ways, bool long_round)>;

/// What was found of a call.
struct tuned_call {
  size_t way = 0;                  // 0: the usual one
  double seconds = 0, usual_s = 0; // of one of its nodes, by that way and by the usual one; 0 if it was not measured
};

/// A way that makes outputs differ.
struct wrong_way {
  size_t call = 0, way = 0;
  std::string difference;
};

struct tuning {
  std::vector<tuned_call> calls; // as the calls that were tuned
  std::vector<wrong_way> wrong;
  size_t rounds = 0, all_rounds = 0;       // done, and those that trying everything takes
  double usual_run_s = 0, tuned_run_s = 0; // a run before and with what is chosen; 0 if nothing is
  std::string refused;                     // why nothing of what was fastest call by call is chosen; empty if some is
};

/// Another way is chosen only if it takes so much less, so that noise chooses nothing.
inline constexpr double tuning_margin = 0.03;

/// Tunes calls until all ways are tried or `time_left`, which counts down from 1 to 0, says that it is time to confirm;
/// what was found by then counts. `progress` is told how many rounds are done of how many. Throws what `run` throws.
tuning tune(std::span<const tunable_call> calls, const tuning_runner& run, const std::function<double()>& time_left,
            const std::function<void(double, double)>& progress);

/// Returns what a profile keeps of it: each call that was measured.
std::vector<kernel_choice> choices_of(std::span<const tunable_call> calls, const tuning& found);

} // namespace troupe

// A local search that begins with `heft`: a task, or a chain of some, is tried on another device, and stays there if
// the whole then ends earlier. Tasks keep HEFT's order. The search is random by a fixed seed, so it always finds the
// same, and it tries at most as many moves as place `most_placed` tasks.
#include "plan/place/earliest_finish.hpp"
#include "plan/place/mean_times.hpp"
#include "plan/place/policies.hpp"

#include <algorithm>
#include <random>

namespace troupe {
namespace {

constexpr size_t most_tries = 500;
constexpr size_t most_placed = 1'000'000;
constexpr size_t longest_chain = 8;

class searcher {
public:
  explicit searcher(const scheduling_problem& problem)
      : problem_(problem), order_(by_rank(upward_ranks(problem, mean_seconds(problem)))) {}

  void run(schedule& made) {
    earliest_finish first(problem_);
    for (task_id n : order_)
      first.place(n);
    best_ = first.makespan();
    first.take(made);
    if (problem_.regular_count() < 2 || order_.empty())
      return;
    const size_t tries = std::min(most_tries, std::max<size_t>(1, most_placed / order_.size()));
    for (size_t i = 0; i < tries; ++i)
      try_move(made);
  }

private:
  size_t below(size_t bound) { return random_() % bound; }

  void try_move(schedule& made) {
    const std::vector<uint32_t> moved = other_devices(made.device);
    if (moved == made.device)
      return;
    earliest_finish trial(problem_);
    for (task_id n : order_) {
      trial.place_on(n, moved[n]);
      if (trial.makespan() >= best_)
        return;
    }
    best_ = trial.makespan();
    trial.take(made);
  }

  /// Moves a random task, and some of those that read it one after the other, to a random device.
  std::vector<uint32_t> other_devices(std::vector<uint32_t> devices) {
    auto n = static_cast<task_id>(below(order_.size()));
    const uint32_t to = problem_.order()[below(problem_.regular_count())];
    for (size_t left = size_t{1} << below(std::bit_width(longest_chain)); left > 0 && n != policy_none; --left) {
      if (problem_.allows(n, to))
        devices[n] = to;
      n = a_reader(n);
    }
    return devices;
  }

  task_id a_reader(task_id n) {
    for (uint32_t v : problem_.outputs(n))
      if (const auto readers = problem_.readers(v); !readers.empty())
        return readers[below(readers.size())];
    return policy_none;
  }

  const scheduling_problem& problem_;
  const std::vector<task_id> order_;
  std::mt19937_64 random_{1};
  double best_ = 0;
};

} // namespace

void place_local_search(const scheduling_problem& problem, schedule& made) {
  searcher(problem).run(made);
}

} // namespace troupe

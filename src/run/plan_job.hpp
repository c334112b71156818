// What a session's caches lack, as work for a thread that has the time: so a lookup never waits for it to be made.
#pragma once

#include "base/elapsed.hpp"
#include "plan/bind/arena_layout.hpp"
#include "run/request.hpp"

#include <functional>

namespace troupe {

/// What a job makes.
enum class plan_level : uint8_t { program, plan, replacement, bound_plan, times };

/// `make` is called once, on any thread: it uses only what it holds. `keep` afterwards, by the owner of the caches.
struct plan_job {
  plan_level makes;
  /// Throws what rewriting, planning and binding throw.
  std::function<void()> make;
  /// Throws `memory_shortage` if what was made does not fit and nothing else can be made instead.
  std::function<void()> keep;
};

/// A job that hands what `make()` returns to `keep`, and adds the milliseconds that it took to `spent`.
template <class Make, class Keep>
plan_job make_job(plan_level level, double& spent, Make make, Keep keep) {
  struct result {
    std::optional<decltype(make())> made;
    double ms = 0;
  };
  const auto r = std::make_shared<result>();
  return {.makes = level,
          .make =
              [r, make = std::move(make)] {
                const auto start = std::chrono::steady_clock::now();
                r->made = make();
                r->ms = milliseconds_since(start);
              },
          .keep =
              [r, &spent, keep = std::move(keep)] {
                spent += r->ms;
                keep(std::move(*r->made));
              }};
}

/// How a job ended, for the run that looked up what it makes; by default there was none.
struct plan_outcome {
  /// What has been made since the first look: it counts as a miss, though it is found now.
  bool plan_made = false;
  bool bound_plan_made = false;
  failure why;                             // set if the last job failed
  std::optional<memory_shortage> shortage; // set if that is how

  bool ok() const { return !why.failed() && !shortage; }
  /// Throws what the last job threw.
  void check() const;
  /// Takes in how another job ended: `made`, what making threw; if that is nothing, keeps what was made.
  void add(const plan_job& job, const failure& made);
};

} // namespace troupe

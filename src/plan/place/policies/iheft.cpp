// Improved HEFT (AlEbrahim, Ahmad, "Task scheduling for heterogeneous computing systems", The Journal of Supercomputing
// 73(6), 2017). Two things differ from HEFT:
//
//     weight = (longest − shortest seconds of the task) / (longest / shortest)
//
// takes the place of mean seconds in ranks. And if the device where a task would end first (1) is not the one where it
// takes the least time (2), it goes to the second unless weight / abstract is at most a random number from 0.1 to 0.3:
//
//     abstract = (end on 2 − end on 1) / (end on 2 / end on 1)
//
// That is: a task that gains little by its fast device does not wait for it. The numbers are random by a fixed seed.
#include "base/seeded_random.hpp"
#include "plan/place/earliest_finish.hpp"
#include "plan/place/mean_times.hpp"
#include "plan/place/policies.hpp"

namespace troupe {
namespace {

/// Returns how far apart two times are, by how many times the one is the other: (large − small) / (large / small).
double apart(double small, double large) {
  return large > 0 ? (large - small) * small / large : 0;
}

class improved_heft {
public:
  explicit improved_heft(const scheduling_problem& problem) : problem_(problem), schedule_(problem) {}

  void run(schedule& made) {
    std::vector<double> weight(problem_.task_count());
    for (task_id n = 0; n < problem_.task_count(); ++n)
      weight[n] = weight_of(n);
    for (task_id n : by_rank(upward_ranks(problem_, weight)))
      schedule_.place_on(n, device_for(n, weight[n]));
    schedule_.take(made);
  }

private:
  double weight_of(task_id n) {
    problem_.candidates(n, devices_);
    double shortest = problem_.seconds(n, devices_[0]), longest = shortest;
    for (uint32_t d : devices_) {
      shortest = std::min(shortest, problem_.seconds(n, d));
      longest = std::max(longest, problem_.seconds(n, d));
    }
    return apart(shortest, longest);
  }

  uint32_t device_for(task_id n, double weight) {
    problem_.candidates(n, devices_);
    uint32_t first = devices_[0], fastest = first; // where it ends first, where it takes the least time
    double end = schedule_.slot_on(n, first).finish, end_on_fastest = end;
    for (uint32_t d : devices_) {
      const double here = schedule_.slot_on(n, d).finish;
      if (here < end) {
        end = here;
        first = d;
      }
      if (problem_.seconds(n, d) < problem_.seconds(n, fastest)) {
        fastest = d;
        end_on_fastest = here;
      }
    }
    if (end_on_fastest <= end)
      return fastest;
    return weight <= random_.between(0.1, 0.3) * apart(end, end_on_fastest) ? first : fastest;
  }

  const scheduling_problem& problem_;
  earliest_finish schedule_;
  seeded_random random_{1};
  std::vector<uint32_t> devices_; // scratch
};

} // namespace

void place_iheft(const scheduling_problem& problem, schedule& made) {
  improved_heft(problem).run(made);
}

} // namespace troupe

// When a session's plan is changed because its devices are not as fast as they state: by hand, and on 10,000 traces.
#include "run/speed_watch.hpp"

#include "base/seeded_random.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <array>
#include <cmath>

using namespace troupe;

namespace {

constexpr double run_s = 0.1; // by the speeds that devices state, on one of them
constexpr int parts = 16;     // of a run, of which plan k gives the first device k

run_time at(double seconds) {
  return run_time(std::chrono::nanoseconds(static_cast<int64_t>(seconds * 1e9)));
}

/// Two devices that share each run, and a session that changes its plan when a watch tells it to.
class shared_runs {
public:
  explicit shared_runs(uint64_t seed) : random_(seed) { watch_.count(2, at(0)); }

  /// Runs until `end`, in seconds. `wander` moves the noise of a fifth slowly; else it is another for each run.
  void run(double end, double wander_s = 0) {
    while (now < end) {
      speed_watch::ended_run ended{.devices = {}, .stated_s = seconds(plan, {1, 1})};
      double longest = 0;
      for (size_t d = 0; d < 2; ++d) {
        const double stated = share(plan, d) * run_s;
        const double measured = stated * pace[d] * noise(d, wander_s);
        ended.devices.push_back({.device = d, .stated_s = stated, .measured_s = measured});
        longest = std::max(longest, measured);
      }
      now += longest;
      ++runs;
      follow(watch_.ended(ended, at(now)));
    }
  }

  /// Returns the time of a run by a plan.
  static double seconds(int plan, const std::array<double, 2>& pace) {
    return std::max(share(plan, 0) * pace[0], share(plan, 1) * pace[1]) * run_s;
  }
  static int best_plan(const std::array<double, 2>& pace) {
    int best = parts / 2;
    for (int k = 0; k <= parts; ++k)
      if (seconds(k, pace) < seconds(best, pace))
        best = k;
    return best;
  }

  std::array<double, 2> pace{1, 1};
  double noise_size = 0.2;
  double move_s = 0;   // of weights
  double drawback = 1; // by how much a plan that is not the first one takes longer than predicted
  double now = 0;
  int plan = parts / 2;
  size_t runs = 0, refused = 0;
  std::vector<std::pair<int, double>> taken; // plans, those taken back to included, and when
  size_t taken_back = 0;

private:
  static double share(int plan, size_t device) { return (device == 0 ? plan : parts - plan) / double{parts}; }

  double noise(size_t device, double wander_s) {
    const double per_run = 2 * random_.open_unit() - 1;
    const double slow = std::sin(6.28 * now / std::max(wander_s, 1e-3) + static_cast<double>(device) * 2);
    return (1 + noise_size * (wander_s > 0 ? slow : per_run)) * (plan == parts / 2 ? 1 : drawback);
  }

  void follow(speed_watch::advice advice) {
    if (advice == speed_watch::advice::take_back) {
      ++taken_back;
      use(before_);
    } else if (advice == speed_watch::advice::plan) {
      const std::vector<double> paces = watch_.paces(2, at(now));
      const std::array<double, 2> both{paces[0], paces[1]};
      const int other = best_plan(both);
      const speed_watch::candidate made{.used = {1, static_cast<uint64_t>(plan)},
                                        .other = {1, static_cast<uint64_t>(other)},
                                        .used_s = seconds(plan, both),
                                        .other_s = seconds(other, both),
                                        .used_stated_s = seconds(plan, {1, 1}),
                                        .other_stated_s = seconds(other, {1, 1}),
                                        .move_s = move_s};
      before_ = plan;
      if (watch_.take(made, at(now)))
        use(other);
      else
        ++refused;
    }
  }
  void use(int other) {
    plan = other;
    taken.emplace_back(other, now);
  }

  seeded_random random_;
  speed_watch watch_;
  int before_ = 0;
};

/// Checks that no plan is taken twice within a minute.
void check_hysteresis(const shared_runs& s) {
  for (size_t i = 0; i < s.taken.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (s.taken[i].first == s.taken[j].first && s.taken[i].second - s.taken[j].second < 60)
        FAIL("plan " << s.taken[i].first << " was taken at " << s.taken[j].second << " s and at " << s.taken[i].second);
}

} // namespace

TEST_CASE("a device that becomes slow gets less within three seconds", "[run][speeds]") {
  for (const double slow : {1.5, 2.0, 4.0}) {
    INFO(slow);
    shared_runs s(7);
    s.run(20);
    CHECK(s.taken.empty());
    s.pace[1] = slow;
    s.run(23);
    REQUIRE(s.taken.size() == 1);
    s.run(60);
    CHECK(s.taken.size() == 1);
    const double best = shared_runs::seconds(shared_runs::best_plan(s.pace), s.pace);
    CHECK(best / shared_runs::seconds(s.plan, s.pace) >= 0.95);
  }
}

TEST_CASE("devices that are not as fast as they state are found out by the first requests", "[run][speeds]") {
  shared_runs s(3);
  s.pace = {6, 2};
  s.run(8);
  REQUIRE(s.taken.size() == 1);
  CHECK(shared_runs::seconds(shared_runs::best_plan(s.pace), s.pace) / shared_runs::seconds(s.plan, s.pace) >= 0.95);
  s.pace = {3, 1}; // both alike: the plan stays
  s.run(120);
  CHECK(s.taken.size() == 1);
}

TEST_CASE("a plan that is not faster is taken back, and rests for twice as long each time", "[run][speeds]") {
  shared_runs s(5);
  s.drawback = 2;
  const std::array<std::pair<double, size_t>, 5> expected{{{30, 1}, {55, 1}, {100, 2}, {170, 2}, {215, 3}}};
  for (const auto& [end, taken_back] : expected) {
    s.pace = s.taken_back % 2 == 0 ? std::array<double, 2>{1, 2} : std::array<double, 2>{2, 1};
    s.run(end);
    INFO("until " << end);
    CHECK(s.taken_back == taken_back);
    CHECK(s.plan == parts / 2);
  }
  check_hysteresis(s);
}

TEST_CASE("a plan whose weights take longer to move than it gains is not taken", "[run][speeds]") {
  shared_runs s(5);
  s.pace = {1, 2};
  s.move_s = 60;
  s.run(100);
  CHECK(s.taken.empty());
  CHECK(s.refused == 1); // it is not asked for again and again
}

TEST_CASE("a device that is not used is tried again after a minute", "[run][speeds]") {
  shared_runs s(11);
  s.run(5);
  s.pace[1] = 20;
  s.run(25);
  REQUIRE(s.plan == parts); // all on the first device
  s.run(70);
  CHECK(s.taken.size() == 1);
  s.pace[1] = 1;
  s.run(95);
  CHECK(s.plan == parts / 2);
  CHECK(s.taken_back == 0);
}

TEST_CASE("in 10,000 traces no plan is taken twice within a minute, and noise moves none", "[run][speeds]") {
  size_t moved = 0, taken_back = 0;
  double used_s = 0, best_s = 0;
  for (uint64_t seed = 0; seed < 10'000; ++seed) {
    shared_runs s(seed);
    seeded_random random(seed + 1'000'000);
    if (seed % 2 == 0) {
      s.run(60, seed % 4 == 0 ? 0 : 0.5 + 30 * random.open_unit());
      if (!s.taken.empty())
        FAIL("noise moved trace " << seed);
      continue;
    }
    s.drawback = seed % 3 == 0 ? 1 + random.open_unit() / 2 : 1;
    for (double next = 0; next < 150;) {
      s.pace[random.open_unit() < 0.5 ? 0 : 1] = std::exp2(4 * random.open_unit() - 1);
      const double from = next;
      next += 40 * random.open_unit();
      const size_t before = s.runs;
      s.run(next);
      used_s += next - from;
      best_s += static_cast<double>(s.runs - before) * shared_runs::seconds(shared_runs::best_plan(s.pace), s.pace);
    }
    check_hysteresis(s);
    moved += s.taken.size();
    taken_back += s.taken_back;
  }
  INFO("changes " << moved << ", taken back " << taken_back << ", of the best " << best_s / used_s);
  CHECK(moved > 5'000);
  CHECK(taken_back > 0);
  CHECK(best_s / used_s > 0.7);
}

// The worked examples of the papers: for a table of times, policies must give the published schedule.
#include "plan/place/policies.hpp"
#include "schedules/task_graph.hpp"

#include "support/catch.hpp"
#include "support/places.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <limits>

using namespace troupe;
using Catch::Contains;

namespace {

/// tests/data/published_schedules.json: figure 2 of the HEFT paper, and the example of the PEFT paper.
nlohmann::json published() {
  return nlohmann::json::parse(std::ifstream(test::test_data() + "/published_schedules.json"));
}

cost_matrix costs_of(const nlohmann::json& example) {
  cost_matrix costs{.tasks = static_cast<uint32_t>(example.at("costs").size()), .devices = 3};
  for (const auto& row : example.at("costs"))
    for (const auto& seconds : row)
      costs.seconds.push_back(seconds);
  for (const auto& e : example.at("edges")) // tasks count from 1 there
    costs.edges.push_back({e.at(0).get<uint32_t>() - 1, e.at(1).get<uint32_t>() - 1, e.at(2)});
  return costs;
}

/// Returns the shortest makespan of all: every task that is ready, next on every device, after all that it has.
double shortest(const cost_matrix& costs, std::vector<std::pair<uint32_t, double>> placed = {}, uint32_t done = 0) {
  placed.resize(costs.tasks); // device and end
  std::vector<double> free(costs.devices, 0);
  double last = 0, best = std::numeric_limits<double>::infinity();
  for (task_id n = 0; n < costs.tasks; ++n)
    if (done >> n & 1) {
      free[placed[n].first] = std::max(free[placed[n].first], placed[n].second);
      last = std::max(last, placed[n].second);
    }
  if (done + 1 == 1u << costs.tasks)
    return last;
  for (task_id n = 0; n < costs.tasks; ++n) {
    const auto waits = [&](const cost_edge& e) { return e.to == n && !(done >> e.from & 1); };
    if (done >> n & 1 || std::any_of(costs.edges.begin(), costs.edges.end(), waits))
      continue;
    for (uint32_t d = 0; d < costs.devices; ++d) {
      double start = free[d];
      for (const cost_edge& e : costs.edges)
        if (e.to == n)
          start = std::max(start, placed[e.from].second + (placed[e.from].first == d ? 0 : e.seconds));
      placed[n] = {d, start + costs.at(n, d)};
      best = std::min(best, shortest(costs, placed, done | 1u << n));
    }
  }
  return best;
}

} // namespace

TEST_CASE("policies give the published schedules' lengths", "[schedules][C6]") {
  const nlohmann::json examples = published();
  const cost_matrix heft_paper = costs_of(examples.at("heft_paper")), peft_paper = costs_of(examples.at("peft_paper"));
  CHECK(makespan_by("heft", heft_paper) == 80);
  CHECK(makespan_by("cpop", heft_paper) == 86);
  CHECK(makespan_by("dls", heft_paper) == 91);
  CHECK(makespan_by("peft", peft_paper) == 122);
  CHECK(makespan_by("heft", peft_paper) == 133);
  CHECK(makespan_by("lookahead", peft_paper) == 127);
}

TEST_CASE("no schedule is shorter than the optimal one", "[schedules][C6]") {
  for (uint64_t seed = 0; seed < 30; ++seed) { // in some of these no other policy finds it
    const layered_options unlike{.tasks = 6, .shape = 0.7, .ccr = seed % 2 ? 2.0 : 4.0, .heterogeneity = 1.5};
    const cost_matrix costs = random_layers(unlike, seed % 3 ? 2 : 3, seed);
    INFO("seed " << seed);
    CHECK(makespan_by("optimal", costs) == Approx(shortest(costs)));
  }
  for (const auto& example : published()) {
    const double least = makespan_by("optimal", costs_of(example));
    for (const policy_row& row : policies())
      CHECK(makespan_by(row.name, costs_of(example)) >= least);
  }
  // Equal devices are tried once, and so is each order of tasks that do not depend on each other.
  const cost_matrix equal{.tasks = 14, .devices = 4, .seconds = std::vector<double>(14 * 4, 2.0), .edges = {}};
  CHECK(makespan_by("optimal", equal) == 8);
}

TEST_CASE("optimal refuses what it cannot try", "[schedules][C6]") {
  CHECK_THROWS_WITH(makespan_by("optimal", random_layers({.tasks = 15}, 2, 1)),
                    Contains("up to 14 tasks on up to 16 devices; there are 15 tasks and 2 devices"));
  CHECK_THROWS_WITH(makespan_by("optimal", random_layers({.tasks = 2}, 17, 1)), Contains("2 tasks and 17 devices"));
}

TEST_CASE("lookahead and dcp see where a task's reader should be", "[schedules][C6]") {
  // Task 0 is faster on device 0, task 1 on device 1, and the edge takes long.
  const cost_matrix costs{.tasks = 2, .devices = 2, .seconds = {1, 2, 10, 1}, .edges = {{0, 1, 5}}};
  CHECK(makespan_by("heft", costs) == 7);
  CHECK(makespan_by("lookahead", costs) == 3);
  CHECK(makespan_by("dcp", costs) == 3);
}

TEST_CASE("dcp places what is on the longest path by then", "[schedules][C6]") {
  // Task 2 is longer than task 3, but task 3 cannot begin before 7, and ends the longest path.
  const cost_matrix costs{.tasks = 4, .devices = 1, .seconds = {1, 7, 3, 2}, .edges = {{0, 2, 0}, {1, 3, 0}}};
  matrix_problem problem(costs);
  const schedule made = problem.run(row_of(placement_policy::dcp).place);
  CHECK(made.start[1] < made.start[0]);
  CHECK(made.start[3] < made.start[2]);
}

TEST_CASE("iheft lets a task wait for its fastest device, unless it gains little", "[schedules][C6]") {
  // Task 0 is on device 0 until 10. Task 1 would end at 11 there, or at once on device 1.
  const auto with = [](double slow) { return cost_matrix{.tasks = 2, .devices = 2, .seconds = {10, 11, 1, slow}}; };
  CHECK(makespan_by("heft", with(9)) == 10);
  CHECK(makespan_by("iheft", with(9)) == 11);
  CHECK(makespan_by("iheft", with(1.05)) == 10);
}

TEST_CASE("hbmct moves tasks of a group from the device that ends last", "[schedules][C6]") {
  // Each would be fastest on device 0: 6 for all three.
  const cost_matrix costs{.tasks = 3, .devices = 2, .seconds = {2, 3, 2, 3, 2, 3}, .edges = {}};
  CHECK(makespan_by("hbmct", costs) == 4);
}

TEST_CASE("min-min places what can end first, first", "[schedules][C6]") {
  // The short tasks 1 and 2 are on a device each until 1, task 0 after one of them until 3. With the longest first it
  // would be 2.
  const cost_matrix costs{.tasks = 3, .devices = 2, .seconds = {2, 2, 1, 1, 1, 1}, .edges = {}};
  CHECK(makespan_by("min-min", costs) == 3);
}

TEST_CASE("dls gives a device the task that gains most there", "[schedules][C6]") {
  // Both tasks could begin at once on either device. Task 0 is longer, but only task 1 gains on device 0.
  const cost_matrix costs{.tasks = 2, .devices = 2, .seconds = {4, 4, 1, 5}, .edges = {}};
  CHECK(makespan_by("dls", costs) == 4);
}

TEST_CASE("dmda counts the seconds in which what lacks comes", "[schedules][C6]") {
  // Task 1 would end at 5 on device 1 but for its input, which needs 3 seconds to get there.
  const cost_matrix costs{.tasks = 2, .devices = 2, .seconds = {1, 9, 5, 4}, .edges = {{0, 1, 3}}};
  CHECK(makespan_by("dmda", costs) == 6);
}

TEST_CASE("every policy schedules a table of times", "[schedules][C6]") {
  for (const auto& example : published()) {
    const cost_matrix costs = costs_of(example);
    for (const policy_row& row : policies()) {
      INFO(row.name);
      const double makespan = makespan_by(row.name, costs);
      CHECK(length_ratio(costs, makespan) >= 1);
      CHECK(makespan == makespan_by(row.name, costs)); // local-search is random by a fixed seed
    }
    CHECK(makespan_by("local-search", costs) <= makespan_by("heft", costs));
  }
}

TEST_CASE("tasks go only where a table has a finite time", "[schedules][C6]") {
  constexpr double never = std::numeric_limits<double>::infinity();
  const cost_matrix costs{.tasks = 4,
                          .devices = 3,
                          .seconds = {1, never, 9, never, 2, never, 3, 3, never, never, never, 4},
                          .edges = {{0, 1, 1}, {0, 2, 1}, {1, 3, 1}, {2, 3, 1}}};
  for (const policy_row& row : policies()) {
    INFO(row.name);
    matrix_problem problem(costs);
    const schedule made = problem.run(row.place);
    for (task_id n = 0; n < costs.tasks; ++n)
      CHECK(std::isfinite(costs.at(n, made.device[n])));
    CHECK_NOTHROW(makespan_of(problem.asked(), timed(problem.asked(), made)));
  }
}

TEST_CASE("tables that cannot be are refused, and schedules that are none", "[schedules][C6]") {
  const cost_matrix good{.tasks = 2, .devices = 2, .seconds = {1, 2, 3, 4}, .edges = {{0, 1, 5}}};
  const auto refused = [&](auto&& change, const std::string& why) {
    cost_matrix bad = good;
    change(bad);
    CHECK_THROWS_WITH(matrix_problem(bad), Contains(why));
  };
  refused([](cost_matrix& c) { c.seconds.pop_back(); }, "2 tasks and 2 devices has 3 costs");
  refused([](cost_matrix& c) { c.seconds[1] = -1; }, "task 0 takes -1 seconds on device 1");
  refused([](cost_matrix& c) { c.seconds[2] = c.seconds[3] = HUGE_VAL; }, "task 1 can run on no device");
  refused([](cost_matrix& c) { c.edges[0] = {1, 0, 5}; }, "edges go up");
  refused([](cost_matrix& c) { c.edges[0] = {0, 2, 5}; }, "to task 2");
  refused([](cost_matrix& c) { c.edges[0].seconds = NAN; }, "nan seconds");
  matrix_problem problem(good);
  CHECK(makespan_of(problem.asked(), {{0, 1}, {0, 6}}) == 10);
  CHECK(makespan_of(problem.asked(), {{0, 0}, {0, 1}}) == 4);
  CHECK_THROWS_WITH(makespan_of(problem.asked(), {{0, 1}, {0, 5}}),
                    Contains("task 1 starts before it has what task 0"));
  CHECK_THROWS_WITH(makespan_of(problem.asked(), {{0, 0}, {0, 0.5}}), Contains("overlap"));
}

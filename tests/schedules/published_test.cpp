// The worked examples of the papers: for a table of times, policies must give the published schedule.
#include "schedules/schedule_of.hpp"

#include "support/catch.hpp"
#include "support/places.hpp"

#include <nlohmann/json.hpp>

#include <fstream>
#include <limits>

using namespace troupe;
using namespace troupe::testing;
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

} // namespace

TEST_CASE("policies give the published schedules' lengths", "[schedules][C6]") {
  const nlohmann::json examples = published();
  const cost_matrix heft_paper = costs_of(examples.at("heft_paper")), peft_paper = costs_of(examples.at("peft_paper"));
  CHECK(makespan_by("heft", heft_paper) == 80);
  CHECK(makespan_by("cpop", heft_paper) == 86);
  CHECK(makespan_by("dls", heft_paper) == 91);
  CHECK(makespan_by("peft", peft_paper) == 122);
  CHECK(makespan_by("heft", peft_paper) == 133);
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

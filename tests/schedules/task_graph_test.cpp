// Made-up task graphs: they have the shapes that they are known by, are the same for the same seed, and every policy
// schedules them.
#include "schedules/task_graph.hpp"

#include "plan/place/policies.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <array>
#include <map>

using namespace troupe;
using Catch::Contains;

namespace {

std::map<std::string, size_t> kinds_of(const task_graph& g) {
  std::map<std::string, size_t> kinds;
  for (const graph_task& task : g.tasks)
    ++kinds[task.kind];
  return kinds;
}

/// One of each generator.
std::vector<task_graph> all_graphs() {
  return {fork_join(5, 3, 1e9, 1e6), cholesky(5, 64), lu(4, 64),           fft(8, 1e9, 1e6),
          stencil(6, 4, 1e9, 1e6),   montage(8, 1),   cybershake(3, 4, 1), epigenomics(3, 2, 1),
          inspiral(2, 3, 1),         sipht(2, 5, 1)};
}

/// Graphs of the HEFT paper's form, on up to 32 devices that differ up to fourfold and more, as the PEFT paper has
/// them.
cost_matrix random_graph(uint64_t seed) {
  seeded_random random(seed);
  const auto pick = [&](auto from) { return from[random.below(static_cast<uint32_t>(from.size()))]; };
  layered_options options;
  options.tasks = pick(std::array{20u, 40u, 60u, 80u, 100u});
  options.shape = pick(std::array{0.5, 1.0, 2.0});
  options.out_degree = pick(std::array{1u, 2u, 3u, 4u, 5u});
  options.ccr = pick(std::array{0.1, 0.8, 2.0, 5.0, 10.0});
  options.heterogeneity = pick(std::array{0.1, 0.5, 1.0, 2.0});
  const uint32_t devices = pick(std::array{4u, 8u, 16u, 32u});
  return random_layers(options, devices, seed);
}

} // namespace

TEST_CASE("graphs of algorithms have their tasks", "[schedules]") {
  using kinds = std::map<std::string, size_t>;
  CHECK(kinds_of(cholesky(5, 64)) == kinds{{"potrf", 5}, {"trsm", 10}, {"syrk", 10}, {"gemm", 10}});
  CHECK(kinds_of(lu(4, 64)) == kinds{{"getrf", 4}, {"trsm", 12}, {"gemm", 14}});
  CHECK(kinds_of(fft(8, 1, 1)) == kinds{{"split", 15}, {"butterfly", 24}});
  CHECK(kinds_of(fork_join(5, 3, 1, 1)) == kinds{{"fork", 3}, {"branch", 15}, {"join", 3}});
  CHECK(fork_join(5, 3, 1, 1).edges.size() == 32);
  // Each task of Cholesky reads its own tile, too, if one of a step before wrote it: 4 potrf, 10 + 6 trsm, 20 + 4 gemm,
  // 10 + 6 syrk.
  CHECK(cholesky(5, 64).edges.size() == 60);
  CHECK(kinds_of(stencil(6, 4, 1, 1)) == kinds{{"block", 24}});
  CHECK(stencil(6, 4, 1, 1).edges.size() == 3 * 16);
  CHECK(kinds_of(montage(8, 1)) == kinds{{"project", 8},
                                         {"difference", 13},
                                         {"fit", 1},
                                         {"model", 1},
                                         {"correct", 8},
                                         {"table", 1},
                                         {"sum", 1},
                                         {"reduce", 1},
                                         {"picture", 1}});
  CHECK(kinds_of(cybershake(3, 4, 1)) ==
        kinds{{"ExtractSGT", 3}, {"SeismogramSynthesis", 12}, {"PeakValCalcOkaya", 12}, {"ZipSeis", 1}, {"ZipPSA", 1}});
  CHECK(kinds_of(epigenomics(3, 2, 1)) == kinds{{"fastqSplit", 3},
                                                {"filterContams", 6},
                                                {"sol2sanger", 6},
                                                {"fastq2bfq", 6},
                                                {"map", 6},
                                                {"mapMerge", 4},
                                                {"maqIndex", 1},
                                                {"pileup", 1}});
  CHECK(kinds_of(epigenomics(1, 2, 1)).at("mapMerge") == 1);
  CHECK(kinds_of(inspiral(2, 3, 1)) == kinds{{"TmpltBank", 6}, {"Inspiral", 12}, {"Thinca", 4}, {"TrigBank", 6}});
  CHECK(sipht(2, 5, 1).tasks.size() == 2 * (5 + 12));
  // Together they do the operations of the factorisation: n³ / 3 and 2 n³ / 3, for large n.
  const auto work = [](const task_graph& g) {
    double sum = 0;
    for (const graph_task& task : g.tasks)
      sum += task.work;
    return sum;
  };
  CHECK(work(cholesky(40, 10)) == Approx(400.0 * 400 * 400 / 3).epsilon(0.05));
  CHECK(work(lu(40, 10)) == Approx(400.0 * 400 * 400 * 2 / 3).epsilon(0.05));
}

TEST_CASE("workflows take their published times", "[schedules]") {
  const task_graph g = cybershake(10, 100, 1);
  double seconds = 0, bytes = 0;
  for (const graph_task& task : g.tasks)
    seconds += task.kind == "SeismogramSynthesis" ? task.work / 1e9 / 1000 : 0;
  for (const graph_edge& e : g.edges)
    bytes += g.tasks[e.from].kind == "ExtractSGT" ? e.bytes / 1000 : 0;
  CHECK(seconds == Approx(43.4).epsilon(0.02));
  CHECK(bytes == Approx(463.44e6).epsilon(0.02));
}

TEST_CASE("a butterfly's ends are twice as far apart in each row", "[schedules]") {
  const task_graph g = fft(8, 1, 1);
  const auto reads = [&](task_id to, task_id from) {
    return std::any_of(g.edges.begin(), g.edges.end(),
                       [&](const graph_edge& e) { return e.to == to && e.from == from; });
  };
  const auto first = static_cast<task_id>(g.tasks.size() - 4 * 8); // of the last row of splits
  for (task_id row = 0; row < 3; ++row)
    for (task_id i = 0; i < 8; ++i) {
      CHECK(reads(first + 8 * (row + 1) + i, first + 8 * row + i));
      CHECK(reads(first + 8 * (row + 1) + i, first + 8 * row + (i ^ (1u << row))));
    }
}

TEST_CASE("ratios are of the longest path on the best devices", "[schedules]") {
  // 0 → 1 → 2 take 1 + 3 + 2 at best, 3 takes 5.
  const cost_matrix costs{
      .tasks = 4, .devices = 2, .seconds = {1, 2, 4, 3, 2, 2, 5, 6}, .edges = {{0, 1, 9}, {1, 2, 9}}};
  CHECK(length_ratio(costs, 12) == Approx(2));
  CHECK(speedup(costs, 6) == Approx(2)); // 12 seconds on device 0
}

TEST_CASE("a value is where it was made at once, and elsewhere after its edge's time", "[schedules]") {
  const cost_matrix costs{.tasks = 2, .devices = 2, .seconds = {1, 1, 1, 1}, .edges = {{0, 1, 9}}};
  matrix_problem host(costs);
  const scheduling_problem problem(host.asked());
  CHECK(problem.move_seconds(0, 1, 1) == 0);
  CHECK(problem.move_seconds(0, 0, 1) == 9);
}

TEST_CASE("made-up graphs are in order, and the same each time", "[schedules]") {
  for (const task_graph& g : all_graphs()) {
    INFO(g.name);
    const auto before = [](const graph_edge& a, const graph_edge& b) {
      return std::pair(a.to, a.from) < std::pair(b.to, b.from);
    };
    CHECK(std::is_sorted(g.edges.begin(), g.edges.end(), before));
    CHECK(std::all_of(g.edges.begin(), g.edges.end(),
                      [&](const graph_edge& e) { return e.from < e.to && e.to < g.tasks.size(); }));
  }
  CHECK(all_graphs() == all_graphs());
  CHECK(montage(8, 1) != montage(8, 2));
  CHECK(cybershake(3, 4, 1) != cybershake(3, 4, 2));
  CHECK(random_layers({}, 4, 7).seconds == random_layers({}, 4, 7).seconds);
  CHECK(random_layers({}, 4, 7).edges == random_layers({}, 4, 7).edges);
  CHECK(random_layers({}, 4, 7).seconds != random_layers({}, 4, 8).seconds);
  seeded_random random(5489); // the standard defines the engine's 10,000th number
  for (int i = 1; i < 10000; ++i)
    random.unit();
  CHECK(random.unit() == static_cast<double>(9981545732273789042ULL >> 11) * 0x1p-53);
}

TEST_CASE("random layers follow their parameters", "[schedules]") {
  const layered_options options{.tasks = 5000, .out_degree = 3, .ccr = 5, .heterogeneity = 0.5, .mean_seconds = 10};
  const cost_matrix costs = random_layers(options, 8, 1);
  double tasks = 0, edges = 0;
  std::vector<size_t> out(costs.tasks, 0), in(costs.tasks, 0);
  for (double s : costs.seconds)
    tasks += s / static_cast<double>(costs.seconds.size());
  for (const cost_edge& e : costs.edges) {
    edges += e.seconds / static_cast<double>(costs.edges.size());
    ++out[e.from];
    ++in[e.to];
  }
  CHECK(tasks == Approx(10).epsilon(0.05));
  CHECK(edges / tasks == Approx(5).epsilon(0.05));
  CHECK(std::count(in.begin(), in.end(), 0u) < 200); // the first layer alone
  for (task_id n = 0; n < costs.tasks; ++n) {
    const auto row = costs.seconds.begin() + n * 8;
    const auto [least, most] = std::minmax_element(row, row + 8);
    REQUIRE(*most <= *least * 1.25 / 0.75 + 1e-12);
  }
  CHECK(random_layers({.tasks = 1}, 2, 1).edges.empty());
}

TEST_CASE("graphs that cannot be are refused", "[schedules]") {
  CHECK_THROWS_WITH(cholesky(0, 64), Contains("the number of tiles is 0; it may be 1 to 256"));
  CHECK_THROWS_WITH(fft(12, 1, 1), Contains("a power of two"));
  CHECK_THROWS_WITH(stencil(1u << 20, 1, 1, 1), Contains("the width is 1048576"));
  CHECK_THROWS_WITH(random_layers({.heterogeneity = 3}, 4, 1), Contains("the heterogeneity is 3; it may be 0 to 2"));
  CHECK_THROWS_WITH(random_layers({.shape = NAN}, 4, 1), Contains("the shape is nan"));
  CHECK_THROWS_WITH(costs_on(lu(2, 8), {.devices = 0}, 1), Contains("the number of devices is 0"));
}

TEST_CASE("every policy's schedules of made-up graphs are right", "[schedules][C6]") {
  std::vector<cost_matrix> all;
  for (const task_graph& g : all_graphs())
    all.push_back(costs_on(g, {.devices = 3, .heterogeneity = 1}, 1));
  for (uint64_t seed = 0; seed < 20; ++seed)
    all.push_back(random_graph(seed));
  for (const cost_matrix& costs : all)
    for (const policy_row& row : policies()) {
      if (row.small_only)
        continue;
      INFO(row.name << ", " << costs.tasks << " tasks");
      CHECK(length_ratio(costs, makespan_by(row.name, costs)) >= 1);
    }
}

TEST_CASE("policies rank as published", "[schedules][C6]") {
  std::map<std::string, double> mean;
  constexpr size_t graphs = 300;
  for (uint64_t seed = 0; seed < graphs; ++seed) {
    const cost_matrix costs = random_graph(seed);
    for (const char* name : {"peft", "heft", "cpop", "round-robin", "local-search"})
      mean[name] += length_ratio(costs, makespan_by(name, costs)) / graphs;
  }
  for (const auto& [name, ratio] : mean)
    std::printf("%s: mean SLR %.3f over %zu random graphs\n", name.c_str(), ratio, graphs);
  CHECK(mean["peft"] <= mean["heft"]);
  CHECK(mean["heft"] < mean["cpop"]);
  CHECK(mean["local-search"] < mean["heft"]);
  CHECK(mean["cpop"] < mean["round-robin"]);
}

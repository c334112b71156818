// The makespans that troupe and SimGrid simulate for the same tasks, on the same devices, in the same order, of the
// same platform: a table, and an error if one differs by more than a part in a thousand.
//
//   build/release/bin/troupe_simgrid [SEEDS]
#include "base/seeded_random.hpp"
#include "plan/plan.hpp"
#include "simgrid/cases.hpp"
#include "simgrid/oracle.hpp"
#include "trace/run_trace.hpp"
#include "troupe/simulation.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace troupe::test {
namespace {

constexpr double most_difference = 0.001;

/// What both simulators play.
struct schedule {
  std::vector<std::string> hosts; // by device
  std::vector<oracle_chunk> chunks;
};

double elements_bytes(const node& n, size_t output) {
  return static_cast<double>(n.attrs.integers("elements").at(output)) * sizeof(float);
}

/// Returns a plan as SimGrid is to play it: work and bytes are the tasks' own, order and places the plan's.
schedule schedule_of(const plan& p) {
  schedule s;
  for (const device_info& d : p.devices)
    s.hosts.push_back(d.host);
  for (const chunk& c : p.chunks) {
    oracle_chunk& made = s.chunks.emplace_back(oracle_chunk{.device = c.device, .after = {}, .fetches = {}});
    for (const node_id n : c.nodes)
      made.operations += static_cast<double>(p.program->nodes[n].attrs.real("work"));
    for (const chunk_id before : c.predecessors)
      if (p.chunks[before].device != c.device)
        made.after.push_back(before);
  }
  for (const transfer& t : p.transfers) {
    const node_id maker = p.producer[t.value];
    if (!t.to || maker < 0)
      continue;
    const std::string& from = s.hosts[p.placement[maker]];
    const auto& outputs = p.program->nodes[maker].outputs;
    const auto at = static_cast<size_t>(std::find(outputs.begin(), outputs.end(), t.value) - outputs.begin());
    if (from != s.hosts[p.chunks[*t.to].device])
      s.chunks[*t.to].fetches.push_back({from, elements_bytes(p.program->nodes[maker], at)});
  }
  return s;
}

/// Half of the schedules are a policy's, the others random.
session_options options_for(const task_graph& g, const simulation_options& how, uint64_t seed) {
  session_options o{.fuse = false};
  constexpr std::array policies{placement_policy::heft, placement_policy::min_min, placement_policy::round_robin};
  o.policy = policies[seed / 2 % policies.size()];
  if (seed % 2 == 0)
    return o;
  const std::vector<device_summary> devices = cluster_devices(how);
  seeded_random random(seed);
  for (uint32_t t = 0; t < g.tasks.size(); ++t)
    o.pins.push_back({task_name(g, t), devices[random.below(static_cast<uint32_t>(devices.size()))].name});
  return o;
}

struct difference {
  double equal = 0, by_latency = 0; // parts of SimGrid's makespan
  size_t fetches = 0;
};

difference compare(size_t platform_kind, size_t graph_kind, uint64_t seed, const std::string& file) {
  const std::string text = random_platform(platform_kind, seed);
  std::ofstream(file) << text;
  const task_graph g = random_graph(graph_kind, seed);
  simulation_options how{.cluster_text = text, .profile_file = "/nowhere", .trace = true};
  how.session = options_for(g, how, seed);
  const simulation_report r = simulate(model_of(g), {}, how);
  const schedule s = schedule_of(*r.trace->source);
  difference d;
  for (const oracle_chunk& c : s.chunks)
    d.fetches += c.fetches.size();
  const auto beside = [&](oracle_sharing sharing) {
    return r.makespan_ms * 1e-3 / simgrid_makespan(file, s.hosts, s.chunks, sharing) - 1;
  };
  d.equal = beside(oracle_sharing::equal);
  d.by_latency = beside(oracle_sharing::by_latency);
  if (std::abs(d.equal) > most_difference)
    fmt::print("seed {}, {}, {}: troupe {:+.3f} %\n", seed, platform_kinds[platform_kind], graph_kinds[graph_kind],
               d.equal * 100);
  return d;
}

/// One line of the table.
struct cell {
  size_t seeds = 0, fetches = 0, far = 0;
  double sum = 0, worst = 0, sum_by_latency = 0, worst_by_latency = 0;

  void add(const difference& d) {
    ++seeds;
    fetches += d.fetches;
    far += std::abs(d.equal) > most_difference;
    sum += std::abs(d.equal);
    worst = std::max(worst, std::abs(d.equal));
    sum_by_latency += std::abs(d.by_latency);
    worst_by_latency = std::max(worst_by_latency, std::abs(d.by_latency));
  }
  void print(const char* platform, const char* graph) const {
    const auto of = static_cast<double>(seeds);
    fmt::print("| {} | {} | {} | {:.0f} | {:.5f} % | {:.5f} % | {} | {:.2f} % | {:.2f} % |\n", platform, graph, seeds,
               static_cast<double>(fetches) / of, sum / of * 100, worst * 100, far, sum_by_latency / of * 100,
               worst_by_latency * 100);
  }
};

/// Returns whether all makespans are near each other.
bool compare_all(size_t seeds) {
  const std::string file = std::filesystem::temp_directory_path() / fmt::format("simgrid-{}.xml", getpid());
  std::array<std::array<cell, graph_kinds.size()>, platform_kinds.size()> cells;
  constexpr size_t kinds = platform_kinds.size() * graph_kinds.size();
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const size_t kind = seed % kinds, p = kind / graph_kinds.size(), g = kind % graph_kinds.size();
    cells[p][g].add(compare(p, g, seed / kinds, file));
  }
  std::filesystem::remove(file);
  fmt::print(
      "| platform | graph | seeds | transfers | mean | worst | above 0.1 % | mean, weighted | worst, weighted |\n");
  fmt::print("|---|---|---|---|---|---|---|---|---|\n");
  size_t far = 0;
  for (size_t p = 0; p < cells.size(); ++p)
    for (size_t g = 0; g < cells[p].size(); ++g) {
      cells[p][g].print(platform_kinds[p], graph_kinds[g]);
      far += cells[p][g].far;
    }
  return far == 0;
}

} // namespace
} // namespace troupe::test

int main(int argc, char** argv) try {
  return troupe::test::compare_all(argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1000) ? 0 : 1;
} catch (const std::exception& e) {
  fmt::print(stderr, "{}\n", e.what());
  return 2;
}

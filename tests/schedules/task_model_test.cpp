// Made-up task graphs as models: named, and simulated like any other.
#include "schedules/task_model.hpp"

#include "support/catch.hpp"
#include "troupe/inspect.hpp"
#include "troupe/simulation.hpp"

#include <cmath>

using namespace troupe;
using Catch::Contains;

namespace {

/// CPUs that do an operation a second, with links that take no time.
simulation_options on_cpus(int count, placement_policy policy) {
  simulation_options how{
      .cluster_text = R"({"version": 1, "coordinator_s": 0, "hosts": [{"devices": [{"name": "c", "count": )" +
                      std::to_string(count) +
                      R"(, "kind": "cpu", "memory_bytes": 1000000000000, "profile": {"launch_s": 0, "chunk_s": 0, )"
                      R"("submit_s": 0, "float32": 1, "memory_bytes_per_s": 1e21}}]}]})",
      .profile_file = "/nowhere"};
  how.session.policy = policy;
  return how;
}

simulation_report simulated(const char* name, const simulation_options& how) {
  return simulate(built_model(to_model(read_task_graph(name))), {{"start", tensor(dtype::float32, {1})}}, how);
}

} // namespace

TEST_CASE("a name selects the graph that is made up", "[schedules]") {
  CHECK(names_task_graph("graph:lu"));
  CHECK_FALSE(names_task_graph("lu.onnx"));
  CHECK(read_task_graph("graph:fork-join,width=5,stages=3,work=7,bytes=8") == fork_join(5, 3, 7, 8));
  CHECK(read_task_graph("graph:cholesky,tiles=5,tile=64") == cholesky(5, 64));
  CHECK(read_task_graph("graph:lu,tile=64,tiles=4") == lu(4, 64));
  CHECK(read_task_graph("graph:fft,points=8,work=1e9,bytes=1e6") == fft(8, 1e9, 1e6));
  CHECK(read_task_graph("graph:stencil,width=6,steps=4,work=1,bytes=2") == stencil(6, 4, 1, 2));
  CHECK(read_task_graph("graph:montage,images=8,seed=3") == montage(8, 3));
  CHECK(read_task_graph("graph:layers,tasks=50,shape=2,out-degree=4,work=5,bytes=6,seed=9") ==
        layers({.tasks = 50, .shape = 2, .out_degree = 4}, 5, 6, 9));
  CHECK(read_task_graph("graph:cybershake,ruptures=2,variations=3,seed=4") == cybershake(2, 3, 4));
  CHECK(read_task_graph("graph:epigenomics,lanes=2,splits=3,seed=4") == epigenomics(2, 3, 4));
  CHECK(read_task_graph("graph:inspiral,groups=2,width=3,seed=4") == inspiral(2, 3, 4));
  CHECK(read_task_graph("graph:sipht,replicons=2,patsers=3,seed=4") == sipht(2, 3, 4));
  CHECK(read_task_graph("graph:layers").tasks.size() == 100);
}

TEST_CASE("a name of a made-up graph that says nothing known is refused", "[schedules][hostile]") {
  const auto refused = [](const char* name, const char* why) {
    INFO(name);
    CHECK_THROWS_WITH(read_task_graph(name), Contains(why));
  };
  refused("graph:", "there are: fork-join, cholesky");
  refused("graph:qr", "no made-up graph 'qr'");
  refused("graph:lu,size=3", "no parameter 'size'; there are: tiles, tile");
  refused("graph:lu,tiles", "'tiles' is not PARAMETER=VALUE");
  refused("graph:lu,tiles=", "'' is not a number");
  refused("graph:lu,tiles=nan", "'nan' is not a number");
  refused("graph:lu,tiles=2,tiles=3", "'tiles' is given twice");
  refused("graph:lu,tiles=0", "tiles is 0; it may be 1 to");
  refused("graph:lu,tiles=2.5", "must be a whole number");
  refused("graph:lu,tiles=1000000", "at most 1000000 are allowed");
  refused("graph:fft,points=6", "power of two");
}

TEST_CASE("a made-up graph is a model with a node for each task and a value for each edge", "[schedules]") {
  const task_graph made = read_task_graph("graph:montage,images=5");
  const graph g = to_model(made);
  REQUIRE(g.nodes.size() == made.tasks.size());
  size_t reads = 0;
  for (const node& n : g.nodes)
    reads += n.inputs.size();
  const size_t sources = 5; // the projections
  CHECK(reads == made.edges.size() + sources);
  CHECK(g.outputs.size() == 1); // the picture
  CHECK(g.nodes[0].attrs.integers("elements").at(0) == std::llround(made.edges[0].bytes / 4));
}

TEST_CASE("a simulation of a made-up graph takes its tasks' work", "[schedules][sim]") {
  // Three stages of one task, four side by side and one, a second each.
  const char* name = "graph:fork-join,width=4,stages=3,work=1,bytes=4";
  const simulation_report one = simulated(name, on_cpus(1, placement_policy::single));
  CHECK(one.makespan_ms == Approx(1000.0 * static_cast<double>(read_task_graph(name).tasks.size())));
  const simulation_report four = simulated(name, on_cpus(4, placement_policy::heft));
  CHECK(four.makespan_ms == Approx(four.path_bound_ms));
  CHECK(four.makespan_ms == Approx(9000)); // its longest path
}

TEST_CASE("every policy runs every made-up graph", "[schedules][sim]") {
  for (const char* name :
       {"graph:fork-join", "graph:cholesky,tiles=4", "graph:lu,tiles=4", "graph:fft,points=8", "graph:stencil",
        "graph:montage", "graph:layers", "graph:cybershake", "graph:epigenomics", "graph:inspiral", "graph:sipht"})
    for (const placement_policy policy :
         {placement_policy::heft, placement_policy::peft, placement_policy::cpop, placement_policy::min_min,
          placement_policy::dmda, placement_policy::dls, placement_policy::lookahead, placement_policy::iheft,
          placement_policy::hbmct, placement_policy::dcp, placement_policy::round_robin}) {
      INFO(name);
      const simulation_report r = simulated(name, on_cpus(3, policy));
      CHECK(r.failed == 0);
      CHECK(r.makespan_ms >= r.path_bound_ms * 0.999);
    }
}

TEST_CASE("tasks have names of their own, and graphs that cannot be are refused", "[schedules][hostile]") {
  task_graph g{.name = "g", .tasks = {{"a", 1, "first"}, {"b", 1}}, .edges = {{0, 1, 8}}};
  CHECK(task_name(g, 0) == "first");
  CHECK(task_name(g, 1) == "b_1");
  CHECK(to_model(g).nodes[0].name == "first");
  const auto refused = [](task_graph wrong, const char* why) {
    INFO(why);
    CHECK_THROWS_WITH(model_of(wrong), Contains("'g'") && Contains(why));
  };
  refused({"g", {}, {}}, "has no tasks");
  refused({"g", {{"a", -1}}, {}}, "task 0 of work -1");
  refused({"g", {{"a", std::nan("")}}, {}}, "task 0 of work nan");
  refused({"g", {{"a", 1, "b_1"}, {"b", 1}}, {}}, "two tasks 'b_1'");
  refused({"g", {{"a", 1}, {"b", 1}}, {{1, 0, 8}}}, "2 tasks and an edge from 1 to 0");
  refused({"g", {{"a", 1}, {"b", 1}}, {{0, 2, 8}}}, "2 tasks and an edge from 0 to 2");
  refused({"g", {{"a", 1}, {"b", 1}}, {{0, 1, 1e15}}}, "1000000000000000 bytes");
}

TEST_CASE("tasks take the seconds that are stated for each device", "[schedules][sim]") {
  const task_graph g{.name = "g", .tasks = {{"a", 1}, {"b", 1}, {"c", 1}}, .edges = {{0, 1, 4}, {0, 2, 4}}};
  simulation_options how = on_cpus(2, placement_policy::heft);
  how.task_seconds = {5, 1, 2, 7, 9, 3}; // [task * 2 + device]
  how.trace = true;
  const simulation_report r = simulate(model_of(g), {}, how);
  CHECK(r.makespan_ms == Approx(4000).epsilon(1e-3)); // a and c on the second, b on the first
  std::vector<std::pair<std::string, std::string>> where;
  for (const traced_work& w : work_of(*r.trace))
    where.emplace_back(w.name, w.device);
  CHECK(where == std::vector<std::pair<std::string, std::string>>{{"b_1", "c:0"}, {"a_0", "c:1"}, {"c_2", "c:1"}});
  how.task_seconds.pop_back();
  CHECK_THROWS_WITH(simulate(model_of(g), {}, how), Contains("5 task_seconds are not those of 3 tasks on 2 devices"));
  how.task_seconds.push_back(-1);
  CHECK_THROWS_WITH(simulate(model_of(g), {}, how), Contains("cannot take -1 seconds"));
}

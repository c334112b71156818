// Made-up traces of plans for made-up operators: the times of the nodes follow exactly.
#include "measure/measure_nodes.hpp"

#include "cost/cost_model.hpp"
#include "measure/operator_table.hpp"
#include "plan/estimate/predict.hpp"
#include "plan/graphs.hpp"
#include "support/catch.hpp"

#include <numeric>

using namespace troupe;
using namespace troupe::testing;

namespace {

/// A GPU whose barriers take a second and whose launches take half of one; nothing else takes time.
std::vector<device_info> one_gpu() {
  std::vector<device_info> devices = gpus(1);
  devices[0].profile = {.memory_bytes_per_s = 1e18, .launch_s = 0.5, .barrier_s = 1, .chunk_s = 0};
  return devices;
}

/// A chain of nodes of these lengths.
std::shared_ptr<const graph> chain(const std::vector<int64_t>& lengths) {
  graph_builder b;
  value_id v = b.input({7});
  for (int64_t n : lengths)
    v = b.node(plain_op, {v}, {n});
  return b.done({v});
}

device_timing timing(device_timing::work kind, int32_t id, double seconds, uint32_t queue = 0) {
  return {.kind = kind, .id = id, .queue = queue, .end_ns = static_cast<int64_t>(seconds * 1e9)};
}

/// A run of a plan of one chunk in which the nodes took these seconds.
run_trace trace_of(const std::shared_ptr<const plan>& p, const std::vector<double>& seconds) {
  chunk_trace c;
  for (size_t n = 0; n < seconds.size(); ++n)
    c.timings.push_back(timing(device_timing::work::node, static_cast<int32_t>(n), seconds[n]));
  run_trace trace;
  trace.source = p;
  trace.chunks.push_back(std::move(c));
  return trace;
}

/// The same, if nothing but the nodes took time.
traced_run run_of(const std::shared_ptr<const plan>& p, const std::vector<double>& seconds) {
  return {trace_of(p, seconds), std::accumulate(seconds.begin(), seconds.end(), 0.0)};
}

std::vector<shape> dims_of(const std::shared_ptr<const plan>& p) {
  return bind_segment(p, 0, {})->dims;
}

std::vector<double> seconds_of(const measured_nodes& nodes) {
  std::vector<double> all;
  for (const auto& [key, seconds] : nodes.nodes)
    all.push_back(seconds);
  return all;
}

} // namespace

TEST_CASE("nodes share the time of an untraced run, and predictions then give the same", "[measure][cost][A14]") {
  const auto g = chain({10, 20, 30});
  std::vector<device_info> devices = one_gpu();
  const auto p = make_plan(g, devices, {});
  const std::vector<shape> dims = dims_of(p);
  REQUIRE(predict(*p, dims).busy_s.at(0) == Approx(3 * 0.5 + 2));
  // 12 s untraced, of which two barriers take 2: the nodes that were traced as 20 s took 10.
  const std::vector<traced_run> runs{run_of(p, {4, 6, 10})};
  const measured_nodes nodes = measure_nodes({runs, dims, 12}, "vulkan:0");
  CHECK(seconds_of(nodes) == std::vector<double>{2, 3, 5});
  CHECK(nodes.operators.at("test.plain").measured_s == Approx(10));
  CHECK(nodes.operators.at("test.plain").roofline_s == Approx(1.5));

  devices[0].profile.measured = std::make_shared<const node_times>(nodes);
  const auto again = make_plan(g, devices, {});
  CHECK(predict(*again, dims).busy_s.at(0) == Approx(12));
  CHECK_FALSE(again->key == p->key);
  const auto busy_of = [&](int64_t rows) {
    const auto other = make_plan(chain({rows}), devices, {});
    return predict(*other, dims_of(other)).busy_s.at(0);
  };
  CHECK(busy_of(40) == Approx(5)); // by the roofline, which is a launch here, from the nearest number of rows
  CHECK(busy_of(25) == Approx(4)); // between its neighbours
}

TEST_CASE("a node's time is the median of its runs, equal nodes' the mean", "[measure][cost][A14]") {
  const auto p = make_plan(chain({7, 7, 9}), one_gpu(), {});
  const std::vector<traced_run> runs{run_of(p, {1, 3, 5}), run_of(p, {99, 3, 5}), run_of(p, {1, 3, 0.5})};
  const measured_nodes nodes = measure_nodes({runs, dims_of(p), 9 + 2}, "vulkan:0");
  CHECK(seconds_of(nodes) == std::vector<double>{2, 5});
  CHECK(nodes.operators.at("test.plain").measured_s == Approx(9));
  CHECK(nodes.operators.at("test.plain").roofline_s == Approx(1.5));
}

TEST_CASE("copies count if they hold the work up, on the device that was asked about", "[measure][cost][A14]") {
  const auto p = make_plan(chain({10, 20}), one_gpu(), {});
  std::vector<traced_run> runs{run_of(p, {4, 4}), run_of(p, {4, 4}), run_of(p, {4, 4})};
  for (traced_run& run : runs) {
    run.busy_s += 3;
    run.trace.chunks[0].timings.push_back(timing(device_timing::work::upload, 0, 3));
    run.trace.chunks[0].timings.push_back(timing(device_timing::work::download, 2, 100, 1)); // on another queue
  }
  const auto measured = [&](double busy_s) {
    return seconds_of(measure_nodes({runs, dims_of(p), busy_s}, "vulkan:0"));
  };
  CHECK(measured(12) == std::vector<double>{4, 4});
  runs[0].trace.chunks[0].timings.push_back(timing(device_timing::work::upload, 0, 50)); // before the device's own time
  runs[1].busy_s += 50;                                                                  // neither copies nor nodes
  CHECK(measured(12) == std::vector<double>{4, 4});
  // Copies and barriers that seem to take longer than all leave the nodes a tenth.
  CHECK(measured(2) == std::vector<double>{0.1, 0.1});
  CHECK(measure_nodes({runs, dims_of(p), 12}, "vulkan:1").empty());
  CHECK(measure_nodes({{}, dims_of(p), 12}, "vulkan:0").empty());
}

TEST_CASE("iterations of a body count as often as they ran", "[measure][cost][A14]") {
  const auto p = make_plan(chain({10}), one_gpu(), {}), body = make_plan(chain({20}), one_gpu(), {});
  traced_run run = run_of(p, {2});
  for (double s : {1.0, 1.0, 7.0})
    run.trace.bodies.push_back(trace_of(body, {s}));
  const measured_nodes nodes = measure_nodes({std::span(&run, 1), dims_of(p), 10}, "vulkan:0");
  std::vector<double> seconds = seconds_of(nodes); // of plans in no order
  std::sort(seconds.begin(), seconds.end());
  CHECK(seconds == std::vector<double>{2, 4}); // 5 s traced, of which 3 in the body
}

TEST_CASE("views are not work", "[measure][cost][A14]") {
  graph_builder b;
  const value_id v = b.node(view_op, {b.node(plain_op, {b.input({7})}, {4})}, {2, 2});
  const auto p = make_plan(b.done({b.node(plain_op, {v}, {2, 2})}), one_gpu(), {});
  const std::vector<traced_run> runs{run_of(p, {1, 5, 1})};
  CHECK(measure_nodes({runs, dims_of(p), 10}, "vulkan:0").nodes.size() == 2);
}

TEST_CASE("seconds of a run: of a device, of its nodes", "[measure][A14]") {
  const run_stats stats{.busy_ms = {{"cpu", 5}, {"vulkan:0", 250}}};
  CHECK(busy_seconds(stats, "vulkan:0") == Approx(0.25));
  CHECK(busy_seconds(stats, "vulkan:1") == 0);
  run_trace trace = trace_of(make_plan(chain({10, 20}), one_gpu(), {}), {1.5, 2});
  trace.chunks[0].timings.push_back(timing(device_timing::work::upload, 0, 7));
  CHECK(node_seconds(trace) == Approx(3.5));
}

TEST_CASE("devices that are alike are measured once, under the name that opens one", "[measure][A14]") {
  std::vector<device_info> devices = gpus(3);
  for (size_t d = 0; d < devices.size(); ++d)
    devices[d].description = d == 2 ? "another" : "one";
  devices[2].name = "vulkan:0#1";
  devices.push_back({.name = "cpu", .fallback = true});
  devices.push_back({.name = "null", .kind = device_kind::null});
  const std::vector<device_info> different = different_devices(devices);
  REQUIRE(different.size() == 2);
  CHECK(different[0].name == "vulkan:0");
  CHECK(different[1].name == "vulkan:0");
  CHECK(different[1].description == "another");
}

TEST_CASE("an operator's row sums up its nodes on a device", "[measure][A14]") {
  const auto p = make_plan(chain({10, 20}), one_gpu(), {});
  const operator_table table = table_of(trace_of(p, {1, 3}), dims_of(p));
  REQUIRE(table.size() == 1);
  const operator_row& row = table.at({"vulkan:0", "test.plain"});
  CHECK(row.nodes == 2);
  CHECK(row.measured_ms == Approx(4e3));
  CHECK(row.predicted_ms > 0);
}

// Where the time of a model goes on the CPU device: node by node, without actors.
//
//   bench_node_times CASE_DIR [RUNS] [TOP]
//
// CASE_DIR holds model.onnx and test_data_set_0/input_*.pb. Prints the time a run by operator and kernel, then the most
// expensive nodes. The clock is read around every node, so the sum is a little over what a run without it takes.
#include "base/elapsed.hpp"
#include "base/quantile.hpp"
#include "cpu/cpu_device.hpp"
#include "loader/onnx_loader.hpp"
#include "rewrite/rewrite.hpp"
#include "support/run_inline.hpp"
#include "troupe/tensor_file.hpp"

#include <algorithm>
#include <chrono>

using namespace troupe;

namespace {

struct node_time {
  std::string label, kernel;
  double ms = 0;
  int64_t calls = 0;
};

std::map<std::string, tensor> read_inputs(const graph& g, const std::filesystem::path& folder) {
  std::map<std::string, tensor> inputs;
  for (size_t i = 0; i < g.inputs.size(); ++i)
    inputs[g.values[g.inputs[i]].name] = read_pb(folder / fmt::format("input_{}.pb", i)).value;
  return inputs;
}

void print(std::vector<node_time> rows, int64_t runs, size_t top) {
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.ms > b.ms; });
  for (size_t i = 0; i < std::min(top, rows.size()); ++i)
    fmt::print("{:9.3f} ms {:5} calls  {:20} {}\n", rows[i].ms / static_cast<double>(runs), rows[i].calls / runs,
               rows[i].kernel, rows[i].label);
}

/// Sums up by operator and kernel, or by node.
std::vector<node_time> times_by(const std::vector<device_timing>& timings, const graph& g, bool node_names) {
  std::map<std::pair<std::string, std::string>, node_time> times;
  for (const device_timing& t : timings) {
    if (t.kind != device_timing::work::node)
      continue;
    const node& n = g.nodes[t.id];
    const std::string op = n.domain.empty() ? n.op_type : n.domain + "." + n.op_type;
    node_time& sum = times[{node_names ? op + " " + n.name : op, t.kernel}];
    sum.ms += t.seconds() * 1e3;
    ++sum.calls;
  }
  std::vector<node_time> rows;
  for (auto& [key, time] : times)
    rows.push_back({key.first, key.second, time.ms, time.calls});
  return rows;
}

void profile(const std::filesystem::path& folder, int64_t runs, size_t top) {
  auto start = std::chrono::steady_clock::now();
  graph g = load_model(folder / "model.onnx");
  const double load_ms = milliseconds_since(start);
  const std::map<std::string, tensor> named = read_inputs(g, folder / "test_data_set_0");
  rewrite_options options;
  for (const std::string& name : host_inputs_of(g))
    options.constant_inputs[name] = named.at(name);
  start = std::chrono::steady_clock::now();
  const auto program = std::make_shared<const graph>(rewrite(std::move(g), options));
  const double rewrite_ms = milliseconds_since(start);
  const auto cpu = make_cpu_device("cpu");
  std::vector<tensor> inputs;
  for (value_id v : program->inputs)
    inputs.push_back(named.at(program->values[v].name));
  const auto planned = make_plan(program, {cpu->info()}, {}); // its program has reorders of its own
  inline_runner runner(planned, {cpu.get()});
  start = std::chrono::steady_clock::now();
  runner.run(inputs);
  const double first_ms = milliseconds_since(start);
  runner.run(inputs);
  std::vector<double> samples;
  std::vector<device_timing> timings;
  for (int64_t i = 0; i < runs; ++i) {
    start = std::chrono::steady_clock::now();
    runner.run(inputs, &timings);
    samples.push_back(milliseconds_since(start));
  }
  fmt::print(
      "load {:.1f} ms, rewrite {:.1f} ms, first run {:.1f} ms; run median {:.3f} ms, least {:.3f} ms, {} nodes\n",
      load_ms, rewrite_ms, first_ms, median(samples), quantile(samples, 0), planned->program->nodes.size());
  print(times_by(timings, *planned->program, false), runs, 40);
  fmt::print("\n");
  print(times_by(timings, *planned->program, true), runs, top);
}

} // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: bench_node_times CASE_DIR [RUNS] [TOP]\n");
    return 2;
  }
  try {
    profile(argv[1], argc > 2 ? std::max(1, std::atoi(argv[2])) : 20,
            argc > 3 ? static_cast<size_t>(std::max(0, std::atoi(argv[3]))) : 15);
  } catch (const std::exception& e) {
    fmt::print(stderr, "bench_node_times: {}\n", e.what());
    return 1;
  }
}

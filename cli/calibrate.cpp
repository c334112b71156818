// Each figure comes from small models that differ in one thing, so that what they have in common cancels out. Every time is
// the median of several runs behind a first one that compiles kernels.
#include "cli/calibrate.hpp"

#include "base/quantile.hpp"
#include "cli/command.hpp"
#include "plan/show/print.hpp"
#include "trace/run_trace.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <unistd.h>

namespace troupe::cli {
namespace {

constexpr int repeats = 7;
/// A GPU raises its clocks under load, and lowers them without: each model runs so long before it is timed.
constexpr double gpu_warm_up_s = 0.1;
/// Elements of values that are moved the way that large ones are, but so small that the latency counts.
constexpr int64_t latency_elements = 20'000;

/// Models built node by node.
class probe_model {
public:
  probe_model() { g_.opsets[""] = 17; }

  value_id input(dtype type, shape dims) {
    const value_id v =
        g_.add_value({.name = fmt::format("in{}", g_.inputs.size()), .type = type, .dims = to_symbolic(dims)});
    g_.inputs.push_back(v);
    return v;
  }
  value_id integers(const std::vector<int64_t>& elements) {
    const std::string name = fmt::format("const{}", g_.values.size());
    return g_.add_constant(name, tensor::of<int64_t>({static_cast<int64_t>(elements.size())}, elements));
  }
  value_id call(const char* op, std::vector<value_id> inputs) {
    const std::string name = fmt::format("{}{}", op, g_.nodes.size());
    const value_id out = g_.add_value({.name = name});
    g_.add_node({.name = name, .op_type = op, .inputs = std::move(inputs), .outputs = {out}});
    return out;
  }
  void output(value_id v) { g_.outputs.push_back(v); }
  graph done() { return std::move(g_); }

private:
  graph g_;
};

/// What a model took, in seconds: medians.
struct probe_times {
  double wall_s = 0;  // from call to result
  double busy_s = 0;  // of the device
  double nodes_s = 0; // of all nodes, each timed for itself
};

double nodes_of(const run_trace& trace) {
  double ns = 0;
  for (const chunk_trace& c : trace.chunks)
    for (const device_timing& t : c.timings)
      if (t.kind == device_timing::work::node)
        ns += static_cast<double>(t.end_ns - t.begin_ns);
  return ns * 1e-9;
}

/// A file that lives as long as this object.
class temporary_file {
public:
  explicit temporary_file(const std::string& text) {
    const int file = mkstemp(path_.data());
    if (file < 0)
      fail(errc::io, "'{}' cannot be made", path_);
    close(file);
    std::ofstream out(path_, std::ios::binary);
    if (!out.write(text.data(), static_cast<std::streamsize>(text.size())).flush()) {
      std::filesystem::remove(path_);
      fail(errc::io, "'{}' cannot be written", path_);
    }
  }
  ~temporary_file() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  temporary_file(const temporary_file&) = delete;
  temporary_file& operator=(const temporary_file&) = delete;

  const std::string& path() const { return path_; }

private:
  std::string path_ = (std::filesystem::temp_directory_path() / "troupe-plan-XXXXXX").string();
};

/// Returns a saved plan of one chunk cut into `count`.
std::string cut(const std::string& saved, size_t count) {
  nlohmann::json plan = nlohmann::json::parse(saved);
  const nlohmann::json whole = plan.at("chunks").at(0);
  const nlohmann::json& nodes = whole.at("nodes");
  plan["chunks"].clear();
  for (size_t i = 0; i < count; ++i) {
    const auto at = [&](size_t piece) {
      return nodes.begin() + static_cast<std::ptrdiff_t>(piece * nodes.size() / count);
    };
    plan["chunks"].push_back({{"device", whole.at("device")}, {"nodes", nlohmann::json(at(i), at(i + 1))}});
  }
  return plan.dump();
}

/// Where a model's inputs lie: in memory that GPUs reach directly, as values do that move between devices, or where a caller
/// may have them.
enum class input_place : uint8_t { reachable, anywhere };

/// Runs models on one device of an engine.
class prober {
public:
  prober(engine& devices, size_t index) : engine_(devices), info_(device_infos(devices)[index]) {}

  const device_info& info() const { return info_; }
  bool emulated() const { return info_.gpu && info_.transfers == transfer_path::mapped; }

  /// Times a model that runs wholly on the device, cut into `chunks` of equal length; nullopt where it cannot.
  std::optional<probe_times> time(graph model, size_t chunks = 1, input_place place = input_place::reachable) {
    try {
      const session s = engine_.load(model, {.pins = {{"*", info_.name}}, .fuse = false});
      if (chunks == 1)
        return time(s, place);
      const temporary_file plan(cut(to_json(*plan_of(s, complete_inputs(s.inputs(), {}, {}, 1)), nullptr), chunks));
      return time(engine_.load(std::move(model), {.plan_file = plan.path(), .fuse = false}), place);
    } catch (const error& e) {
      if (e.code() == errc::unsupported || e.code() == errc::out_of_memory)
        return std::nullopt;
      throw;
    }
  }

private:
  probe_times time(const session& s, input_place place) {
    named_tensors inputs = complete_inputs(s.inputs(), {}, {}, 1);
    for (auto& [name, t] : inputs)
      if (place == input_place::reachable) {
        tensor there = engine_.allocate(t.type(), t.dims());
        std::memcpy(there.mutable_data(), t.data(), static_cast<size_t>(t.bytes()));
        t = std::move(there);
      }
    warm_up(s, inputs, info_.gpu && !emulated() ? gpu_warm_up_s : 0);
    std::vector<double> wall, busy, nodes;
    for (int i = 0; i < repeats; ++i) {
      const run_result result = s.run(inputs);
      wall.push_back(result.stats.total_ms * 1e-3);
      for (const auto& [name, ms] : result.stats.busy_ms)
        if (name == info_.name)
          busy.push_back(ms * 1e-3);
      nodes.push_back(nodes_of(*s.run(inputs, {.trace = true}).trace));
    }
    return {median(wall), median(busy), median(nodes)};
  }

  engine& engine_;
  const device_info info_;
};

graph product(const char* op, dtype a, dtype b, int64_t n) {
  probe_model m;
  m.output(m.call(op, {m.input(a, {n, n}), m.input(b, {n, n})}));
  return m.done();
}

/// `width` chains of `length` Sigmoid each, from one input; tiny, so that only launches count.
graph chains(int width, int length, int64_t elements = 64) {
  probe_model m;
  const value_id x = m.input(dtype::float32, {elements});
  for (int i = 0; i < width; ++i) {
    value_id v = x;
    for (int j = 0; j < length; ++j)
      v = m.call("Sigmoid", {v});
    m.output(v);
  }
  return m.done();
}

/// Speed of the largest product that a type gets in reasonable time, operations a second.
std::optional<double> product_speed(prober& on, const char* op, dtype a, dtype b) {
  constexpr double long_enough_s = 4e-3;
  std::optional<double> best;
  for (int64_t n = 256; n <= 4096; n *= 2) {
    const auto t = on.time(product(op, a, b, n));
    if (!t || t->nodes_s <= 0)
      return best;
    const auto flops = 2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
    best = std::max(best.value_or(0), flops / t->nodes_s);
    if (t->nodes_s > long_enough_s)
      break;
  }
  return best;
}

/// Large enough to leave the caches, small enough to be quick.
int64_t large_elements(const prober& on) {
  return on.info().gpu && !on.emulated() ? 1 << 25 : 1 << 22;
}

double memory_speed(prober& on) {
  probe_model m;
  const int64_t n = large_elements(on);
  m.output(m.call("Add", {m.input(dtype::float32, {n}), m.input(dtype::float32, {n})}));
  const auto t = on.time(m.done());
  return t && t->nodes_s > 0 ? 12.0 * static_cast<double>(n) / t->nodes_s : 0;
}

using values = std::vector<std::pair<std::string, double>>;

void measure_launches(prober& on, values& out) {
  constexpr int width = 64;
  const auto busy = [&](int w, int length) {
    const auto t = on.time(chains(w, length));
    return t ? t->busy_s : 0;
  };
  const double step = std::max((busy(1, 192) - busy(1, 64)) / 128, 0.0); // a launch and a barrier
  if (on.info().host_memory) {
    out.emplace_back("launch_s", step);
  } else {
    // One wave more of `width` nodes: as many launches and one barrier.
    const double wave = std::max(busy(width, 3) - busy(width, 2), step);
    const double launch = std::clamp((wave - step) / (width - 1), 0.0, step);
    out.emplace_back("launch_s", launch);
    out.emplace_back("barrier_s", step - launch);
  }
  if (const auto t = on.time(chains(1, 1)))
    out.emplace_back("chunk_s", std::max(t->wall_s - t->busy_s, 0.0));
  constexpr int pieces = 16;
  const auto whole = on.time(chains(1, 4 * pieces)), cut = on.time(chains(1, 4 * pieces), pieces);
  if (whole && cut)
    out.emplace_back("submit_s", std::max(cut->wall_s - whole->wall_s, 0.0) / (pieces - 1));
}

/// One element of `elements` that were uploaded.
graph upload_model(int64_t elements) {
  probe_model m;
  m.output(m.call("Slice", {m.input(dtype::float32, {elements}), m.integers({0}), m.integers({1})}));
  return m.done();
}

/// `elements` made on the device from one.
graph download_model(int64_t elements) {
  probe_model m;
  m.output(m.call("Expand", {m.input(dtype::float32, {1}), m.integers({elements})}));
  return m.done();
}

/// Sum of `count` inputs of `latency_elements`.
graph many_uploads(int count) {
  probe_model m;
  std::vector<value_id> inputs;
  inputs.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i)
    inputs.push_back(m.input(dtype::float32, {latency_elements}));
  m.output(m.call("Sum", std::move(inputs)));
  return m.done();
}

graph many_downloads(int count) {
  return chains(count, 1, latency_elements);
}

/// What the host and the link take of a run, the nodes' own time aside.
double around_nodes(prober& on, graph model) {
  const auto t = on.time(std::move(model));
  return t ? t->wall_s - t->nodes_s : 0;
}

/// Returns what one value more costs, in seconds, from models with `few` and with `many` of them.
double per_value(prober& on, graph (*model)(int)) {
  constexpr int few = 2, many = 34;
  return (around_nodes(on, model(many)) - around_nodes(on, model(few))) / (many - few);
}

void measure_link(prober& on, const char* name, graph (*one)(int64_t), graph (*several)(int), values& out) {
  const int64_t elements = large_elements(on);
  const double extra = around_nodes(on, one(elements)) - around_nodes(on, one(64));
  if (extra <= 0)
    return;
  const double bytes_per_s = 4.0 * static_cast<double>(elements) / extra;
  out.emplace_back(fmt::format("{}.bytes_per_s", name), bytes_per_s);
  const double latency_s = per_value(on, several) - 4.0 * latency_elements / bytes_per_s;
  out.emplace_back(fmt::format("{}.latency_s", name), std::max(latency_s, 0.0));
}

/// How fast a caller's inputs get to memory that the device reads: what they cost more than inputs that are there.
void measure_inputs(prober& on, values& out) {
  const int64_t elements = large_elements(on) / 8;
  const auto there = on.time(upload_model(elements)),
             elsewhere = on.time(upload_model(elements), 1, input_place::anywhere);
  if (there && elsewhere && elsewhere->wall_s > there->wall_s)
    out.emplace_back("input_bytes_per_s", 4.0 * static_cast<double>(elements) / (elsewhere->wall_s - there->wall_s));
}

} // namespace

measured_profile calibrate(engine& devices, size_t index, const std::function<void(double, double)>& progress) {
  prober on(devices, index);
  measured_profile m{key_of(on.info()), {}};
  const double steps = on.info().host_memory ? 7 : 10;
  double done = 0;
  const auto step = [&] { progress(++done, steps); };
  const auto add = [&](arithmetic kind, std::optional<double> speed) {
    if (speed)
      m.values.emplace_back(to_string(kind), *speed);
    step();
  };
  add(arithmetic::float64, product_speed(on, "MatMul", dtype::float64, dtype::float64));
  add(arithmetic::float32, product_speed(on, "MatMul", dtype::float32, dtype::float32));
  add(arithmetic::float16, product_speed(on, "MatMul", dtype::float16, dtype::float16));
  add(arithmetic::bfloat16, product_speed(on, "MatMul", dtype::bfloat16, dtype::bfloat16));
  add(arithmetic::int8, product_speed(on, "MatMulInteger", dtype::uint8, dtype::int8));
  if (const double speed = memory_speed(on); speed > 0)
    m.values.emplace_back("memory_bytes_per_s", speed);
  step();
  measure_launches(on, m.values);
  step();
  if (!on.info().host_memory) {
    measure_link(on, "up", upload_model, many_uploads, m.values);
    step();
    measure_link(on, "down", download_model, many_downloads, m.values);
    step();
    measure_inputs(on, m.values);
    step();
  }
  return m;
}

} // namespace troupe::cli

#include "measure/calibration.hpp"

#include "base/quantile.hpp"
#include "plan/estimate/lanes.hpp"
#include "troupe/model_builder.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace troupe {
namespace {

/// Elements of values that are moved the way that large ones are, but so small that the latency counts.
constexpr int64_t latency_elements = 20'000;

/// The device that is measured.
class prober {
public:
  prober(const device_info& device, const probe_runner& run) : device_(device), run_(run) {}

  bool host_memory() const { return device_.host_memory; }

  /// Large enough to leave the caches, small enough to be quick.
  int64_t large_elements() const { return device_.gpu && !is_emulated(device_) ? 1 << 25 : 1 << 22; }

  /// Returns the medians of a probe's times; nullopt if the device cannot run it.
  std::optional<probe_times> time(const probe& p) const {
    const std::vector<probe_times> runs = run_(p);
    if (runs.empty())
      return std::nullopt;
    const auto middle = [&](double probe_times::*which) {
      std::vector<double> samples;
      samples.reserve(runs.size());
      for (const probe_times& t : runs)
        samples.push_back(t.*which);
      return median(std::move(samples));
    };
    return probe_times{middle(&probe_times::wall_s), middle(&probe_times::busy_s), middle(&probe_times::nodes_s)};
  }

private:
  const device_info& device_;
  const probe_runner& run_;
};

tensor integers(int64_t element) {
  return tensor::of<int64_t>({1}, std::vector<int64_t>{element});
}

/// Returns the model whose outputs are these.
built_model finish(model_builder& m, const std::vector<variable>& outputs) {
  for (const variable& v : outputs)
    m.output("", v);
  return m.build();
}

built_model product(const char* op, dtype a, dtype b, int64_t n) {
  model_builder m;
  return finish(m, {m.call(op, {m.input("a", a, {n, n}), m.input("b", b, {n, n})})});
}

/// `width` chains of `length` Sigmoid each, from one input; tiny, so that only launches count.
built_model chains(int width, int length, int64_t elements = 64) {
  model_builder m;
  const variable x = m.input("x", dtype::float32, {elements});
  std::vector<variable> ends(static_cast<size_t>(width), x);
  for (variable& v : ends)
    for (int i = 0; i < length; ++i)
      v = m.sigmoid(v);
  return finish(m, ends);
}

/// Speed of the largest product that a type gets in reasonable time, operations a second.
std::optional<double> product_speed(const prober& on, const char* op, dtype a, dtype b) {
  constexpr double long_enough_s = 4e-3;
  std::optional<double> best;
  for (int64_t n = 256; n <= 4096; n *= 2) {
    const auto t = on.time({product(op, a, b, n)});
    if (!t || t->nodes_s <= 0)
      return best;
    const auto flops = 2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
    best = std::max(best.value_or(0), flops / t->nodes_s);
    if (t->nodes_s > long_enough_s)
      break;
  }
  return best;
}

double memory_speed(const prober& on) {
  model_builder m;
  const int64_t n = on.large_elements();
  const auto t = on.time({finish(m, {m.add(m.input("a", dtype::float32, {n}), m.input("b", dtype::float32, {n}))})});
  return t && t->nodes_s > 0 ? 12.0 * static_cast<double>(n) / t->nodes_s : 0;
}

using values = std::vector<std::pair<std::string, double>>;

void measure_launches(const prober& on, values& out) {
  constexpr int width = 64;
  const auto busy = [&](int w, int length) {
    const auto t = on.time({chains(w, length)});
    return t ? t->busy_s : 0;
  };
  const double step = std::max((busy(1, 192) - busy(1, 64)) / 128, 0.0); // a launch and a barrier
  if (on.host_memory()) {
    out.emplace_back("launch_s", step);
  } else {
    // One wave more of `width` nodes: as many launches and one barrier.
    const double wave = std::max(busy(width, 3) - busy(width, 2), step);
    const double launch = std::clamp((wave - step) / (width - 1), 0.0, step);
    out.emplace_back("launch_s", launch);
    out.emplace_back("barrier_s", step - launch);
  }
  if (const auto t = on.time({chains(1, 1)}))
    out.emplace_back("chunk_s", std::max(t->wall_s - t->busy_s, 0.0));
  constexpr int pieces = 16;
  const auto whole = on.time({chains(1, 4 * pieces)}), cut = on.time({chains(1, 4 * pieces), pieces});
  if (whole && cut)
    out.emplace_back("submit_s", std::max(cut->wall_s - whole->wall_s, 0.0) / (pieces - 1));
}

/// What a run takes longer after a pause: threads that send, compute and wait sleep. From a product that all threads of
/// a CPU take part in.
void measure_wake(const prober& on, values& out) {
  constexpr int64_t elements = 512;
  constexpr double pause_s = 2e-3;
  const auto product_after = [&](double pause) {
    return on.time({product("MatMul", dtype::float32, dtype::float32, elements), 1, true, pause});
  };
  const auto hot = product_after(0), rested = product_after(pause_s);
  if (hot && rested)
    out.emplace_back("wake_s", std::max(rested->wall_s - hot->wall_s, 0.0));
}

/// One element of `elements` that were uploaded.
built_model upload_model(int64_t elements) {
  model_builder m;
  return finish(m, {m.call("Slice", {m.input("x", dtype::float32, {elements}), integers(0), integers(1)})});
}

/// `elements` made on the device from one.
built_model download_model(int64_t elements) {
  model_builder m;
  return finish(m, {m.call("Expand", {m.input("x", dtype::float32, {1}), integers(elements)})});
}

/// Sum of `count` inputs of `latency_elements`.
built_model many_uploads(int count) {
  model_builder m;
  std::vector<argument> inputs;
  inputs.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i)
    inputs.emplace_back(m.input(fmt::format("x{}", i), dtype::float32, {latency_elements}));
  return finish(m, {m.call("Sum", inputs)});
}

built_model many_downloads(int count) {
  return chains(count, 1, latency_elements);
}

/// What the host and the link take of a run, the nodes' own time aside.
double around_nodes(const prober& on, built_model model) {
  const auto t = on.time({std::move(model)});
  return t ? t->wall_s - t->nodes_s : 0;
}

/// Returns what one value more costs, in seconds, from models with `few` and with `many` of them.
double per_value(const prober& on, built_model (*model)(int)) {
  constexpr int few = 2, many = 34;
  return (around_nodes(on, model(many)) - around_nodes(on, model(few))) / (many - few);
}

void measure_link(const prober& on, const char* name, built_model (*one)(int64_t), built_model (*several)(int),
                  values& out) {
  const int64_t elements = on.large_elements();
  const double extra = around_nodes(on, one(elements)) - around_nodes(on, one(64));
  if (extra <= 0)
    return;
  const double bytes_per_s = 4.0 * static_cast<double>(elements) / extra;
  out.emplace_back(fmt::format("{}.bytes_per_s", name), bytes_per_s);
  const double latency_s = per_value(on, several) - 4.0 * latency_elements / bytes_per_s;
  out.emplace_back(fmt::format("{}.latency_s", name), std::max(latency_s, 0.0));
}

/// How fast a caller's inputs get to memory that the device reads: what they cost more than inputs that are there.
void measure_inputs(const prober& on, values& out) {
  const int64_t elements = on.large_elements() / 8;
  const auto there = on.time({upload_model(elements)}), elsewhere = on.time({upload_model(elements), 1, false});
  if (there && elsewhere && elsewhere->wall_s > there->wall_s)
    out.emplace_back("input_bytes_per_s", 4.0 * static_cast<double>(elements) / (elsewhere->wall_s - there->wall_s));
}

} // namespace

double probe_warm_up_s(const device_info& device) {
  return device.gpu && !is_emulated(device) ? 0.1 : 0;
}

measured_profile calibrate(const device_info& device, const probe_runner& run,
                           const std::function<void(double, double)>& progress) {
  const prober on(device, run);
  measured_profile m{key_of(device), {}};
  const double steps = device.host_memory ? 7 : 10;
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
  measure_wake(on, m.values);
  step();
  if (!device.host_memory) {
    measure_link(on, "up", upload_model, many_uploads, m.values);
    step();
    measure_link(on, "down", download_model, many_downloads, m.values);
    step();
    measure_inputs(on, m.values);
    step();
  }
  return m;
}

std::string cut_plan(const std::string& saved, size_t count) {
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

} // namespace troupe

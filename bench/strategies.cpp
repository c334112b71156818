// Compares strategies with one device, in turns, with inputs and outputs in the host's memory: what part of the ideal
// they reach.
//
// Usage: bench_strategies MODEL ROWS fp32|fp16 DEVICE…
//
// MODEL: an ONNX file whose batch is symbolic; ROWS: of a piece on one device.
//
// T1 is the rows a second of the first device with requests of ROWS rows, two in flight. Data-parallel: requests of
// ROWS for each device, two in flight, ideal N·T1. Pipeline: one request of 16 micro-batches of ROWS, ideal
// N·16/(16+N−1)·T1. Work-stealing: one request of 64 micro-batches of ROWS, the last device at half its speed
// (half_speed.hpp); ideal: what the devices reach one by one, added.
#include "bench/half_speed.hpp"
#include "bench/models.hpp"
#include "vulkan/vulkan_device.hpp"

using namespace troupe;
using namespace troupe::bench;

namespace {

constexpr int64_t sequence = 128; // of any second symbolic dim
constexpr int rounds = 7;

using allocator = std::function<tensor(dtype, shape)>;

named_tensors inputs_for(const allocator& make, const session& s, int64_t rows) {
  return ramp_inputs(s, make, [rows](const symbolic_shape& is) {
    shape dims;
    for (const dim& d : is)
      dims.push_back(d.is_constant() ? d.constant() : dims.empty() ? rows : sequence);
    return dims;
  });
}

/// Rows a second of requests of which `in_flight` are under way.
double rate(const session& s, const named_tensors& inputs, int64_t rows, int requests, int in_flight) {
  std::deque<std::future<run_result>> runs;
  const auto start = clock_type::now();
  for (int i = 0; i < requests; ++i) {
    runs.push_back(s.submit(inputs));
    if (std::ssize(runs) == in_flight) {
      runs.front().get();
      runs.pop_front();
    }
  }
  for (auto& each : runs)
    each.get();
  return static_cast<double>(rows * requests) / milliseconds_since(start) * 1e3;
}

/// One thing that is measured: a session and its requests.
struct contender {
  std::string name;
  session model;
  named_tensors inputs;
  int64_t rows;
  int requests, in_flight;
  std::vector<double> rates = {};

  void measure() { rates.push_back(rate(model, inputs, rows, requests, in_flight)); }
  double rows_per_second() const { return median(rates); }
};

struct job {
  std::string file;
  int64_t rows;
  session_options how;

  session_options with(strategy s, const stream_options& stream, std::vector<std::string> devices = {}) const {
    session_options o = how;
    o.strategy = s;
    o.stream = stream;
    o.devices = std::move(devices);
    return o;
  }
};

void measure(std::vector<contender>& all) {
  for (contender& c : all) // plans, kernels, clocks
    rate(c.model, c.inputs, c.rows, std::max(3, c.requests / 4), c.in_flight);
  for (int round = 0; round < rounds; ++round)
    for (contender& c : all)
      c.measure();
}

/// Rows by replica, and in how many pieces.
std::string shares_of(const session& s) {
  std::string text;
  for (const replica_stats& r : s.queue_stats().replicas)
    text += fmt::format(" {}/{}", r.rows, r.pieces);
  return text;
}

void tell(const contender& c, double ideal) {
  fmt::print("{:24} {:10.1f} rows/s, ideal {:10.1f}: {:.3f}; rows/pieces{}, {} plans bound\n", c.name,
             c.rows_per_second(), ideal, c.rows_per_second() / ideal, shares_of(c.model),
             c.model.stats().bound_plans.misses);
}

void bench_equal(const job& j, const std::vector<std::string>& devices) {
  engine e({.devices = devices});
  const auto n = static_cast<int64_t>(devices.size());
  const std::vector<std::string> first{e.devices().front().name};
  const auto make = [&](dtype type, const shape& dims) { return e.allocate(type, dims); };
  const auto load = [&](const session_options& o) { return e.load(j.file, o); };
  const session one = load(j.with(strategy::none, {}, first));
  constexpr int64_t micro = 16;
  std::vector<contender> all;
  all.push_back({"one device", one, inputs_for(make, one, j.rows), j.rows, 40, 2});
  all.push_back({"data-parallel", load(j.with(strategy::data_parallel, {})), inputs_for(make, one, j.rows * n),
                 j.rows * n, 40, 2});
  const named_tensors sixteen = inputs_for(make, one, j.rows * micro);
  all.push_back({"data-parallel, equal", load(j.with(strategy::data_parallel, {.shares = share_rule::equal})),
                 inputs_for(make, one, j.rows * n), j.rows * n, 40, 2});
  all.push_back({"pipeline, fill-drain",
                 load(j.with(strategy::pipeline, {.micro_batch = j.rows, .schedule = pipeline_schedule::fill_drain})),
                 sixteen, j.rows * micro, 5, 1});
  all.push_back({"pipeline, 1 in 1 out", load(j.with(strategy::pipeline, {.micro_batch = j.rows})), sixteen,
                 j.rows * micro, 5, 1});
  all.push_back({"work-stealing, 64", load(j.with(strategy::work_stealing, {.micro_batch = j.rows})),
                 inputs_for(make, one, j.rows * 64), j.rows * 64, 2, 1});
  measure(all);
  const double t1 = all[0].rows_per_second(), equal = static_cast<double>(n) * t1;
  tell(all[0], t1);
  tell(all[1], equal);
  tell(all[2], equal);
  const double filled = equal * micro / static_cast<double>(micro + n - 1);
  tell(all[3], filled);
  tell(all[4], filled);
  tell(all[5], equal);
}

void bench_unequal(const job& j, size_t gpus) {
  const auto instance = std::make_shared<const vulkan::instance>();
  const auto pool = std::make_shared<host_block_pool>();
  std::vector<device_factory> makes;
  for (size_t i = 0; i < gpus; ++i)
    makes.push_back([instance, pool, i, last = i + 1 == gpus]() -> std::unique_ptr<device> {
      auto gpu = vulkan::make_vulkan_device(instance, i, fmt::format("gpu{}", i), {.blocks = pool});
      if (last)
        return std::make_unique<half_speed>(std::move(gpu));
      return gpu;
    });
  engine e = make_engine({.devices = {}}, {.custom_devices = std::move(makes)});
  std::vector<contender> all;
  const session any = e.load(j.file, j.with(strategy::none, {}));
  const auto make = [&](dtype type, shape dims) { return make_host_tensor(*pool, type, std::move(dims)); };
  const named_tensors few = inputs_for(make, any, j.rows), many = inputs_for(make, any, j.rows * 64);
  for (const device_summary& d : e.devices())
    all.push_back({d.name, e.load(j.file, j.with(strategy::none, {}, {d.name})), few, j.rows, 40, 2});
  all.push_back({"work-stealing, 64", e.load(j.file, j.with(strategy::work_stealing, {.micro_batch = j.rows})), many,
                 j.rows * 64, 2, 1});
  measure(all);
  double together = 0;
  for (size_t i = 0; i < gpus; ++i) {
    together += all[i].rows_per_second();
    tell(all[i], all[0].rows_per_second());
  }
  tell(all.back(), together);
}

} // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    fmt::print(stderr, "usage: bench_strategies MODEL ROWS fp32|fp16 DEVICE…\n");
    return 2;
  }
  const job j{argv[1],
              std::strtoll(argv[2], nullptr, 10),
              {.precision = std::string_view(argv[3]) == "fp16" ? precision::fp16 : precision::fp32}};
  const std::vector<std::string> devices(argv + 4, argv + argc);
  fmt::print("{}, {} rows, {}, {} devices: medians of {}\n", j.file, j.rows, argv[3], devices.size(), rounds);
  bench_equal(j, devices);
  if (std::all_of(devices.begin(), devices.end(), [](const std::string& d) { return d.starts_with("vulkan:"); }))
    bench_unequal(j, devices.size());
}

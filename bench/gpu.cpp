// What a GPU costs and gives through the whole engine: latency of one small run, slope of a chain, transfers, matrix
// products, attention.
//
// Usage: bench_gpu [device]      default vulkan:0
#include "bench/models.hpp"
#include "trace/run_trace.hpp"
#include "vulkan/vulkan_device.hpp"

#include <deque>

using namespace troupe;
using namespace troupe::bench;

namespace {

void bench_latency(engine& e) {
  const auto chain = [&](int length) {
    model_builder m;
    variable v = m.input("x", dtype::float32, {1024});
    const variable one = m.constant(tensor::scalar(1.f));
    for (int i = 0; i < length; ++i)
      v = m.call("Add", {v, one});
    return e.load(finish(m, {v}), {.fuse = false});
  };
  const named_tensors inputs{{"x", filled(e, dtype::float32, {1024})}};
  const double single = time_runs(chain(1), inputs, 500);
  const double hundred = time_runs(chain(100), inputs, 200), thousand = time_runs(chain(1000), inputs, 100);
  fmt::print("one Add, call to result      {:8.1f} us p50\n", single);
  fmt::print("chained Adds, fusion off     {:8.2f} us an op\n", (thousand - hundred) / 900);
}

/// Prints the cost of a run beside its kernels if its input or output is as large as an image.
void bench_image(engine& e) {
  const shape dims{1, 3, 224, 224};
  model_builder m;
  const session model = e.load(finish(m, {m.call("Neg", {m.input("x", dtype::float32, to_symbolic(dims))})}));
  tensor ordinary(dtype::float32, dims);
  std::memset(ordinary.mutable_data(), 0, static_cast<size_t>(ordinary.bytes()));
  fmt::print("588 KiB in and out           {:8.1f} us, {:.1f} us from engine::allocate\n",
             time_runs(model, {{"x", ordinary}}, 200), time_runs(model, {{"x", filled(e, dtype::float32, dims)}}, 200));
}

void bench_transfers(engine& e) {
  constexpr int64_t count = int64_t{1} << 28; // 1 GiB of floats
  {
    model_builder m;
    const variable x = m.input("x", dtype::float32, {count});
    const int64_t zero[] = {0}, ten[] = {10};
    const variable begin = m.constant(tensor::of<int64_t>({1}, zero)), end = m.constant(tensor::of<int64_t>({1}, ten));
    const session model = e.load(finish(m, {m.call("Slice", {x, begin, end})}));
    const double us = time_runs(model, {{"x", filled(e, dtype::float32, {count})}}, 7);
    fmt::print("upload of 1 GiB              {:8.1f} GB/s\n", 4e-3 * static_cast<double>(count) / us);
  }
  model_builder m;
  const variable x = m.input("x", dtype::float32, {1});
  const int64_t dims[] = {count};
  const session model = e.load(finish(m, {m.call("Expand", {x, m.constant(tensor::of<int64_t>({1}, dims))})}));
  const double us = time_runs(model, {{"x", filled(e, dtype::float32, {1})}}, 7);
  fmt::print("download of 1 GiB            {:8.1f} GB/s\n", 4e-3 * static_cast<double>(count) / us);
}

/// The first GPU, with and without separate queues for copies.
class queue_choice {
public:
  queue_choice(const std::shared_ptr<const vulkan::instance>& gpus, vulkan::lane_queues queues)
      : engine_(make_engine({.devices = {}}, {.custom_devices = {[=, blocks = blocks_] {
                                                return vulkan::make_vulkan_device(gpus, 0, "vulkan:0",
                                                                                  {.blocks = blocks, .queues = queues});
                                              }}})) {}

  session load(const built_model& model) { return engine_.load(model); }
  /// Returns a tensor of zeros in memory that the GPU reaches directly.
  tensor matrix(int64_t n) const {
    tensor t = make_host_tensor(*blocks_, dtype::float32, {n, n});
    std::memset(t.mutable_data(), 0, static_cast<size_t>(t.bytes()));
    return t;
  }

private:
  const std::shared_ptr<host_block_pool> blocks_ = std::make_shared<host_block_pool>();
  engine engine_;
};

constexpr int64_t overlap_dim = 4096; // 64 MiB a matrix, about 5 ms a product on a large GPU

/// Runs that are in flight together; their copies and their work take about as long.
double time_in_flight(queue_choice gpu) {
  constexpr int runs = 40, in_flight = 4;
  model_builder m;
  const variable x = m.input("x", dtype::float32, {overlap_dim, overlap_dim});
  const session model = gpu.load(finish(m, {m.call("MatMul", {x, x})}));
  const tensor in = gpu.matrix(overlap_dim);
  std::vector<double> samples;
  for (int sample = -1; sample < 5; ++sample) {
    std::deque<std::future<run_result>> pending;
    const auto start = clock_type::now();
    for (int i = 0; i < runs; ++i) {
      pending.push_back(model.run_async({{"x", in}}));
      if (pending.size() == in_flight) {
        pending.front().get();
        pending.pop_front();
      }
    }
    for (auto& each : pending)
      each.get();
    if (sample >= 0)
      samples.push_back(milliseconds_since(start) / runs);
  }
  return median(samples);
}

/// One run at a time, of four products: each reads an input of its own and makes an output.
double time_alone(queue_choice gpu) {
  model_builder m;
  const symbolic_shape dims{overlap_dim, overlap_dim};
  variable v = m.input("x", dtype::float32, dims);
  named_tensors inputs{{"x", gpu.matrix(overlap_dim)}};
  std::vector<variable> outputs;
  for (int i = 0; i < 4; ++i) {
    const std::string name = fmt::format("a{}", i);
    v = m.call("MatMul", {v, m.input(name, dtype::float32, dims)});
    inputs[name] = gpu.matrix(overlap_dim);
    outputs.push_back(v);
  }
  return time_runs(gpu.load(finish(m, outputs)), inputs, 20) * 1e-3;
}

/// Prints the gain of separate queues for copies.
void bench_overlap(const std::shared_ptr<const vulkan::instance>& gpus) {
  const auto compare = [&](const char* what, double (*time)(queue_choice)) {
    const double one = time({gpus, vulkan::lane_queues::one}), several = time({gpus, vulkan::lane_queues::own});
    fmt::print("{}: {:.2f} ms a run on one queue, {:.2f} with queues for copies\n", what, one, several);
  };
  compare("4 runs in flight, 64 MiB in and out, a product", time_in_flight);
  compare("a run of 4 products, 64 MiB in and out for each", time_alone);
}

/// Runs a model of equal nodes and prints the operations a second of their kernel, after half a second of it: while a
/// kernel is compiled the GPU's clocks fall.
void bench_kernel(const std::string& what, const session& model, const named_tensors& inputs, double flops) {
  constexpr std::chrono::milliseconds warm_up{500};
  std::vector<double> ns;
  std::string kernel;
  model.run(inputs);
  for (const auto warm = clock_type::now() + warm_up; clock_type::now() < warm;)
    model.run(inputs);
  for (int i = 0; i < 12; ++i) {
    const run_result result = model.run(inputs, {.trace = true});
    for (const auto& c : result.trace->chunks)
      for (const device_timing& t : c.timings)
        if (t.kind == device_timing::work::node && i >= 2) {
          ns.push_back(t.seconds() * 1e9);
          kernel = t.kernel;
        }
  }
  fmt::print("{:<42} {:8.1f} TFLOP/s, {:8.1f} us ({})\n", what, flops / median(ns) * 1e-3, median(ns) * 1e-3, kernel);
}

void bench_product(engine& e, dtype type, int64_t rows, int64_t columns, int64_t depth) {
  model_builder m;
  const variable a = m.input("a", type, {rows, depth}), b = m.input("b", type, {depth, columns});
  bench_kernel(fmt::format("{} product, {} x {} x {}", to_string(type), rows, columns, depth),
               e.load(finish(m, {m.call("MatMul", {a, b})})),
               {{"a", filled(e, type, {rows, depth})}, {"b", filled(e, type, {depth, columns})}},
               2.0 * static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(depth));
}

/// Ten in a row: the first ones meet cold code, as kernels of a model that has few of them do.
void bench_attention(engine& e, dtype type, int64_t heads, int64_t positions, int64_t width) {
  const shape dims{1, heads, positions, width};
  model_builder m;
  std::vector<std::variant<variable, tensor>> in;
  named_tensors inputs;
  for (const char* name : {"q", "k", "v"}) {
    in.emplace_back(m.input(name, type, to_symbolic(dims)));
    inputs[name] = filled(e, type, dims);
  }
  variable y = m.call("Attention", in);
  for (int i = 1; i < 10; ++i) {
    in[0] = y;
    y = m.call("Attention", in);
  }
  bench_kernel(fmt::format("{} attention, {} heads x {} x {}", to_string(type), heads, positions, width),
               e.load(finish(m, {y})), inputs,
               4.0 * static_cast<double>(heads * positions) * static_cast<double>(positions * width));
}

} // namespace

int main(int argc, char** argv) {
  try {
    engine e({.devices = {argc > 1 ? argv[1] : "vulkan:0"}, .kernels = kernel_time::now});
    fmt::print("{}\n", e.devices().at(0).description);
    bench_latency(e);
    bench_image(e);
    for (const dtype type : {dtype::float32, dtype::float16})
      for (const int64_t n : {1024, 4096})
        bench_product(e, type, n, n, n);
    for (const int64_t rows : {128, 197, 6304})
      bench_product(e, dtype::float16, rows, 3072, 768);
    for (const auto& [heads, positions] :
         {std::pair{192, 1024}, {192, 197}, {192, 128}, {12, 1024}, {12, 197}, {12, 128}})
      bench_attention(e, dtype::float16, heads, positions, 64);
    bench_attention(e, dtype::float16, 64, 1024, 128);
    bench_transfers(e);
    bench_overlap(std::make_shared<const vulkan::instance>());
  } catch (const std::exception& problem) {
    fmt::print(stderr, "bench_gpu: {}\n", problem.what());
    return 1;
  }
  return 0;
}

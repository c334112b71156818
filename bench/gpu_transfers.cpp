// Several GPUs in one process: how fast a value goes from one to another, and how far branches of one model overlap on
// all of them.
//
// Usage: bench_gpu_transfers [device…]      default vulkan:0 vulkan:1
#include "bench/models.hpp"
#include "trace/run_trace.hpp"

using namespace troupe;
using namespace troupe::bench;

namespace {

/// A value of `count` floats, made from an input of one.
variable large_value(model_builder& m, variable x, int64_t count) {
  return m.call("Expand", {x, m.constant(tensor::of<int64_t>({1}, std::span(&count, 1)))});
}

variable first_elements(model_builder& m, variable x) {
  const int64_t zero[] = {0}, ten[] = {10};
  return m.call("Slice", {x, m.constant(tensor::of<int64_t>({1}, zero)), m.constant(tensor::of<int64_t>({1}, ten))});
}

/// The machine's limit: a value comes down from GPU 0 while another one goes up to GPU 1, neither waiting for the
/// other.
void bench_copies(engine& e, int64_t bytes) {
  const auto one_gpu = [&](size_t device) {
    return session_options{.pins = {{"*", e.devices().at(device).name}}, .fuse = false};
  };
  model_builder down, up;
  const session gives =
      e.load(finish(down, {large_value(down, down.input("x", dtype::float32, {1}), bytes / 4)}), one_gpu(0));
  const session takes =
      e.load(finish(up, {first_elements(up, up.input("x", dtype::float32, {bytes / 4}))}), one_gpu(1));
  const named_tensors one{{"x", filled(e, dtype::float32, {1})}}, many{{"x", filled(e, dtype::float32, {bytes / 4})}};
  const double us = time_calls(
      [&] {
        std::future<run_result> coming = gives.run_async(one), going = takes.run_async(many);
        return std::pair(coming.get(), going.get());
      },
      9, 20);
  fmt::print("GPU 0 -> host -> GPU 1 of {:5} MiB {:11.1f} GB/s each way, each copy for itself\n", bytes >> 20,
             static_cast<double>(bytes) / us * 1e-3);
}

/// GPU 0 makes a value, GPU 1 reads it; with `both`, GPU 1 makes another one that GPU 0 reads meanwhile.
void bench_transfer(engine& e, int64_t bytes, bool both) {
  model_builder m;
  const variable x = m.input("x", dtype::float32, {1});
  std::vector<variable> large{large_value(m, x, bytes / 4)}, outputs;
  if (both)
    large.push_back(large_value(m, x, bytes / 4));
  if (both)
    std::swap(large[0], large[1]); // the first GPU reads the value that the second one made
  for (variable v : large)
    outputs.push_back(first_elements(m, v));
  const session model = e.load(finish(m, outputs), {.policy = placement_policy::round_robin, .fuse = false});
  const double us = time_runs(model, {{"x", filled(e, dtype::float32, {1})}}, 9, 20);
  fmt::print("{} of {:5} MiB {:18.1f} GB/s each way\n", both ? "GPU 0 <-> GPU 1" : "GPU 0 -> GPU 1 ", bytes >> 20,
             static_cast<double>(bytes) / us * 1e-3);
}

/// A value goes to and fro between two GPUs, with a short kernel at each end; `how` describes the engine.
void bench_hops(engine& e, int64_t bytes, std::string_view how) {
  constexpr int hops = 1000;
  model_builder m;
  variable v = m.input("x", dtype::float32, {bytes / 4});
  for (int i = 0; i <= hops; ++i)
    v = m.call("Neg", {v});
  const session model =
      e.load(finish(m, {first_elements(m, v)}), {.policy = placement_policy::round_robin, .fuse = false});
  const double us = time_runs(model, {{"x", filled(e, dtype::float32, {bytes / 4})}}, 9);
  fmt::print("GPU 0 <-> GPU 1, {} hops of {:7} KiB {:9.1f} us each, {}\n", hops, bytes >> 10, us / hops, how);
}

/// As many chains of products as there are GPUs; no chain needs another's values.
built_model branches(size_t count, int length, int64_t n) {
  model_builder m;
  std::vector<variable> ends;
  for (size_t i = 0; i < count; ++i)
    ends.push_back(m.input(fmt::format("x{}", i), dtype::float32, {n, n}));
  const std::vector<variable> begins = ends;
  for (int step = 0; step < length; ++step)
    for (size_t i = 0; i < count; ++i)
      ends[i] = m.call("MatMul", {ends[i], begins[i]});
  for (variable& end : ends)
    end = first_elements(m, end);
  return finish(m, ends);
}

/// Time in which every device computes, over the time in which any does, in percent.
double overlap(const run_trace& trace) {
  int64_t first = INT64_MAX, last = 0, last_begin = 0, first_end = INT64_MAX;
  std::map<device_index, std::pair<int64_t, int64_t>> spans;
  for (const chunk_trace& c : trace.chunks)
    for (const device_timing& t : c.timings) {
      if (t.kind != device_timing::work::node)
        continue;
      auto& [begin, end] = spans.try_emplace(trace.source->chunks[c.chunk].device, INT64_MAX, 0).first->second;
      begin = std::min(begin, t.begin_ns);
      end = std::max(end, t.end_ns);
    }
  for (const auto& [device, span] : spans) {
    first = std::min(first, span.first);
    last = std::max(last, span.second);
    last_begin = std::max(last_begin, span.first);
    first_end = std::min(first_end, span.second);
  }
  return 100.0 * static_cast<double>(std::max<int64_t>(first_end - last_begin, 0)) / static_cast<double>(last - first);
}

void bench_branches(engine& e, size_t gpus) {
  const auto time_of = [&](placement_policy policy) {
    const session model = e.load(branches(gpus, 20, 4096), {.policy = policy});
    named_tensors inputs;
    for (size_t i = 0; i < gpus; ++i)
      inputs[fmt::format("x{}", i)] = filled(e, dtype::float32, {4096, 4096});
    const double us = time_runs(model, inputs, 9);
    return std::pair(us, overlap(*model.run(inputs, {.trace = true}).trace));
  };
  const auto [one, alone] = time_of(placement_policy::single);
  const auto [all, together] = time_of(placement_policy::round_robin);
  fmt::print("{} branches of 20 products   {:8.1f} ms on one GPU, {:.1f} ms on {}: {:.2f} times as fast; GPU "
             "timestamps overlap "
             "for {:.1f} %\n",
             gpus, one * 1e-3, all * 1e-3, gpus, one / all, together);
}

} // namespace

int main(int argc, char** argv) {
  try {
    std::vector<std::string> devices(argv + 1, argv + argc);
    if (devices.empty())
      devices = {"vulkan:0", "vulkan:1"};
    engine e({.devices = devices, .kernels = kernel_time::now});
    size_t gpus = 0;
    for (const device_summary& d : e.devices())
      gpus += d.kind == "vulkan";
    fmt::print("{} GPUs, the first is {}\n", gpus, e.devices().at(0).description);
    for (const std::string& why : why_gpus_are_apart(e))
      fmt::print("{}\n", why);
    for (const int64_t kibibytes : {1, 64, 128, 1024})
      bench_hops(e, kibibytes << 10, "as planned");
    engine careful({.devices = devices, .completion = completion_mode::host, .kernels = kernel_time::now});
    for (const int64_t kibibytes : {1, 64, 128, 1024})
      bench_hops(careful, kibibytes << 10, "each end told to the host");
    for (const int64_t mebibytes : {256, 1024})
      bench_copies(e, mebibytes << 20);
    for (const int64_t mebibytes : {64, 256, 1024})
      for (const bool both : {false, true})
        bench_transfer(e, mebibytes << 20, both);
    bench_branches(e, gpus);
  } catch (const std::exception& problem) {
    fmt::print(stderr, "bench_gpu_transfers: {}\n", problem.what());
    return 1;
  }
  return 0;
}

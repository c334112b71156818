// What the actors cost: null devices, so all the time is the engine's own.
//
//   call      one cached plan of one chunk on one null device: from call to result
//   fan-out   10,000 chunks over 4 null devices, 100 chains side by side: time a chunk
//   chain     1,000 chunks in one chain over 4 null devices: time a chunk
//
// Prints the median and the 99th percentile of repeated runs, and the processor time of all threads, which a busy
// machine disturbs less.
#include "bench/growing_dims.hpp"
#include "bench/models.hpp"

#include <algorithm>
#include <cstdio>
#include <ctime>

namespace {

using namespace troupe;
using namespace troupe::bench;

/// `chains` chains of `length` operators side by side, each from an input of its own.
built_model make_chains(size_t chains, size_t length) {
  model_builder m;
  std::vector<variable> ends;
  for (size_t c = 0; c < chains; ++c) {
    variable v = m.input("x" + std::to_string(c), dtype::float32, {4});
    for (size_t i = 0; i < length; ++i)
      v = m.call("Sigmoid", {v});
    ends.push_back(v);
  }
  return finish(m, ends);
}

struct figures {
  double median_us, p99_us, processor_us;
};

/// Runs a model `count` times; the times are divided by `parts`.
figures measure(const session& s, size_t count, double parts) {
  const named_tensors inputs = inputs_of(s.inputs(), {});
  for (size_t i = 0; i < 3; ++i)
    s.run(inputs);
  std::vector<double> times;
  const std::clock_t before = std::clock();
  for (size_t i = 0; i < count; ++i) {
    const auto start = clock_type::now();
    s.run(inputs);
    times.push_back(milliseconds_since(start) * 1e3 / parts);
  }
  const double processor_us = 1e6 * static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  return {median(times), quantile(times, 0.99), processor_us / parts / static_cast<double>(count)};
}

void report(const char* name, const session& s, size_t runs, double parts) {
  const named_tensors inputs = inputs_of(s.inputs(), {});
  const size_t chunks = plan_of(s, inputs)->chunks.size();
  const figures f = measure(s, runs, parts > 0 ? parts : static_cast<double>(chunks));
  std::printf("%-8s %6zu chunks  median %8.2f us  p99 %8.2f us  processor %6.2f us\n", name, chunks, f.median_us,
              f.p99_us, f.processor_us);
}

} // namespace

int main() {
  engine one({.devices = {"null"}});
  report("call", one.load(make_chains(1, 1)), 20'000, 1);
  engine four({.devices = {"null*4"}});
  const session_options alternating{.policy = placement_policy::round_robin, .fuse = false};
  report("fan-out", four.load(make_chains(100, 100), alternating), 50, 0);
  report("chain", four.load(make_chains(1, 1'000), alternating), 50, 0);
}

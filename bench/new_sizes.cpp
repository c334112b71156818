// What a run with new dims costs: the first run of a process, then one run of each size in random order, then all of
// them again.
//
//   bench_new_sizes DEVICE MODEL.onnx later|now fp32|fp16 COUNT NAME=VALUE|NAME=FIRST..LAST[/STEP]…
//
// Draws COUNT sizes, each once; if there are not as many, all. For a user's first run, delete the cache of kernels
// before.
#include "base/seeded_random.hpp"
#include "bench/models.hpp"
#include "cli/size_range.hpp"

#include <set>
#include <thread>

using namespace troupe;
using namespace troupe::bench;

namespace {

/// Returns `count` sizes in random order, the same ones each time.
std::vector<bindings> draw_sizes(const std::vector<cli::size_range>& ranges, size_t count) {
  seeded_random random(7);
  size_t all = 1;
  for (const cli::size_range& r : ranges)
    all *= static_cast<size_t>(r.count());
  std::set<bindings> drawn;
  std::vector<bindings> sizes;
  while (sizes.size() < std::min(count, all)) {
    bindings b;
    for (const cli::size_range& r : ranges)
      b[r.name] = r.first + r.step * static_cast<int64_t>(random.below(static_cast<uint32_t>(r.count())));
    if (drawn.insert(b).second)
      sizes.push_back(std::move(b));
  }
  return sizes;
}

struct times {
  double sum = 0, longest = 0;
  bindings longest_of;
};

/// Runs the model once with each size.
times run_all(const session& model, std::span<const bindings> sizes) {
  times t;
  for (const bindings& dims : sizes) {
    const named_tensors inputs = plain_inputs(model, dims);
    const auto start = clock_type::now();
    model.run(inputs);
    const double ms = milliseconds_since(start);
    t.sum += ms;
    if (ms > t.longest) {
      t.longest = ms;
      t.longest_of = dims;
    }
  }
  return t;
}

void print(const char* what, const times& t) {
  fmt::print("{:24} {:9.1f} ms in all, the longest {:7.1f} ms:", what, t.sum, t.longest);
  for (const auto& [name, value] : t.longest_of)
    fmt::print(" {}={}", name, value);
  fmt::print("\n");
}

/// Waits until no kernel is being compiled, and returns for how long.
double wait_for_kernels(const engine& e) {
  const auto start = clock_type::now();
  while (std::ranges::any_of(e.stats(), [](const device_stats& s) { return s.pending_kernels > 0; }))
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return milliseconds_since(start);
}

} // namespace

int main(int argc, char** argv) {
  if (argc < 7) {
    fmt::print(stderr, "usage: bench_new_sizes DEVICE MODEL.onnx later|now fp32|fp16 COUNT NAME=FIRST..LAST[/STEP]…\n");
    return 2;
  }
  try {
    const kernel_time when = argv[3] == std::string("now") ? kernel_time::now : kernel_time::later;
    engine e({.devices = {argv[1]}, .kernels = when});
    const session model =
        e.load(argv[2], {.precision = argv[4] == std::string("fp16") ? precision::fp16 : precision::fp32});
    std::vector<cli::size_range> ranges;
    for (int i = 6; i < argc; ++i)
      ranges.push_back(cli::parse_range(argv[i], "size"));
    const std::vector<bindings> sizes = draw_sizes(ranges, std::stoul(argv[5]));
    print("first run of the process", run_all(model, std::span(sizes).first(1)));
    print("each other size once", run_all(model, std::span(sizes).subspan(1)));
    fmt::print("kernels were compiled for another {:.0f} ms\n", wait_for_kernels(e));
    print("all again", run_all(model, sizes));
    print("and again", run_all(model, sizes));
  } catch (const std::exception& e) {
    fmt::print(stderr, "bench_new_sizes: {}\n", e.what());
    return 1;
  }
}

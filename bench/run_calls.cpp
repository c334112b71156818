// How long callers of the C++ library wait for a run, to be compared with Python's (bench/python_overhead):
//
//   bench_run_calls MODEL DEVICE BATCH THREADS SECONDS
//
// Prints {"median_us": of a run, "runs_per_s": of all threads together}. The model has one input, whose first dim is
// the batch. Threads share a session.
#include <troupe/troupe.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

using clock_type = std::chrono::steady_clock;

/// Returns zeros for the input, with `batch` for its first dim.
troupe::tensor zeros(const troupe::value_info& input, int64_t batch) {
  troupe::shape dims{batch};
  for (size_t i = 1; i < input.dims.value().size(); ++i)
    dims.push_back(input.dims.value()[i].constant());
  return {input.type, dims};
}

/// Runs until `end`; returns how many microseconds each run took.
std::vector<double> run_until(clock_type::time_point end, const troupe::session& session,
                              const troupe::named_tensors& inputs) {
  std::vector<double> times;
  for (auto before = clock_type::now(); before < end;) {
    session.run(inputs);
    const auto after = clock_type::now();
    times.push_back(std::chrono::duration<double, std::micro>(after - before).count());
    before = after;
  }
  return times;
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: bench_run_calls MODEL DEVICE BATCH THREADS SECONDS\n");
    return 2;
  }
  troupe::engine engine({.devices = {argv[2]}});
  const troupe::session session = engine.load(argv[1]);
  const troupe::value_info input = session.inputs().at(0);
  const troupe::named_tensors inputs{{input.name, zeros(input, std::atoll(argv[3]))}};
  for (int i = 0; i < 100; ++i)
    session.run(inputs);
  std::vector<std::vector<double>> times(static_cast<size_t>(std::atoi(argv[4])));
  const auto start = clock_type::now();
  const auto end =
      start + std::chrono::duration_cast<clock_type::duration>(std::chrono::duration<double>(std::atof(argv[5])));
  {
    std::vector<std::jthread> threads;
    for (std::vector<double>& own : times)
      threads.emplace_back([&] { own = run_until(end, session, inputs); });
  }
  const double seconds = std::chrono::duration<double>(clock_type::now() - start).count();
  std::vector<double> all;
  for (const std::vector<double>& own : times)
    all.insert(all.end(), own.begin(), own.end());
  std::ranges::nth_element(all, all.begin() + static_cast<ptrdiff_t>(all.size() / 2));
  std::printf("{\"median_us\": %.2f, \"runs_per_s\": %.1f}\n", all[all.size() / 2],
              static_cast<double>(all.size()) / seconds);
}

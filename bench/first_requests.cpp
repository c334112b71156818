// How fast the first requests of a stream are answered: requests a second over the first 40 and over all, from the
// first one on, while plans, kernels and shares are made. Prints one line of JSON.
//
//   bench_first_requests DEVICE[,DEVICE…] STRATEGY MODEL.onnx fp32|fp16 REQUESTS IN_FLIGHT [--prepare] NAME=VALUE…
//
// STRATEGY is one that `troupe run --strategy` knows. --prepare: `session::prepare` comes first and is timed by itself.
// For the figures that a user sees first, delete the cache of kernels before; `bench/several_gpus` does.
#include "bench/models.hpp"
#include "strategy/replica_sets.hpp"

#include <deque>
#include <sstream>
#include <utility>

using namespace troupe;
using namespace troupe::bench;

namespace {

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream all(text);
  for (std::string part; std::getline(all, part, ',');)
    parts.push_back(part);
  return parts;
}

struct job {
  std::vector<std::string> devices;
  std::string strategy; // its name
  troupe::strategy how = troupe::strategy::none;
  std::string file;
  troupe::precision precision = troupe::precision::fp32;
  size_t requests = 0, in_flight = 0;
  bool prepares = false;
  bindings dims;
};

job parse(int argc, char** argv) {
  job j{.devices = split(argv[1]), .strategy = argv[2], .file = argv[3]};
  j.how = parse_strategy(j.strategy);
  if (argv[4] == std::string("fp16"))
    j.precision = precision::fp16;
  j.requests = std::stoul(argv[5]);
  j.in_flight = std::stoul(argv[6]);
  j.prepares = argv[7] == std::string("--prepare");
  j.dims = dims_of(std::span(argv + (j.prepares ? 8 : 7), argv + argc));
  return j;
}

void run(const job& j) {
  constexpr size_t first = 40;
  engine e({.devices = j.devices});
  session_options options{.strategy = j.how, .precision = j.precision};
  options.choice.goal = objective::throughput;
  const session model = e.load(j.file, options);
  const named_tensors inputs = plain_inputs(model, j.dims);
  const auto before = clock_type::now();
  if (j.prepares)
    model.prepare(inputs);
  const double prepared = milliseconds_since(before);
  std::deque<std::future<run_result>> flying;
  double first_answer = 0, after_first = 0;
  size_t done = 0;
  const auto start = clock_type::now();
  for (size_t sent = 0; done < j.requests; ++done) {
    for (; sent < j.requests && flying.size() < j.in_flight; ++sent)
      flying.push_back(model.submit(inputs));
    flying.front().get();
    flying.pop_front();
    if (done == 0)
      first_answer = milliseconds_since(start);
    if (done + 1 == std::min(first, j.requests))
      after_first = milliseconds_since(start);
  }
  const double all = milliseconds_since(start);
  const double first_ms = after_first / static_cast<double>(std::min(first, j.requests));
  fmt::print(R"({{"devices": "{}", "strategy": "{}", "prepared_ms": {:.0f}, "first_answer_ms": {:.0f}, )"
             R"("first_per_s": {:.1f}, "all_per_s": {:.1f}, "replicas": [)",
             fmt::join(j.devices, ","), j.strategy, prepared, first_answer, 1e3 / first_ms,
             static_cast<double>(j.requests) / all * 1e3);
  const char* comma = "";
  for (const replica_stats& r : model.queue_stats().replicas)
    fmt::print(R"({}{{"rows": {}, "pieces": {}, "predicted_row_ms": {:.4f}, "row_ms": {:.4f}, "rests": "{}"}})",
               std::exchange(comma, ", "), r.rows, r.pieces, r.predicted_row_ms, r.row_ms, r.why_not);
  fmt::print("]}}\n");
}

} // namespace

int main(int argc, char** argv) {
  if (argc < 8) {
    fmt::print(stderr, "usage: bench_first_requests DEVICES STRATEGY MODEL.onnx fp32|fp16 REQUESTS IN_FLIGHT "
                       "[--prepare] NAME=VALUE…\n");
    return 2;
  }
  try {
    run(parse(argc, argv));
  } catch (const std::exception& e) {
    fmt::print(stderr, "bench_first_requests: {}\n", e.what());
    return 1;
  }
}

// What a new bucket of dims costs a run, recording included: runs of a model whose dims grow from step to step.
//
//   bench_buckets DEVICE MODEL.onnx NAME=VALUE[+]… [STEPS]
//
// Prints the median run inside a bucket, and by how much the runs that opened a bucket were longer: the median and the
// worst.
#include "bench/growing_dims.hpp"
#include "bench/models.hpp"

using namespace troupe;
using namespace troupe::bench;

namespace {

void run_steps(const session& model, growing_dims dims) {
  std::vector<double> inside, opening;
  for (int64_t i = 0; i < dims.steps; ++i) {
    const named_tensors inputs = inputs_of(model.inputs(), dims.values);
    const uint64_t misses = model.stats().layouts.misses;
    const auto start = clock_type::now();
    model.run(inputs);
    const double ms = milliseconds_since(start);
    if (i > 0) // the first one brings the weights
      (model.stats().layouts.misses > misses ? opening : inside).push_back(ms);
    dims.grow();
  }
  if (inside.empty() || opening.empty())
    fail(errc::invalid_argument, "no bucket was opened, or every step opened one; let some dim grow, for more steps");
  const double usual = median(inside);
  fmt::print("{:.2f} ms a run inside a bucket; {} runs that opened one took {:.2f} ms more (median), {:.2f} at most\n",
             usual, opening.size(), median(opening) - usual, *std::max_element(opening.begin(), opening.end()) - usual);
}

} // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    fmt::print(stderr, "usage: bench_buckets DEVICE MODEL.onnx NAME=VALUE[+]… [STEPS]\n");
    return 2;
  }
  try {
    engine devices({.devices = {argv[1]}});
    run_steps(devices.load(argv[2]), parse_dims(argc, argv, 3));
  } catch (const std::exception& e) {
    fmt::print(stderr, "bench_buckets: {}\n", e.what());
    return 1;
  }
}

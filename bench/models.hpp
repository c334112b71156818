// What the benchmarks share: inputs, times.
#pragma once

#include "actors/engine_access.hpp"
#include "base/elapsed.hpp"
#include "base/quantile.hpp"
#include "troupe/model_builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace troupe::bench {

using clock_type = std::chrono::steady_clock;

/// Returns the model, whose outputs are called y, y1, y2 …
inline built_model finish(model_builder& m, const std::vector<variable>& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i)
    m.output(i == 0 ? "y" : fmt::format("y{}", i), outputs[i]);
  return m.build();
}

/// Median wall time of a call in microseconds.
template <class F>
double time_calls(F&& call, int runs, int warm_up = 5) {
  std::vector<double> samples;
  for (int i = -warm_up; i < runs; ++i) {
    const auto start = clock_type::now();
    const auto result = call();
    if (i >= 0)
      samples.push_back(milliseconds_since(start) * 1e3);
  }
  return median(samples);
}

/// Median wall time of a run in microseconds, over fresh handles of the same input.
inline double time_runs(const session& model, const named_tensors& inputs, int runs, int warm_up = 5) {
  return time_calls([&] { return model.run(inputs); }, runs, warm_up);
}

/// A tensor of zeros in memory that GPUs reach directly.
inline tensor filled(engine& e, dtype type, const shape& dims) {
  tensor t = e.allocate(type, dims);
  std::memset(t.mutable_data(), 0, static_cast<size_t>(t.bytes()));
  return t;
}

} // namespace troupe::bench

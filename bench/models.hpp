// What the benchmarks share: models of a few nodes, inputs, times.
#pragma once

#include "actors/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace troupe::bench {

using clock_type = std::chrono::steady_clock;

/// Builds models of a few nodes.
class model_builder {
public:
  model_builder() { g_.opsets[""] = 17; }

  value_id input(const std::string& name, dtype type, const shape& dims) {
    g_.inputs.push_back(g_.add_value({.name = name, .type = type, .dims = to_symbolic(dims)}));
    return g_.inputs.back();
  }
  value_id apply(const std::string& op, std::vector<value_id> inputs, attributes attrs = {}) {
    node n{.name = fmt::format("{}{}", op, g_.nodes.size()), .op_type = op, .attrs = std::move(attrs)};
    n.inputs = std::move(inputs);
    n.outputs = {g_.add_value({.name = fmt::format("v{}", g_.values.size())})};
    const value_id made = n.outputs[0];
    g_.add_node(std::move(n));
    return made;
  }
  value_id constant(tensor t) { return g_.add_constant(fmt::format("c{}", g_.values.size()), std::move(t)); }
  graph done(value_id output) { return done(std::vector{output}); }
  /// The outputs are called y, y1, y2 …
  graph done(std::vector<value_id> outputs) {
    g_.outputs = std::move(outputs);
    for (size_t i = 0; i < g_.outputs.size(); ++i)
      g_.values[g_.outputs[i]].name = i == 0 ? "y" : fmt::format("y{}", i);
    return std::move(g_);
  }

private:
  graph g_;
};

inline double median(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return samples[samples.size() / 2];
}

/// Median wall time of a run in microseconds, over fresh handles of the same input.
inline double time_runs(const session& model, const named_tensors& inputs, int runs) {
  std::vector<double> samples;
  for (int i = -5; i < runs; ++i) {
    const auto start = clock_type::now();
    const run_result result = model.run(inputs);
    if (i >= 0)
      samples.push_back(std::chrono::duration<double, std::micro>(clock_type::now() - start).count());
  }
  return median(samples);
}

/// A tensor of zeros in memory that GPUs reach directly.
inline tensor filled(engine& e, dtype type, const shape& dims) {
  tensor t = e.allocate(type, dims);
  std::memset(t.mutable_data(), 0, static_cast<size_t>(t.bytes()));
  return t;
}

} // namespace troupe::bench

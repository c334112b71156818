// Inputs and times that the benchmarks share.
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

/// Returns a model's inputs: floats that repeat every 17 elements, zeros of other types. `make` gives a tensor of a
/// type and dims, `dims_of` an input's dims.
template <class Make, class DimsOf>
named_tensors ramp_inputs(const session& s, Make&& make, DimsOf&& dims_of) {
  named_tensors all;
  for (const value_info& input : s.inputs()) {
    tensor t = make(input.type, dims_of(*input.dims));
    std::memset(t.mutable_data(), 0, static_cast<size_t>(t.bytes()));
    if (input.type == dtype::float32)
      for (int64_t i = 0; i < t.size(); ++i)
        t.mutable_data<float>()[i] = static_cast<float>(i % 17) / 17;
    all.emplace(input.name, std::move(t));
  }
  return all;
}

/// Returns the values that arguments "DIM=VALUE" give.
inline bindings dims_of(std::span<char* const> arguments) {
  bindings dims;
  for (const std::string text : arguments) {
    const size_t at = text.find('=');
    dims[text.substr(0, at)] = std::strtoll(text.c_str() + at + 1, nullptr, 10);
  }
  return dims;
}

/// Returns dims with these values of their symbols.
inline shape evaluate(const symbolic_shape& dims, const bindings& symbols) {
  shape values;
  for (const dim& d : dims)
    values.push_back(d.evaluate(symbols));
  return values;
}

/// Returns a model's inputs for these dims in ordinary memory.
inline named_tensors plain_inputs(const session& s, const bindings& dims) {
  return ramp_inputs(
      s, [](dtype type, shape is) { return tensor(type, std::move(is)); },
      [&](const symbolic_shape& is) { return evaluate(is, dims); });
}

} // namespace troupe::bench

// Values of a model's symbolic dims, some of which grow from step to step, as `past` does in a decoder.
#pragma once

#include "actors/engine_access.hpp"

namespace troupe::bench {

struct growing_dims {
  bindings values;
  std::vector<std::string> growing;
  int64_t steps = 200;

  void grow() {
    for (const std::string& name : growing)
      ++values[name];
  }
};

/// Reads arguments from `first` on: NAME=VALUE, NAME=VALUE+ for one that grows by one in each step, and a number of
/// steps.
inline growing_dims parse_dims(int argc, char** argv, int first) {
  growing_dims dims;
  for (int i = first; i < argc; ++i) {
    const std::string text = argv[i];
    const size_t equals = text.find('=');
    if (equals == std::string::npos) {
      dims.steps = std::stoll(text);
      continue;
    }
    dims.values[text.substr(0, equals)] = std::stoll(text.substr(equals + 1));
    if (text.back() == '+')
      dims.growing.push_back(text.substr(0, equals));
  }
  return dims;
}

/// Returns tensors of zeros for a model's inputs.
inline named_tensors inputs_of(const std::vector<value_info>& declared, const bindings& values) {
  named_tensors inputs;
  for (const value_info& input : declared) {
    shape actual;
    if (input.dims)
      for (const dim& d : *input.dims)
        actual.push_back(d.evaluate(values));
    inputs[input.name] = tensor(input.type, actual);
  }
  return inputs;
}

} // namespace troupe::bench

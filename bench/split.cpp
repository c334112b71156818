// One request on several devices (policy split) beside one device, in turns, with inputs and outputs in the host's
// memory.
//
// Usage: bench_split MODEL fp32|fp16 DEVICE… [DIM=VALUE…]
//
// Prints, for the first device, for the plan that is predicted to be fastest, and for each dim along which a cut may
// begin: the median of 7 rounds in ms, its ratio to the first device, the prediction, and the largest difference from
// the first device's outputs. Measure the model first (`troupe profile MODEL --keep`): predictions choose.
#include "bench/models.hpp"

#include <cmath>

using namespace troupe;
using namespace troupe::bench;

namespace {

constexpr int rounds = 7, runs = 5;

struct contender {
  std::string name;
  session model;
  std::vector<double> ms = {};
};

/// The prediction of a plan, from its text.
double predicted_ms(const session& s, const named_tensors& inputs) {
  const std::string text = s.plan(inputs), word = "predicted ";
  const size_t at = text.find(word);
  return at == std::string::npos ? 0 : std::strtod(text.c_str() + at + word.size(), nullptr);
}

/// Infinite if one of them is no number.
double largest_difference(const named_tensors& a, const named_tensors& b) {
  double most = 0;
  for (const auto& [name, x] : a)
    if (x.type() == dtype::float32)
      for (int64_t i = 0; i < x.size(); ++i) {
        const double apart = std::abs(double{x.data<float>()[i]} - double{b.at(name).data<float>()[i]});
        most = std::isnan(apart) ? HUGE_VAL : std::max(most, apart);
      }
  return most;
}

/// Token ids, positions and masks of 1 to 17: none is 0, which would hide a token.
named_tensors inputs_for(const session& s, const bindings& dims) {
  named_tensors all = plain_inputs(s, dims);
  for (auto& [name, t] : all)
    for (int64_t i = 0; t.type() == dtype::int64 && i < t.size(); ++i)
      t.mutable_data<int64_t>()[i] = 1 + i % 17;
  return all;
}

} // namespace

int main(int argc, char** argv) try {
  if (argc < 4) {
    fmt::print(stderr, "usage: bench_split MODEL fp32|fp16 DEVICE… [DIM=VALUE…]\n");
    return 2;
  }
  const std::span<char*const> arguments(argv, static_cast<size_t>(argc)), after = arguments.subspan(3);
  const auto is_dim = [](const std::string& text) { return text.find('=') != std::string::npos; };
  const auto dim_begin = std::ranges::find_if(after, is_dim);
  const bindings dims = dims_of({dim_begin, after.end()});
  engine e({.devices = {after.begin(), dim_begin}});
  const auto load = [&](session_options o) {
    o.precision = std::string(arguments[2]) == "fp16" ? precision::fp16 : precision::fp32;
    o.strategy = strategy::none;
    return e.load(std::string(arguments[1]), o);
  };
  const std::vector<std::string> first{e.devices().front().name};
  std::vector<contender> all{{first[0], load({.devices = first})},
                             {"as predicted", load({.policy = placement_policy::split})}};
  for (const int along : {-1, 0, 1, 2})
    all.push_back({along < 0 ? "longest axes" : fmt::format("dim {}", along),
                   load({.policy = placement_policy::split, .split_along = along})});
  const named_tensors inputs = inputs_for(all[0].model, dims);
  for (int round = 0; round < rounds; ++round)
    for (contender& c : all)
      c.ms.push_back(time_runs(c.model, inputs, runs, round == 0 ? 10 : 3) / 1e3);
  const named_tensors expected = all[0].model.run(inputs).outputs;
  for (const contender& c : all)
    fmt::print("{:14} {:9.3f} ms, {:.3f} of one device; predicted {:9.3f} ms; outputs differ by {:.2g}\n", c.name,
               median(c.ms), median(c.ms) / median(all[0].ms), predicted_ms(c.model, inputs),
               largest_difference(expected, c.model.run(inputs).outputs));
} catch (const std::exception& problem) {
  fmt::print(stderr, "bench_split: {}\n", problem.what());
  return 1;
}

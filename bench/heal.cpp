// What it costs a bound session to be ready to repeat its steps (`bind_options::heal`), and what a loss costs then.
//
// Usage: bench_heal MODEL DEVICE SPARE [LOSSES]      a decoder whose outputs present… are its inputs past…
//
// Prints the median step in ms with and without `heal` on DEVICE, in turns, and their ratio; then for each loss of
// DEVICE, whose work SPARE takes over: the steps repeated, the ms of the healed step, and what it took beside as many
// ordinary steps on SPARE: new plans, weights, kernels.
#include "bench/models.hpp"

using namespace troupe;
using namespace troupe::bench;

namespace {

constexpr uint64_t steps = 60, rounds = 7;

std::vector<output_binding> caches_of(const session& s) {
  std::vector<output_binding> pairs;
  for (const value_info& o : s.outputs())
    if (o.name.starts_with("present"))
      pairs.push_back({o.name, "past" + o.name.substr(7)});
  return pairs;
}

/// The inputs of step `n`, from 0: one token, after `n` others.
named_tensors inputs_of(const session& s, int64_t n) {
  named_tensors all = plain_inputs(s, {{"past", n}, {"total", n + 1}, {"seq", 1}});
  for (auto& [name, t] : all)
    for (int64_t i = 0; t.type() == dtype::int64 && i < t.size(); ++i)
      t.mutable_data<int64_t>()[i] = name == "position_ids" ? n : 1;
  if (n > 0)
    std::erase_if(all, [](const auto& input) { return input.first.starts_with("past"); });
  return all;
}

double step_ms(bound_session& b, const session& s) {
  const named_tensors inputs = inputs_of(s, static_cast<int64_t>(b.step()));
  const auto start = clock_type::now();
  b.run(inputs);
  return milliseconds_since(start);
}

/// Returns the median of the later half of a sequence's steps.
double sequence_ms(const session& s, bool heal) {
  bound_session b = s.bind(caches_of(s), {.heal = heal});
  std::vector<double> ms;
  while (b.step() < steps) {
    const double taken = step_ms(b, s);
    if (b.step() > steps / 2)
      ms.push_back(taken);
  }
  return median(ms);
}

void print_cost(const session& s) {
  std::vector<double> with, without;
  for (uint64_t round = 0; round <= rounds; ++round)
    for (const bool heal : {false, true})
      if (const double ms = sequence_ms(s, heal); round > 0)
        (heal ? with : without).push_back(ms);
  fmt::print("a step: {:.3f} ms, {:.3f} ms with heal, ratio {:.3f}\n", median(without), median(with),
             median(with) / median(without));
}

} // namespace

int main(int argc, char** argv) try {
  if (argc < 4) {
    fmt::print(stderr, "usage: bench_heal MODEL DEVICE SPARE [LOSSES]\n");
    return 2;
  }
  const std::string model = argv[1], device = argv[2], spare = argv[3];
  {
    engine e({.devices = {device}});
    print_cost(e.load(model));
  }
  std::vector<double> beside;
  for (int loss = 0; loss < (argc > 4 ? std::atoi(argv[4]) : 10); ++loss) {
    engine e({.devices = {device, spare}});
    const session s = e.load(model);
    bound_session b = s.bind(caches_of(s));
    while (b.step() < steps)
      step_ms(b, s);
    lose_devices(
        e, [&](const device_info& d) { return d.name == device; }, "the benchmark took it");
    const named_tensors inputs = inputs_of(s, static_cast<int64_t>(b.step()));
    const auto start = clock_type::now();
    const uint64_t repeated = b.run(inputs).stats.repeated_steps;
    const double healed = milliseconds_since(start);
    const double again = static_cast<double>(repeated + 1) * sequence_ms(s, true); // on the spare
    beside.push_back(healed - again);
    fmt::print("{} steps repeated in {:.1f} ms, {:.1f} beside recomputation\n", repeated, healed, beside.back());
  }
  fmt::print("median beside recomputation: {:.1f} ms\n", median(beside));
  return 0;
} catch (const std::exception& problem) {
  fmt::print(stderr, "bench_heal: {}\n", problem.what());
  return 1;
}

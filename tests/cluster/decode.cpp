// A decoder whose keys and values stay on devices, those of other hosts too, under every placement policy, beside the
// same decoder on this process's CPU: troupe_decode MODEL STEPS DEVICES [HOSTS CERTIFICATE KEY CA]
//
// DEVICES and HOSTS are lists as the `troupe` command takes them; all devices named are used, no others. The model is
// one with input_ids, attention_mask and position_ids, past_… and present_…. Prints for each policy the largest
// difference of logits and of the final keys and values, as a part of their largest element, and where the nodes were.
// Exit status 1 if a difference exceeds 1e-3.
#include "actors/engine_access.hpp"
#include "plan/place/policies.hpp"
#include "support/decoder_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <sstream>

namespace {

using namespace troupe;

constexpr double allowed = 1e-3;
constexpr int64_t first_past = 5;

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  std::istringstream in(list);
  for (std::string part; std::getline(in, part, ',');)
    parts.push_back(part);
  return parts;
}

/// Results of a decoder: logits by step, and its final keys and values by output.
struct answers {
  std::vector<tensor> logits;
  named_tensors state;
};

named_tensors step_inputs(int64_t step) {
  return test::decoder_step_inputs(step, first_past + step);
}

/// Inputs of the first step, keys and values with them.
named_tensors first_inputs(const session& model) {
  named_tensors inputs = step_inputs(0);
  std::mt19937 random(1);
  for (const value_info& in : model.inputs()) {
    if (!in.name.starts_with("past_"))
      continue;
    shape dims;
    for (const dim& d : *in.dims)
      dims.push_back(d.evaluate({{"past", first_past}}));
    tensor& past = inputs[in.name] = tensor(dtype::float32, dims);
    std::generate_n(past.mutable_data<float>(), past.size(),
                    [&] { return static_cast<float>(random() % 2001) / 1000 - 1; });
  }
  return inputs;
}

answers decode(const session& model, const named_tensors& first, int64_t steps) {
  const std::vector<output_binding> pairs = test::cache_pairs(model);
  if (pairs.empty())
    fail(errc::invalid_argument, "the model has no outputs present_…");
  bound_session decoder = model.bind(pairs);
  answers said;
  for (int64_t step = 0; step < steps; ++step)
    said.logits.push_back(decoder.run(step == 0 ? first : step_inputs(step)).outputs.at("logits"));
  for (const output_binding& pair : pairs)
    said.state[pair.output] = decoder.fetch(pair.output);
  return said;
}

/// Largest difference of two tensors, as a part of the largest element.
double distance(const tensor& a, const tensor& b) {
  if (a.dims() != b.dims())
    return INFINITY;
  double largest = 0, worst = 0;
  for (int64_t i = 0; i < a.size(); ++i) {
    largest = std::max<double>(largest, std::abs(b.values<float>()[i]));
    worst = std::max<double>(worst, std::abs(a.values<float>()[i] - b.values<float>()[i]));
  }
  return worst / largest; // NaN, which passes nothing, if all are zeros or one is NaN
}

double distance(const answers& got, const answers& want) {
  double worst = 0;
  const auto note = [&](double d) { worst = std::isnan(d) ? INFINITY : std::max(worst, d); };
  for (size_t step = 0; step < want.logits.size(); ++step)
    note(distance(got.logits[step], want.logits[step]));
  for (const auto& [name, value] : want.state)
    note(distance(got.state.at(name), value));
  return worst;
}

std::string nodes_text(const plan& p) {
  std::map<std::string, int> nodes;
  for (device_index d : p.placement)
    ++nodes[p.devices[d].name];
  std::string text;
  for (const auto& [device, count] : nodes)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", device, count);
  return text;
}

int decode_everywhere(const std::string& model, int64_t steps, const engine_options& options) {
  engine here({.devices = {"cpu"}});
  const session local = here.load(model, {.fuse = false});
  const named_tensors first = first_inputs(local);
  const answers want = decode(local, first, steps);
  engine all(options);
  int wrong = 0;
  for (const policy_row& row : policies()) {
    if (row.small_only)
      continue;
    const session s = all.load(model, {.policy = row.policy});
    const double d = distance(decode(s, first, steps), want);
    wrong += !(d <= allowed);
    fmt::print("{:8} {:9.2g}  {} ({})\n", d <= allowed ? "same" : "DIFFERS", d, row.name,
               nodes_text(*plan_of(s, first)));
  }
  return wrong;
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 4 && argc != 8) {
    fmt::print(stderr, "usage: troupe_decode MODEL STEPS DEVICES [HOSTS CERTIFICATE KEY CA]\n");
    return 2;
  }
  try {
    engine_options options{.devices = split(argv[3])};
    if (argc == 8) {
      options.hosts = split(argv[4]);
      options.credentials = {.certificate = argv[5], .key = argv[6], .ca = argv[7]};
    }
    return decode_everywhere(argv[1], std::stoll(argv[2]), options) == 0 ? 0 : 1;
  } catch (const std::exception& problem) {
    fmt::print(stderr, "troupe_decode: {}\n", problem.what());
    return 1;
  }
}

// A decoder (cached_decoder.hpp) whose caches go through the host, and one whose caches the caller holds on a device,
// to be compared.
#pragma once

#include "support/bound_values.hpp"
#include "support/cached_decoder.hpp"

namespace troupe::test {

inline std::vector<output_binding> pairs() {
  std::vector<output_binding> all;
  for (const std::string& name : cache_names())
    all.push_back({"present_" + name, "past_" + name});
  return all;
}

inline std::vector<std::string> presents() {
  std::vector<std::string> all;
  for (const output_binding& pair : pairs())
    all.push_back(pair.output);
  return all;
}

inline tensor tokens(int64_t count, uint64_t seed, int64_t batch = 1) {
  return random_floats({batch, count, 16}, seed);
}

/// Caches without rows.
inline named_tensors empty_caches(int64_t batch = 1) {
  named_tensors all;
  for (const output_binding& pair : pairs())
    all[pair.input] = tensor(dtype::float32, {batch, 2, 0, 8});
  return all;
}

/// A decoder whose caches go through the host: the others are compared with it.
class fed_decoder {
public:
  explicit fed_decoder(session model, int64_t batch = 1) : model_(std::move(model)), caches(empty_caches(batch)) {}

  tensor step(const tensor& x) {
    named_tensors inputs = caches;
    inputs["x"] = x;
    const run_result r = model_.run(inputs);
    for (const output_binding& pair : pairs())
      caches[pair.input] = r.outputs.at(pair.output);
    return r.outputs.at("y");
  }

  session model_;
  named_tensors caches; // by input
};

/// A decoder whose caches are handles that the caller holds.
struct held_caches {
  named_device_tensors values; // by input

  tensor step(const session& model, const tensor& x) {
    const run_result r = model.run({{"x", x}}, {.device_inputs = values, .keep = presents()});
    for (const output_binding& pair : pairs())
      values[pair.input] = r.kept.at(pair.output);
    return r.outputs.at("y");
  }
};

inline held_caches put_caches(engine& e, const std::string& device, const named_tensors& caches) {
  held_caches held;
  for (const auto& [name, value] : caches)
    held.values[name] = e.put(value, device);
  return held;
}

inline void check_caches(engine& e, const held_caches& held, const named_tensors& wanted) {
  for (const auto& [name, value] : wanted) {
    INFO(name);
    CHECK(same(e.fetch(held.values.at(name)), value));
  }
}

struct stage {
  std::string name;
  std::vector<device_factory> devices;
};

inline std::vector<stage> stages() {
  const auto blocks = std::make_shared<host_block_pool>();
  return {{"reference", {reference("d")}},
          {"vulkan", {gpu("d")}},
          {"poisoned", {gpu("d", {.poison = true})}},
          {"staged, not coherent", {gpu("d", {.force_non_coherent = true, .force_staging = true})}},
          {"imported memory", {gpu("d", {.blocks = blocks, .poison = true, .force_staging = true})}}};
}

} // namespace troupe::test

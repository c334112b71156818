// Dims for which a GPU has no kernel, in a plan that counted on others.
#include "actors/engine_access.hpp"
#include "support/catch.hpp"
#include "support/gpu.hpp"
#include "support/run_graph.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

/// An LSTM of 2 sequences whose lengths are 8: GPU kernels know sequences that are as long as the input.
graph lengths_model() {
  graph_builder b;
  const auto weights = [&](const char* name, shape dims) {
    std::vector<float> elements(static_cast<size_t>(volume(dims)));
    for (size_t i = 0; i < elements.size(); ++i)
      elements[i] = 0.05f * static_cast<float>(i % 17) - 0.4f;
    return b.constant(name, tensor::of<float>(std::move(dims), elements));
  };
  const value_id x = b.op("Tanh", {b.input("x", {dim::symbol("steps"), 2, 4})});
  const value_id lengths = b.constant("lengths", tensor::of<int32_t>({2}, std::vector<int32_t>{8, 8}));
  b.output(b.op("LSTM", {x, weights("w", {1, 12, 4}), weights("r", {1, 12, 3}), no_value, lengths},
                attrs_of({{"hidden_size", int64_t{3}}}), "cells"));
  return b.g;
}

named_tensors steps(int64_t count) {
  std::vector<float> elements(static_cast<size_t>(count * 8));
  for (size_t i = 0; i < elements.size(); ++i)
    elements[i] = 0.1f * static_cast<float>(i % 23) - 1.f;
  return {{"x", tensor::of<float>({count, 2, 4}, elements)}};
}

} // namespace

TEST_CASE("dims for which the GPU has no kernel get a plan of their own", "[vulkan][B6]") {
  engine both = make_engine({.devices = {"vulkan:0", "cpu"}}, {.gpu_validation = gpus_are_validated()});
  engine cpu({.devices = {"cpu"}});
  const session model = both.load(lengths_model()), expected = cpu.load(lengths_model());
  model.run(steps(8)); // if copies go beside work, the plan is made again for the first run's dims
  const uint64_t plans = model.stats().plans.misses;
  for (const int64_t count : {8, 12, 12, 8, 9}) {
    INFO(count << " steps");
    const run_result got = model.run(steps(count)), wanted = expected.run(steps(count));
    const auto values = got.outputs.at("cells").values<float>(), right = wanted.outputs.at("cells").values<float>();
    REQUIRE(values.size() == right.size());
    for (size_t i = 0; i < values.size(); ++i)
      CHECK(values[i] == Approx(right[i]).margin(1e-5));
  }
  CHECK(model.stats().plans.misses == plans); // the plans of 12 and 9 steps are for these bindings alone
  CHECK(gpu_messages(both).empty());
}

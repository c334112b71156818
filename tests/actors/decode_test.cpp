// A real decoder, step by step, with its keys and values bound: its results are as if they had gone through the host.
// TROUPE_MODELS names a folder of materialised models; without it the test is skipped.
#include "actors/engine_access.hpp"
#include "support/catch.hpp"
#include "support/decoder_steps.hpp"
#include "support/gpu.hpp"
#include "support/kernel_case.hpp"

#include <cstdlib>
#include <filesystem>

using namespace troupe;
using namespace troupe::test;

namespace {

struct setup {
  const char* devices;
  placement_policy policy;
};

/// Dims of a cache of a number of tokens, the only dim that is open.
shape cache_dims_of(const session& model, const std::string& input, int64_t tokens) {
  shape dims;
  for (const value_info& i : model.inputs())
    if (i.name == input)
      for (const dim& d : i.dims.value())
        dims.push_back(d.is_constant() ? d.constant() : tokens);
  return dims;
}

/// Largest difference of two tensors, as a part of the largest element.
double distance(const tensor& a, const tensor& b) {
  REQUIRE(a.dims() == b.dims());
  double largest = 0, worst = 0;
  for (int64_t i = 0; i < a.size(); ++i) {
    largest = std::max<double>(largest, std::abs(a.values<float>()[i]));
    worst = std::max<double>(worst, std::abs(a.values<float>()[i] - b.values<float>()[i]));
  }
  return worst / largest;
}

} // namespace

TEST_CASE("a decoder gives the same with bound keys and values as without", "[actors][vulkan][B7][slow]") {
  const char* models = std::getenv("TROUPE_MODELS");
  const std::string name = GENERATE("llama_tiny", "llama_tiny_int4", "gpt2");
  const auto file = std::filesystem::path(models ? models : "") / name / "model.onnx";
  if (!models || !std::filesystem::exists(file)) {
    WARN("skipped: TROUPE_MODELS does not name a folder with " << name);
    return;
  }
  const setup s = GENERATE(setup{"cpu", placement_policy::single}, setup{"vulkan:0", placement_policy::single},
                           setup{"vulkan:0*2", placement_policy::round_robin});
  const precision how = GENERATE(precision::fp32, precision::fp16);
  INFO(name << " on " << s.devices << (how == precision::fp16 ? ", float16" : ""));
  engine e = make_engine({.devices = {s.devices}}, {.gpu_validation = gpus_are_validated()});
  const session model = e.load(file.string(), {.policy = s.policy, .precision = how});
  const std::vector<output_binding> pairs = cache_pairs(model);
  REQUIRE(pairs.size() >= 8);
  bound_session decoder = model.bind(pairs);
  named_tensors past;
  for (const output_binding& pair : pairs)
    past[pair.input] = random_floats(cache_dims_of(model, pair.input, 5), past.size());
  for (int64_t step = 0; step < 6; ++step) {
    const named_tensors inputs = decoder_step_inputs(step, 5 + step);
    named_tensors with_past = inputs;
    with_past.insert(past.begin(), past.end());
    const run_result fed = model.run(with_past);
    const run_result bound = decoder.run(step == 0 ? with_past : inputs);
    REQUIRE(bound.outputs.size() == 1);
    CHECK(distance(bound.outputs.at("logits"), fed.outputs.at("logits")) < 1e-6);
    for (const output_binding& pair : pairs) {
      past[pair.input] = fed.outputs.at(pair.output);
      CHECK(distance(decoder.fetch(pair.output), past[pair.input]) < 1e-6);
    }
    if (s.policy == placement_policy::single)
      CHECK(bound.stats.fetched_bytes == 0);
  }
  CHECK(gpu_messages(e).empty());
}

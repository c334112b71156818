// Models placed by `pipeline`, run: the answers of one device.
#include "support/catch.hpp"
#include "support/gpu.hpp"
#include "support/small_models.hpp"

#include <set>

using namespace troupe;
using namespace troupe::test;

namespace {

/// Layers of a product, an activation and a residual, some of them wider.
graph layers(size_t count) {
  graph_builder b;
  value_id v = b.input("x", {4, 16});
  for (size_t i = 0; i < count; ++i) {
    tensor weight(dtype::float32, {16, 16});
    for (int64_t e = 0; e < weight.size(); ++e)
      weight.mutable_data<float>()[e] = static_cast<float>((e * 7 + static_cast<int64_t>(i)) % 11) / 40 - 0.12f;
    const value_id product = b.op("MatMul", {v, b.constant(fmt::format("w{}", i), std::move(weight))});
    v = b.op("Add", {b.op(i % 2 ? "Sigmoid" : "Relu", {product}), v});
  }
  b.output(v);
  return b.g;
}

named_tensors some_input() {
  tensor x(dtype::float32, {4, 16});
  for (int64_t e = 0; e < x.size(); ++e)
    x.mutable_data<float>()[e] = static_cast<float>(e % 13) / 6 - 1;
  return {{"x", x}};
}

/// Checks that a model's answer on `devices`, as a pipeline over `stages` of them, is that of one CPU.
void check_pipeline(const std::string& devices, const graph& model, size_t stages) {
  INFO(devices);
  engine one({.devices = {"cpu"}});
  const tensor expected = one.load(model).run(some_input()).outputs.begin()->second;
  engine several = make_engine({.devices = {devices}}, {.gpu_validation = gpus_are_validated()});
  const session s = several.load(model, {.policy = placement_policy::pipeline});
  const auto p = plan_of(s, some_input());
  CHECK(std::set<device_index>(p->placement.begin(), p->placement.end()).size() == stages);
  for (int run = 0; run < 3; ++run) {
    const tensor found = s.run(some_input()).outputs.begin()->second;
    REQUIRE(found.dims() == expected.dims());
    for (int64_t e = 0; e < found.size(); ++e)
      REQUIRE(found.data<float>()[e] == Approx(expected.data<float>()[e]).margin(1e-5));
  }
}

} // namespace

TEST_CASE("a pipeline on CPU devices answers as one device does", "[plan][engine][C3]") {
  check_pipeline("cpu*4", layers(24), 4);
  check_pipeline("cpu*16", layers(100), 16);
}

TEST_CASE("a pipeline on two GPUs answers as one CPU does", "[plan][engine][vulkan][C3]") {
  graph_builder b;
  value_id v = b.input("x", {4, 16});
  tensor weight(dtype::float32, {16, 16});
  std::fill_n(weight.mutable_data<float>(), weight.size(), 0.05f);
  const value_id w = b.constant("w", std::move(weight));
  for (int i = 0; i < 60; ++i)
    v = b.op("Sigmoid", {b.op("MatMul", {v, w})});
  b.output(v);
  check_pipeline("vulkan:0*2", b.g, 2);
}

TEST_CASE("a pipeline of 50 stages runs", "[plan][engine][C3]") {
  engine e({.devices = {"null*50"}});
  const session s = e.load(layers(200), {.policy = placement_policy::pipeline});
  CHECK(s.run(some_input()).outputs.begin()->second.dims() == shape{4, 16});
}

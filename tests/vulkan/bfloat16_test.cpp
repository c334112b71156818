// Models of bfloat16 on a GPU, which computes them in float32, against the CPU, which does so too.
#include "cpu/cpu_device.hpp"
#include "rewrite/rewrite.hpp"
#include "support/catch.hpp"
#include "support/gpu.hpp"
#include "support/run_graph.hpp"
#include "support/run_inline.hpp"
#include "tensor/convert.hpp"

#include <algorithm>
#include <cmath>

using namespace troupe;
using namespace troupe::test;

namespace {

tensor to_type(const tensor& t, dtype type) {
  tensor result(type, t.dims());
  convert(t.view(), result.mutable_ref());
  return result;
}

/// A layer of attention and one of convolution, with shapes and indices between them.
graph_builder layers() {
  graph_builder b;
  const auto weights = [&](const char* name, shape dims) {
    tensor w = random_tensor(std::move(dims), 7);
    for (int64_t i = 0; i < w.size(); ++i)
      w.mutable_data<float>()[i] *= 0.3f;
    return b.constant(name, to_type(w, dtype::bfloat16));
  };
  const value_id ids = b.input("ids", {dim::symbol("batch"), 6}, dtype::int64);
  const value_id x = b.op("Gather", {weights("table", {11, 16}), ids});
  const value_id normed = b.op("LayerNormalization", {x, weights("scale", {16}), weights("shift", {16})});
  const value_id q = b.op("MatMul", {normed, weights("q", {16, 16})});
  const value_id k = b.op("MatMul", {normed, weights("k", {16, 16})});
  const value_id scores =
      b.op("MatMul", {q, b.op("Transpose", {k}, attrs_of({{"perm", std::vector<int64_t>{0, 2, 1}}}))});
  const value_id y = b.op("Add", {x, b.op("MatMul", {b.op("Softmax", {scores}), normed})});
  const value_id image = b.op("Unsqueeze", {y, b.integers({1})});
  const value_id z = b.op("Relu", {b.op("Conv", {image, weights("filters", {4, 1, 3, 3})})});
  b.output(b.op("Concat", {z, b.op("Neg", {z})}, attrs_of({{"axis", int64_t{1}}})));
  return b;
}

tensor run_on(device& d, const std::shared_ptr<const graph>& g, const tensor& ids) {
  inline_runner runner(make_plan(g, {d.info()}, {}), {&d});
  return to_type(runner.run(std::vector<tensor>{ids}).at(0), dtype::float32);
}

} // namespace

TEST_CASE("a model of bfloat16 runs on a GPU alone, and gives what the CPU gives", "[vulkan][B4]") {
  const auto gpu = open_gpu({.poison = true});
  const auto cpu = make_cpu_device("cpu");
  const auto g = std::make_shared<const graph>(rewrite(layers().g, {.for_gpus = true}));
  const auto both = make_plan(g, {gpu->info(), cpu->info()}, {});
  CHECK(std::ranges::count(both->placement, device_index{1}) == 0);
  for (const int64_t batch : {1, 3}) {
    tensor ids(dtype::int64, {batch, 6});
    for (int64_t i = 0; i < ids.size(); ++i)
      ids.mutable_data<int64_t>()[i] = i * 5 % 11;
    const tensor expected = run_on(*cpu, g, ids), found = run_on(*gpu, g, ids);
    REQUIRE(found.dims() == expected.dims());
    float worst = 0;
    for (int64_t i = 0; i < found.size(); ++i)
      worst = std::max(worst, std::abs(found.data<float>()[i] - expected.data<float>()[i]));
    CHECK(worst < 0.02f); // both round the result alone, to 8 bits
  }
}

// Inputs that become float16 or bytes first of all, which the host does while it writes them to the GPU's memory: the
// same results as by the kernel that does it for inputs that are on the GPU already, and where times are asked for.
#include "rewrite/rewrite.hpp"
#include "support/bound_values.hpp"
#include "support/kernel_case.hpp"
#include "support/run_graph.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace troupe;
using namespace troupe::test;

namespace {

/// −x, in float16 where the session chooses that.
graph negation(dim rows) {
  graph_builder b;
  b.output(b.op("Neg", {b.input("x", {rows, 300})}, {}, "y"));
  return b.g;
}

tensor numbers(int64_t rows) {
  tensor t = random_floats({rows, 300}, static_cast<uint64_t>(rows), -2, 2);
  const float special[] = {1e6f, -1e6f, std::numeric_limits<float>::infinity(), 0.f, -0.f, 1e-7f, 2049.f};
  std::copy(std::begin(special), std::end(special), t.mutable_data<float>());
  return t;
}

value_id in_steps(graph_builder& b, const tensor& zero) {
  const value_id x = b.input("x", {40, 300});
  return b.op("QuantizeLinear", {x, b.scalar(0.25f), b.constant("zero", zero)});
}

/// x in steps of 0.25 around a zero point, as integers.
graph steps(const tensor& zero) {
  graph_builder b(19);
  b.output(b.op("Cast", {in_steps(b, zero)}, attrs_of({{"to", int64_t{6}}}), "y"));
  return b.g;
}

int64_t wrong(const tensor& got, const tensor& in) {
  int64_t count = got.size() != in.size();
  for (int64_t i = 0; i < std::min(got.size(), in.size()); ++i) {
    const float x = in.values<float>()[i];
    const float kept = std::isinf(x) ? x : std::clamp(x, -65504.f, 65504.f);
    count += got.values<float>()[i] != -static_cast<float>(float16(kept));
  }
  return count;
}

} // namespace

TEST_CASE("inputs are narrowed by the host or by the GPU, with the same result", "[vulkan]") {
  const auto blocks = std::make_shared<host_block_pool>();
  for (const vulkan::vulkan_device_options& how :
       {vulkan::vulkan_device_options{},
        vulkan::vulkan_device_options{.blocks = blocks, .force_non_coherent = true, .force_staging = true},
        vulkan::vulkan_device_options{.force_staging = true}, // without imports all is staged in the host's memory
        vulkan::vulkan_device_options{.blocks = blocks, .poison = true, .force_staging = true}})
    for (const dim& rows : {dim(40), dim::symbol("n")}) {
      engine e = engine_of({gpu("g", how)});
      const session model = e.load(negation(rows), {.precision = precision::fp16});
      for (const int64_t n : {40, 40, rows.is_constant() ? 40 : 41, 40}) {
        const tensor in = numbers(n);
        CHECK(wrong(model.run({{"x", in}}).outputs.at("y"), in) == 0);
        CHECK(wrong(model.run({{"x", in}}, {.trace = true}).outputs.at("y"), in) == 0);
        CHECK(wrong(model.run({}, {.device_inputs = {{"x", e.put(in, "g")}}}).outputs.at("y"), in) == 0);
      }
      if (how.force_staging && rows.is_constant())
        CHECK(e.stats().at(0).recorded_chunks ==
              (how.blocks ? 3 : 2)); // each of the three in its own way, if inputs are written
    }
  CHECK(new_gpu_messages() == "");
}

TEST_CASE("a part of an input that the host narrows begins where it should", "[vulkan]") {
  const auto blocks = std::make_shared<host_block_pool>();
  graph_builder b;
  const value_id x = b.input("x", {40, 300});
  b.output(b.op("Neg", {b.op("Slice", {x, b.integers({7}), b.integers({40})})}, {}, "y"));
  engine e = engine_of({gpu("g", {.blocks = blocks, .force_staging = true})});
  const session model = e.load(b.g, {.precision = precision::fp16});
  const tensor in = numbers(40);
  const tensor part = tensor::of<float>({33, 300}, in.values<float>().subspan(size_t{7} * 300));
  for (int i = 0; i < 3; ++i)
    CHECK(wrong(model.run({{"x", in}}).outputs.at("y"), part) == 0);
  CHECK(new_gpu_messages() == "");
}

TEST_CASE("inputs are quantised by the host or by the GPU, with the same result", "[vulkan][quantised]") {
  const auto blocks = std::make_shared<host_block_pool>();
  tensor in = random_floats({40, 300}, 1, -50, 50);
  const float special[] = {0.125f,
                           0.375f,
                           -0.125f,
                           -0.375f,
                           1e9f,
                           -1e9f,
                           std::numeric_limits<float>::infinity(),
                           -std::numeric_limits<float>::infinity(),
                           std::numeric_limits<float>::quiet_NaN()};
  std::copy(std::begin(special), std::end(special), in.mutable_data<float>());
  for (const tensor& zero :
       {tensor::of<uint8_t>({}, std::vector<uint8_t>{7}), tensor::of<int8_t>({}, std::vector<int8_t>{-3})}) {
    engine e = engine_of({gpu("g", {.blocks = blocks, .force_staging = true})});
    const graph g = steps(zero);
    const session model = e.load(g);
    const auto wanted = [&](const run_result& made) {
      const tensor expected = run_graph(rewrite(g, {.fuse = false}), {in}).at(0);
      return std::ranges::equal(made.outputs.at("y").values<int32_t>(), expected.values<int32_t>());
    };
    CHECK(wanted(model.run({{"x", in}})));
    CHECK(wanted(model.run({{"x", in}}, {.trace = true})));
    CHECK(wanted(model.run({}, {.device_inputs = {{"x", e.put(in, "g")}}})));
    CHECK(e.stats().at(0).recorded_chunks == 3); // each in its own way
  }
  CHECK(new_gpu_messages() == "");
}

TEST_CASE("inputs that are quantised and leave the GPU as they are are right", "[vulkan][quantised]") {
  const auto blocks = std::make_shared<host_block_pool>();
  const tensor in = random_floats({40, 300}, 1, -50, 50);
  for (const bool reshaped : {false, true}) {
    graph_builder b(19);
    value_id y = in_steps(b, tensor::of<uint8_t>({}, std::vector<uint8_t>{7}));
    if (reshaped)
      y = b.op("Flatten", {y}, attrs_of({{"axis", int64_t{0}}}));
    b.output(y);
    const tensor expected = run_graph(rewrite(b.g, {.fuse = false}), {in}).at(0);
    engine e = engine_of({gpu("g", {.blocks = blocks, .poison = true, .force_staging = true})});
    const run_result made = e.load(b.g).run({{"x", in}});
    CHECK(std::ranges::equal(made.outputs.begin()->second.values<uint8_t>(), expected.values<uint8_t>()));
  }
  CHECK(new_gpu_messages() == "");
}

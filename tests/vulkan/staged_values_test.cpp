// Values that kernels use where they are staged: which ones, and that results are those of copied ones.
#include "vulkan/staged_values.hpp"

#include "plan/graphs.hpp"
#include "support/bound_values.hpp"
#include "support/kernel_case.hpp"

using namespace troupe;
using namespace troupe::test;
using namespace troupe::testing;
using vulkan::staged_values;

namespace {

/// Two devices that are like GPUs.
std::vector<device_info> gpus_of_tests() {
  std::vector<device_info> devices = cpus(2);
  for (device_info& d : devices) {
    d.host_memory = false;
    d.kind = device_kind::vulkan;
    d.gpu = gpu_features{};
  }
  return devices;
}

/// y = −(x + x) and more, in ways that staged values have to look out for.
graph tricky(dim rows) {
  graph_builder b;
  const value_id x = b.input("x", {rows, 20}), w = b.input("w", {rows, 20}), given = b.input("given", {3});
  const value_id sum = b.op("Add", {x, x}, {}, "sum"), product = b.op("Mul", {sum, w}, {}, "product");
  b.output(b.op("Neg", {product}, {}, "alone"));
  b.output(product);                                                           // read and an output
  b.output(b.op("Reshape", {b.op("Abs", {w}), b.integers({-1})}, {}, "flat")); // a view, whose source is not an output
  const value_id twice = b.op("Sqrt", {b.op("Abs", {x})}, {}, "twice");
  b.output(twice);
  b.output(b.op("Reshape", {twice, b.integers({-1})}, {}, "twice_flat")); // one value, two outputs
  b.output(b.op("Softmax", {b.op("Reshape", {w, b.integers({-1, 10})})}, {}, "soft"));
  b.output(b.op("ReduceSum", {x, b.integers({0, 1})}, {}, "total"));
  b.output(b.op("Neg", {given}, {}, "small"));
  return b.g;
}

named_tensors inputs_of(int64_t rows, uint64_t seed) {
  return {{"x", random_floats({rows, 20}, seed, -2, 2)},
          {"w", random_floats({rows, 20}, seed + 1, -2, 2)},
          {"given", random_floats({3}, seed + 2, -2, 2)}};
}

void check_equal(const named_tensors& got, const named_tensors& wanted, double tolerance) {
  REQUIRE(got.size() == wanted.size());
  for (const auto& [name, t] : wanted) {
    INFO(name);
    check_close(got.at(name), t, tolerance, tolerance);
  }
}

} // namespace

TEST_CASE("values that one chunk reads, or only makes, may be used where they are staged", "[vulkan][plan]") {
  graph_builder b;
  const value_id x = b.input({4}), shared = b.input({4}), leaves = b.input({4});
  const value_id a = b.node(plain_op, {x, shared}, {4}), view = b.node(view_op, {a}, {4});
  const value_id kept = b.node(plain_op, {shared}, {4}), read = b.node(plain_op, {leaves, kept}, {4});
  const auto p = make_plan(b.done({view, kept, read, leaves}), gpus_of_tests(), {placement_policy::single});
  REQUIRE(p->chunks.size() == 1);
  const staged_values s(*p, 0);
  CHECK(s.is_read_by_one(0, x));
  CHECK(s.is_read_by_one(0, shared));
  CHECK(s.is_only_made(0, view)); // by its source
  CHECK_FALSE(s.is_only_made(0, kept));
  CHECK(s.is_only_made(0, read));
  CHECK_FALSE(s.is_only_made(0, x));
}

TEST_CASE("a value of two outputs, or of several chunks, is copied", "[vulkan][plan]") {
  graph_builder b;
  const value_id x = b.input({4});
  const value_id a = b.node(plain_op, {x}, {4}), first = b.node(view_op, {a}, {4}), second = b.node(view_op, {a}, {4});
  const auto p = make_plan(b.done({first, second}), gpus_of_tests(), {placement_policy::single});
  CHECK_FALSE(staged_values(*p, 0).is_only_made(0, first));

  graph_builder c; // three nodes in turns on two devices: the first device has two chunks
  const value_id y = c.input({4}), n1 = c.node(plain_op, {y}, {4}), n2 = c.node(plain_op, {n1}, {4});
  const auto q = make_plan(c.done({c.node(plain_op, {y, n2}, {4})}), gpus_of_tests(), {placement_policy::round_robin});
  REQUIRE(q->chunks.size() == 3);
  const chunk_id first_chunk = q->chunk_of_node[0], last = q->chunk_of_node[2];
  REQUIRE(q->chunks[first_chunk].device == q->chunks[last].device);
  const staged_values s(*q, q->chunks[last].device);
  CHECK_FALSE(s.is_read_by_one(first_chunk, y));
  CHECK_FALSE(s.is_read_by_one(last, y));
  CHECK(s.is_read_by_one(last, n2));
  CHECK(s.is_only_made(first_chunk, n1));
  CHECK_FALSE(s.is_only_made(last, n1));
}

TEST_CASE("results are the same whether values are used where they are staged or copied", "[vulkan]") {
  const auto blocks = std::make_shared<host_block_pool>();
  engine reference({.devices = {"cpu"}});
  for (const dim& rows : {dim(6), dim::symbol("n")})
    for (const vulkan::vulkan_device_options& how :
         {vulkan::vulkan_device_options{.blocks = blocks, .force_staging = true},
          vulkan::vulkan_device_options{.blocks = blocks, .force_non_coherent = true, .force_staging = true},
          vulkan::vulkan_device_options{.blocks = blocks, .poison = true},
          vulkan::vulkan_device_options{.force_staging = true}})
      for (const auto precision : {precision::fp32, precision::fp16}) {
        engine e = engine_of({gpu("g", how)});
        const session model = e.load(tricky(rows), {.precision = precision}),
                      wanted = reference.load(tricky(rows), {.precision = precision});
        const double tolerance = precision == precision::fp16 ? 2e-2 : 1e-4;
        uint64_t seed = 1;
        for (const int64_t n : {6, 6, rows.is_constant() ? 6 : 9, 6}) {
          const named_tensors in = inputs_of(n, seed += 10);
          const named_tensors out = wanted.run(in).outputs;
          check_equal(model.run(in).outputs, out, tolerance);
          check_equal(model.run(in, {.trace = true}).outputs, out, tolerance);
          named_tensors others = in;
          others.erase("x"); // is on the GPU already
          check_equal(model.run(others, {.device_inputs = {{"x", e.put(in.at("x"), "g")}}}).outputs, out, tolerance);
          // Values that stay on the GPU leave the staging memory, too.
          const run_result kept = model.run(in, {.keep = {"alone", "soft", "total"}});
          for (const auto& [name, value] : kept.kept)
            check_close(e.fetch(value), out.at(name), tolerance, tolerance);
        }
      }
}

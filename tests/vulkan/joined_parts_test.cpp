// Kernels that write straight into their part of a Concat's output: every alternative, aligned and not, in float32 and
// float16, against the reference kernels, under the validation layer.
#include "plan/cut/joined_parts.hpp"
#include "rewrite/rewrite.hpp"
#include "support/catch.hpp"
#include "support/gpu.hpp"
#include "support/run_graph.hpp"
#include "support/run_inline.hpp"
#include "tensor/convert.hpp"

#include <cmath>

using namespace troupe;
using namespace troupe::test;

namespace {

const dim batch = dim::symbol("n");

tensor as(dtype type, const tensor& t) {
  tensor out(type, t.dims());
  convert(t.view(), out.mutable_ref());
  return out;
}

/// Networks of convolutions and products whose outputs are joined.
struct net : graph_builder {
  explicit net(dtype t) : type(t) {}

  value_id weight(shape dims) {
    const auto number = static_cast<uint32_t>(g.values.size());
    const double scale = 1 / std::sqrt(static_cast<double>(volume(dims) / dims[0]));
    tensor w = random_tensor(std::move(dims), number);
    for (float& x : std::span(w.mutable_data<float>(), static_cast<size_t>(w.size())))
      x *= static_cast<float>(scale);
    return constant("w" + std::to_string(number), as(type, w));
  }
  value_id conv(value_id x, int64_t from, int64_t to, int64_t kernel, bool active = true, int64_t groups = 1) {
    const value_id y = op("Conv", {x, weight({to, from / groups, kernel, kernel}), weight({to})},
                          attrs_of({{"pads", std::vector<int64_t>(4, kernel / 2)}, {"group", groups}}));
    return active ? op("Relu", {y}) : y;
  }
  value_id product(value_id x, int64_t from, int64_t to) { return op("MatMul", {x, weight({from, to})}); }
  value_id concat(std::vector<value_id> parts, int64_t axis = 1) {
    return op("Concat", std::move(parts), attrs_of({{"axis", axis}}));
  }

  dtype type;
};

/// Runs `n` on a GPU, each alternative of its kernels, and compares with the reference; `concats` of the plan are
/// joined.
void check(net& n, const std::vector<shape>& inputs, size_t concats = 1) {
  const graph given = rewrite(n.g, {.fuse = false});
  const auto program = std::make_shared<const graph>(rewrite(n.g, {}));
  for (const uint32_t alternative : {0u, 1u, 2u}) {
    INFO("alternative " << alternative << ", " << to_string(n.type));
    const auto gpu = open_gpu({.poison = true, .alternative = alternative});
    if (n.type == dtype::float16 && !gpu->info().gpu->float16)
      return;
    const auto p = make_plan(program, {gpu->info()}, {});
    verify(*p);
    CHECK(std::count_if(p->program->nodes.begin(), p->program->nodes.end(),
                        [&](const node& call) { return is_joined(*p, call); }) == static_cast<ptrdiff_t>(concats));
    inline_runner runner(p, {gpu.get()});
    for (const shape& dims : inputs) {
      INFO("input " << to_string(std::span<const int64_t>(dims)));
      const std::vector<tensor> in{as(n.type, random_tensor(dims, 1))};
      const std::vector<tensor> got = runner.run(in), wanted = run_graph(given, in);
      REQUIRE(got.size() == wanted.size());
      for (size_t o = 0; o < got.size(); ++o) {
        const tensor a = as(dtype::float32, got[o]), b = as(dtype::float32, wanted[o]);
        REQUIRE(a.dims() == b.dims());
        double worst = 0;
        for (int64_t i = 0; i < a.size(); ++i) {
          const double error = std::abs(a.values<float>()[i] - b.values<float>()[i]);
          worst = error <= worst ? worst : error; // NaN counts
        }
        CHECK(worst < (n.type == dtype::float16 ? 2e-2 : 1e-4));
      }
    }
  }
  CHECK(new_gpu_messages() == "");
}

constexpr dtype float_types[] = {dtype::float32, dtype::float16};

} // namespace

TEST_CASE("a fire module's convolutions write into its Concat's output", "[vulkan][E1][slow]") {
  for (const dtype type : float_types)
    for (const auto& [first, second] : {std::pair<int64_t, int64_t>{64, 64}, {8, 24}, {5, 8}, {8, 3}, {1, 6}}) {
      INFO(first << " and " << second << " channels");
      net n(type);
      const value_id x = n.conv(n.input("x", {batch, 8, 9, 7}, type), 8, 16, 1);
      const value_id all = n.concat({n.conv(x, 16, first, 1), n.conv(x, 16, second, 3)});
      n.output(n.op("Identity", {n.conv(all, first + second, 4, 1)}, {}, "y"));
      n.output(n.op("Abs", {all}, {}, "all"));
      check(n, {{2, 8, 9, 7}, {1, 8, 9, 7}, {5, 8, 9, 7}, {2, 8, 9, 7}});
    }
}

TEST_CASE("a joined Concat's output may be a model's", "[vulkan][slow]") {
  for (const dtype type : float_types) {
    net n(type);
    const value_id x = n.input("x", {2, 8, 5, 6}, type);
    n.output(
        n.op("Identity", {n.concat({n.conv(x, 8, 8, 3), n.conv(x, 8, 16, 1, false), n.conv(x, 8, 4, 1)})}, {}, "y"));
    check(n, {{2, 8, 5, 6}});
  }
}

TEST_CASE("split sums, groups and one channel a group write into parts", "[vulkan][slow]") {
  for (const dtype type : float_types)
    for (const int64_t more : {0, 3}) { // aligned or not
      net n(type);
      const value_id x = n.input("x", {1, 256, 7, 7}, type);
      const value_id deep = n.conv(x, 256, 16 + more, 3); // split
      const value_id grouped = n.conv(x, 256, 16, 3, true, 2);
      const value_id each = n.conv(x, 256, 256, 3, true, 256); // depthwise
      n.output(n.op("Abs", {n.concat({deep, each, grouped, n.conv(x, 256, 8, 1)})}, {}, "y"));
      check(n, {{1, 256, 7, 7}});
    }
}

TEST_CASE("products write into their columns", "[vulkan][slow]") {
  for (const dtype type : float_types)
    for (const int64_t columns : {8, 24, 5}) {
      net n(type);
      const value_id x = n.input("x", {3, batch, 40}, type);
      n.output(n.op("Abs", {n.concat({n.product(x, 40, 16), n.product(x, 40, columns), n.product(x, 40, 72)}, -1)}, {},
                    "y"));
      check(n, {{3, 1, 40}, {3, 50, 40}, {3, 49, 40}});
    }
}

TEST_CASE("a part whose rows are added to something has separate bytes", "[vulkan][slow]") {
  net n(dtype::float32);
  const value_id x = n.conv(n.input("x", {1, 8, 5, 6}), 8, 8, 1);
  const value_id sum = n.op("Add", {n.conv(x, 8, 8, 3, false), x}); // fused: the residual's rows have another stride
  n.output(n.op("Abs", {n.concat({sum, n.conv(x, 8, 4, 1)})}, {}, "y"));
  check(n, {{1, 8, 5, 6}}, 0);
}

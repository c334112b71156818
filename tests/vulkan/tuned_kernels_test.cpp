// Every way to run products and convolutions that a tuner may choose, on GPU 0, against the reference kernels.
#include "measure/tuning.hpp"

#include "launch/launch_table.hpp"
#include "rewrite/rewrite.hpp"
#include "support/catch.hpp"
#include "support/gpu.hpp"
#include "support/run_graph.hpp"
#include "support/run_inline.hpp"
#include "tensor/convert.hpp"
#include "vulkan/pipeline_file.hpp"

#include <cmath>

using namespace troupe;
using namespace troupe::test;

namespace {

tensor as(dtype type, const tensor& t) {
  tensor out(type, t.dims());
  convert(t.view(), out.mutable_ref());
  return out;
}

/// Of a size at which sums of `depth` products are near 1.
tensor weights(dtype type, shape dims, int64_t depth) {
  tensor w = random_tensor(std::move(dims), static_cast<uint32_t>(depth));
  for (float& x : std::span(w.mutable_data<float>(), static_cast<size_t>(w.size())))
    x /= std::sqrt(static_cast<float>(depth));
  return as(type, w);
}

graph product(dtype type, int64_t m, int64_t n, int64_t k, bool constant) {
  graph_builder b;
  std::vector<value_id> operands{b.input("a", {m, k}, type)};
  operands.push_back(constant ? b.constant("b", weights(type, {k, n}, k)) : b.input("b", {k, n}, type));
  if (constant)
    operands.push_back(b.constant("c", weights(type, {n}, 1)));
  b.output(b.op(constant ? "Gemm" : "MatMul", operands));
  return b.g;
}

graph convolution(dtype type, int64_t channels, int64_t filters, int64_t kernel, int64_t groups, int64_t dilation = 1) {
  graph_builder b;
  const value_id x = b.input("x", {1, channels, 9, 7}, type);
  const int64_t depth = channels / groups * kernel * kernel;
  const value_id w = b.constant("w", weights(type, {filters, channels / groups, kernel, kernel}, depth));
  b.output(b.op("Relu", {b.op("Conv", {x, w, b.constant("c", weights(type, {filters}, 1))},
                              attrs_of({{"pads", std::vector<int64_t>(4, kernel / 2 * dilation)},
                                        {"group", groups},
                                        {"dilations", std::vector<int64_t>(2, dilation)}}))}));
  return b.g;
}

/// Fails unless two results are about the same.
void check_near(const tensor& got, const tensor& want, double tolerance) {
  REQUIRE(got.dims() == want.dims());
  double worst = 0;
  for (int64_t i = 0; i < got.size(); ++i) {
    const double expected = want.values<float>()[i];
    const double error = std::abs(got.values<float>()[i] - expected) / std::max(1., std::abs(expected));
    worst = error <= worst ? worst : error; // NaN counts
  }
  CHECK(worst < tolerance);
}

/// Runs the model by each way of each of its calls; returns how many there were.
size_t check_ways(const graph& model, dtype type) {
  static const auto choices = std::make_shared<kernel_choices>(vulkan::shader_revisions_of(gpus()->gpus()[0].snapshot));
  static const std::unique_ptr<device> gpu = open_gpu({.poison = true, .measured = choices});
  const graph given = rewrite(model, {.fuse = false});
  const auto program = std::make_shared<const graph>(rewrite(model, {}));
  const auto p = make_plan(program, {gpu->info()}, {});
  std::vector<tensor> inputs;
  for (const value_id v : given.inputs) {
    shape dims;
    for (const dim& d : *given.values[v].dims)
      dims.push_back(d.constant());
    inputs.push_back(as(type, random_tensor(dims, 7)));
  }
  const std::vector<tensor> wanted = run_graph(given, inputs);
  size_t count = 0;
  for (const tunable_call& call : tunable_calls(*bind_segment(p, 0, {}), 0, choices->revision()))
    for (const kernel_way& way : call.ways) {
      INFO(call.what << ": " << way.name);
      choices->set({{call.key, way.kernel}});
      const tensor got = as(dtype::float32, inline_runner(p, {gpu.get()}).run(inputs).at(0));
      const tensor want = as(dtype::float32, wanted.at(0));
      check_near(got, want, type == dtype::float16 ? 1e-2 : 1e-4);
      ++count;
    }
  choices->set({});
  CHECK(new_gpu_messages() == "");
  return count;
}

/// Runs the model by ways that runs may take while better kernels are compiled: of products one in `step`, of other
/// calls all. Returns how many there were.
size_t check_every_way(const graph& model, dtype type, size_t step) {
  static const auto choices = std::make_shared<kernel_choices>(vulkan::shader_revisions_of(gpus()->gpus()[0].snapshot));
  static const std::unique_ptr<device> gpu = open_gpu({.poison = true, .measured = choices});
  const auto program = std::make_shared<const graph>(rewrite(model, {}));
  const auto p = make_plan(program, {gpu->info()}, {});
  const bound_plan_ptr bound = bind_segment(p, 0, {});
  std::vector<tensor> inputs;
  for (const value_id v : model.inputs)
    inputs.push_back(as(type, random_tensor(constants(*model.values[v].dims), 7)));
  const tensor want = as(dtype::float32, run_graph(rewrite(model, {.fuse = false}), inputs).at(0));
  size_t count = 0;
  for (const node& n : p->program->nodes) {
    gpu_call call = make_gpu_call(*bound, n, *gpu->info().gpu);
    call.ways = way_range::every;
    const launch_lists lists = launches_of(*n.def, call);
    const size_t first = count;
    for (size_t i = 0; i < lists.size(); ++i) {
      if (i % step != 0 && !lists[i].tile.empty())
        continue;
      INFO(describe(n) << ": " << lists[i].name << ' ' << lists[i].tile);
      choices->set({{key_of_call(*n.def, call), key_of_kernel(lists[i], choices->revision())}});
      check_near(as(dtype::float32, inline_runner(p, {gpu.get()}).run(inputs).at(0)), want,
                 type == dtype::float16 ? 2e-2 : 1e-4);
      ++count;
    }
    choices->set({});
    CHECK(count > first);
  }
  CHECK(new_gpu_messages() == "");
  return count;
}

graph attention(dtype type, int64_t queries, int64_t keys) {
  graph_builder b(23);
  const value_id q = b.input("q", {1, 2, queries, 64}, type), k = b.input("k", {1, 2, keys, 64}, type);
  b.output(b.op("Attention", {q, k, k}));
  return b.g;
}

graph resized(dtype type, int64_t width) {
  graph_builder b;
  const value_id x = b.input("x", {1, 3, 5, width}, type);
  const float scales[] = {1, 1, 2, 2};
  b.output(b.op("Resize", {x, no_value, b.constant("s", tensor::of<float>({4}, scales))},
                attrs_of({{"mode", std::string("linear")}})));
  return b.g;
}

} // namespace

TEST_CASE("every way that a run may take meanwhile is right", "[vulkan][E1][C11][slow]") {
  for (const dtype type : {dtype::float32, dtype::float16}) {
    INFO(to_string(type));
    size_t count = 0;
    for (const auto& [queries, keys] : {std::pair<int64_t, int64_t>{1, 9}, {3, 3}, {7, 40}, {14, 14}, {33, 65}})
      count += check_every_way(attention(type, queries, keys), type, 1);
    for (const auto& [kernel, dilation] : {std::pair<int64_t, int64_t>{1, 1}, {3, 1}, {3, 2}})
      count += check_every_way(convolution(type, 8, 8, kernel, 8, dilation), type, 1);
    count += check_every_way(convolution(type, 16, 24, 3, 1), type, 11);
    count += check_every_way(product(type, 3, 40, 72, true), type, 11);
    count += check_every_way(product(type, 70, 33, 130, false), type, 11);
    for (const int64_t width : {6, 7})
      count += check_every_way(resized(type, width), type, 1);
    CHECK(count > 60);
  }
}

TEST_CASE("every tile of a product that may be chosen is right", "[vulkan][E1][C11][slow]") {
  for (const dtype type : {dtype::float32, dtype::float16})
    for (const auto& [m, n, k] : {std::array<int64_t, 3>{33, 40, 520}, {130, 72, 264}, {65, 33, 37}, {3, 24, 128}})
      for (const bool constant : {true, false}) {
        INFO(to_string(type) << ' ' << m << 'x' << n << 'x' << k << (constant ? " constant" : ""));
        CHECK(check_ways(product(type, m, n, k, constant), type) >= 6);
      }
}

TEST_CASE("every tile of a convolution that may be chosen is right", "[vulkan][E1][C11][slow]") {
  for (const dtype type : {dtype::float32, dtype::float16})
    for (const auto& [channels, filters, kernel, groups] :
         {std::array<int64_t, 4>{16, 32, 3, 1}, {64, 24, 1, 1}, {5, 7, 3, 1}, {16, 16, 3, 2}, {8, 8, 3, 8}}) {
      INFO(to_string(type) << ' ' << channels << " to " << filters << ", kernel " << kernel << ", groups " << groups);
      CHECK(check_ways(convolution(type, channels, filters, kernel, groups), type) >= 4);
    }
}

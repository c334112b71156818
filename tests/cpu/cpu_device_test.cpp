#include "cpu/cpu_device.hpp"

#include "base/parallel.hpp"
#include "cpu/prepared_plan.hpp"
#include "ops/evaluate.hpp"
#include "ops/registry.hpp"
#include "rewrite/rewrite.hpp"
#include "support/catch.hpp"
#include "support/run_graph.hpp"
#include "support/run_inline.hpp"
#include "support/small_models.hpp"

using namespace troupe;
using namespace troupe::test;

TEST_CASE("large outputs of the CPU are in the blocks that devices share", "[cpu]") {
  const auto blocks = std::make_shared<host_block_pool>();
  const auto cpu = make_cpu_device("cpu", {.blocks = blocks});
  const auto program = std::make_shared<const graph>(rewrite(chain(2, {dim::symbol("n"), 3}), {}));
  const auto p = make_plan(program, {cpu->info()}, {});
  inline_runner runner(p, {cpu.get()});
  for (const int64_t rows : {int64_t{2}, host_block_alignment}) {
    tensor x(dtype::float32, {rows, 3});
    std::fill_n(x.mutable_data<float>(), x.size(), 0.f);
    const std::vector<tensor> out = runner.run(std::vector<tensor>{x});
    CHECK(out.at(0).values<float>()[5] == Approx(0.5));
    CHECK((blocks->find(out[0].data(), out[0].bytes()) != nullptr) == (rows > 2));
  }
}

TEST_CASE("a CPU device has the threads that it was given", "[cpu]") {
  CHECK(make_cpu_device("cpu", {.threads = 3})->info().units == 3);
  CHECK(make_cpu_device("cpu")->info().units == thread_count());
}

TEST_CASE("a call without elements to make takes no time, however large its other dims are", "[cpu]") {
  constexpr int64_t huge = int64_t{1} << 40;
  test::graph_builder b;
  const value_id padded = b.op("Pad", {b.input("x", {dim::symbol("n"), 4}), b.integers({0, 0, 0, huge})});
  b.output(b.op("Relu", {padded}));
  const auto cpu = make_cpu_device("cpu");
  inline_runner runner(make_plan(std::make_shared<const graph>(rewrite(b.g, {})), {cpu->info()}, {}), {cpu.get()});
  CHECK(runner.run(std::vector<tensor>{tensor(dtype::float32, {0, 4})}).at(0).dims() == shape{0, huge + 4});
  const std::vector<tensor> operands{tensor(dtype::float32, {0, 4}),
                                     tensor::of<int64_t>({4}, std::vector<int64_t>{0, 0, 0, huge})};
  CHECK(evaluate(*find_op("", "Pad", 17), {}, operands).at(0).dims() == shape{0, huge + 4});
}

TEST_CASE("products of microseconds are one thread's work, larger ones are not", "[cpu]") {
  const auto small_steps = [](int64_t rows) {
    test::graph_builder b;
    const value_id product = b.op("MatMul", {b.input("x", {rows, 16}), b.input("w", {16, 16})});
    b.output(b.op("Relu", {product}));
    const auto cpu = make_cpu_device("cpu");
    const auto p = make_plan(std::make_shared<const graph>(rewrite(b.g, {.fuse = false})), {cpu->info()}, {});
    kernel_resources resources;
    const auto prepared = prepare_plan(bind_segment(p, 0, {}), 0, resources);
    std::vector<bool> small;
    for (const prepared_step& step : prepared->chunks.at(0).steps)
      small.push_back(step.is_small);
    return small;
  };
  CHECK(small_steps(64) == std::vector<bool>{true, false}); // Relu's loop counts its elements itself
  CHECK(small_steps(100'000) == std::vector<bool>{false, false});
}

TEST_CASE("a kernel that was made for one thread keeps to its scratch when more run it", "[cpu]") {
  constexpr int64_t rows = 5, k = 64, n = 96, block = 32,
                    own = 32 * k * int64_t{sizeof(float)}; // the bytes that one thread needs
  const attributes attrs = attrs_of({{"K", k}, {"N", n}, {"bits", int64_t{4}}, {"block_size", block}});
  tensor codes(dtype::uint8, {n, k / block, block / 2}), y(dtype::float32, {rows, n});
  for (int64_t i = 0; i < codes.size(); ++i)
    codes.mutable_data<uint8_t>()[i] = static_cast<uint8_t>(37 * i);
  const std::vector<tensor> operands{random_tensor({rows, k}, 1), codes, random_tensor({n, k / block}, 2)};
  test::graph_builder b;
  b.g.opsets["com.microsoft"] = 1;
  b.output(b.call("MatMulNBits", {b.input("a", {rows, k}), b.constant("b", codes), b.constant("scales", operands[2])},
                  {"y"}, attrs, "com.microsoft")[0]);
  const auto cpu = make_cpu_device("cpu");
  const auto p = make_plan(std::make_shared<const graph>(rewrite(b.g, {})), {cpu->info()}, {});
  kernel_resources resources;
  constexpr int64_t all = own * 256;
  resources.scratch.reserve(all);
  auto* scratch = static_cast<uint8_t*>(resources.scratch.data());
  std::fill_n(scratch, all, uint8_t{0x5a});
  const auto prepared = prepare_plan(bind_segment(p, 0, {}), 0, resources);
  const prepared_step& step = prepared->chunks.at(0).steps.at(0);
  REQUIRE(step.kernel_name == "matmul_nbits");
  REQUIRE(resources.scratch.data() == scratch);
  const std::array<const void*, 3> in{operands[0].data(), operands[1].data(), operands[2].data()};
  const std::array<void*, 1> out{y.mutable_data()};
  step.run->run({in.data(), out.data(), nullptr});
  CHECK(std::all_of(scratch + own, scratch + all, [](uint8_t byte) { return byte == 0x5a; }));
  const tensor want = evaluate(*find_op("com.microsoft", "MatMulNBits", 1), attrs, operands).at(0);
  for (int64_t i = 0; i < y.size(); ++i)
    CHECK(y.data<float>()[i] == Approx(want.data<float>()[i]).margin(1e-3));
  inline_runner runner(p, {cpu.get()});
  CHECK(runner.run(std::vector<tensor>{operands[0]}).at(0).values<float>()[n] ==
        Approx(want.data<float>()[n]).margin(1e-3));
}

TEST_CASE("free heights and widths have the layouts, fusions and kernels of fixed ones", "[cpu]") {
  const auto steps = [](const dim& height, const dim& width) {
    test::graph_builder b;
    const auto conv = [&](value_id x, int64_t in, int64_t out, int64_t stride, const char* op = "Conv") {
      const shape dims = op == std::string("Conv") ? shape{out, in, 3, 3} : shape{in, out, 2, 2};
      const value_id w = b.constant("w" + std::to_string(b.g.values.size()), random_tensor(dims, 1));
      const int64_t pad = op == std::string("Conv") ? 1 : 0;
      return b.op(op, {x, w},
                  attrs_of({{"pads", std::vector<int64_t>(4, pad)}, {"strides", std::vector<int64_t>(2, stride)}}));
    };
    const value_id x = b.op("Relu", {conv(b.input("x", {1, 3, height, width}), 3, 16, 1)});
    const value_id down = b.op("Relu", {conv(x, 16, 32, 2)});
    const value_id same = b.op("Relu", {b.op("Add", {conv(down, 32, 32, 1), down})});
    const value_id pooled =
        b.op("MaxPool", {same},
             attrs_of({{"kernel_shape", std::vector<int64_t>{3, 3}}, {"pads", std::vector<int64_t>(4, 1)}}));
    const value_id up = conv(pooled, 32, 16, 2, "ConvTranspose");
    const value_id joined = b.op("Concat", {up, x}, attrs_of({{"axis", int64_t{1}}}));
    b.output(b.op("Sigmoid", {conv(joined, 32, 4, 1)}));
    b.output(b.op("GlobalAveragePool", {joined}));
    const auto cpu = make_cpu_device("cpu");
    const auto p = make_plan(std::make_shared<const graph>(rewrite(b.g, {})), {cpu->info()}, {});
    kernel_resources resources;
    const auto prepared = prepare_plan(bind_segment(p, 0, {{"h", 24}, {"w", 16}}), 0, resources);
    std::vector<std::string> list;
    for (const prepared_step& step : prepared->chunks.at(0).steps) {
      const node& n = p->program->nodes[step.call];
      const bool last = p->program->values[n.outputs[0]].layout == layout::channels_last;
      list.push_back(fmt::format("{} by {}{}", operator_name(n), step.kernel_name, last ? ", channels last" : ""));
    }
    return list;
  };
  const std::vector<std::string> fixed = steps(24, 16);
  CHECK(fixed == steps(dim::symbol("h"), dim::symbol("w")));
  CHECK(std::count(fixed.begin(), fixed.end(), "troupe.Conv by panel_conv, channels last") >= 3);
  CHECK(std::count(fixed.begin(), fixed.end(), "ConvTranspose by tiling_deconv, channels last") == 1);
}

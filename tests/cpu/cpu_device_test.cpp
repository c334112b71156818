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
    const value_id product = b.op("MatMul", {b.input("x", {rows, 16}), b.constant("w", random_tensor({16, 16}, 1))});
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
  const int before = thread_count();
  {
    const single_thread alone(true);
    CHECK(thread_count() == 1);
    const single_thread not_asked_for(false);
    CHECK(thread_count() == 1);
  }
  CHECK(thread_count() == before);
}

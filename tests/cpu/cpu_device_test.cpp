#include "cpu/cpu_device.hpp"

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

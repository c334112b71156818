// Large values from GPU to GPU, through host memory.
#include "actors/engine_access.hpp"
#include "ops/registry.hpp"
#include "plan/cut/split_transfers.hpp"
#include "support/catch.hpp"
#include "support/gpu.hpp"
#include "support/run_graph.hpp"

using namespace troupe;
using namespace troupe::test;

TEST_CASE("a value that moves between GPUs in pieces arrives whole", "[vulkan][A8][A13]") {
  constexpr int64_t rows = 2 * transfer_piece_bytes / 4 / 1000 + 77, columns = 1000;
  graph_builder b;
  const value_id x = b.input("x", {1, columns}), y = b.input("y", {rows, 1});
  const value_id large = b.op("Add", {x, y}); // first GPU
  b.output(b.op("Neg", {large}, {}, "out"));  // second GPU
  engine e = make_engine({.devices = {"vulkan:0*2"}}, {.gpu_validation = gpus_are_validated()});
  const session s = e.load(b.g, {.policy = placement_policy::round_robin, .fuse = false});
  tensor row(dtype::float32, {1, columns}), column(dtype::float32, {rows, 1});
  for (int64_t i = 0; i < columns; ++i)
    row.mutable_data<float>()[i] = static_cast<float>(i);
  for (int64_t i = 0; i < rows; ++i)
    column.mutable_data<float>()[i] = static_cast<float>(i * columns);
  for (int run = 0; run < 2; ++run) {
    const run_result result = s.run({{"x", row}, {"y", column}});
    CHECK(result.stats.chunks == 6); // three pieces down, three up
    int64_t wrong = 0;
    const auto values = result.outputs.at("out").values<float>();
    for (int64_t i = 0; i < rows * columns; ++i)
      wrong += values[i] != -static_cast<float>(i); // below 2^24, so exact
    CHECK(wrong == 0);
  }
  CHECK(gpu_messages(e).empty());
}

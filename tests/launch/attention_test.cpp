// Which of the kernels by matrices of groups attention takes on a fabricated device. What they compute is tested on a device.
#include "launch/launches.hpp"
#include "ops/run_op.hpp"
#include "support/catch.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

/// The shader that comes first for heads of one batch.
std::string first_shader(int64_t batch, int64_t queries, int64_t keys, int64_t width) {
  const gpu_features gpu{.max_group_size = 1024,
                         .shared_bytes = 49152,
                         .max_groups = {1u << 31, 65535, 65535},
                         .float16 = true,
                         .group_matrices = true,
                         .units = 132};
  const auto half = [](shape dims) { return operand{.type = dtype::float16, .dims = std::move(dims)}; };
  const operand q = half({batch, 12, queries, width}), kv = half({batch, 12, keys, width});
  const attributes none;
  return fused_attention_launches({none, {q, kv, kv}, {q}, gpu}).at(0).launches.at(0).shader;
}

} // namespace

TEST_CASE("Attention takes all the keys at once where they and the queries are few", "[ops]") {
  CHECK(first_shader(1, 128, 128, 64) == "attention_matrices.f16_all32x128x64");
  CHECK(first_shader(1, 197, 129, 64) == "attention_matrices.f16_all32x256x64");
  CHECK(first_shader(1, 197, 256, 64) == "attention_matrices.f16_all32x256x64");
  CHECK(first_shader(1, 197, 257, 64) == "attention_matrices.f16_32x64x64");
  CHECK(first_shader(1, 197, 197, 128) == "attention_matrices.f16_32x64x128");
  CHECK(first_shader(32, 197, 197, 64) == "attention_matrices.f16_64x32x64"); // blocks of 64 fill the device
}

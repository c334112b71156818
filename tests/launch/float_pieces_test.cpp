// Which products and convolutions of float32 are computed by matrix units, in pieces (shaders/float_pieces.glsl).
// Results are tested on a device.
#include "launch/parameters.hpp"
#include "support/catch.hpp"
#include "support/fabricated_gpu.hpp"
#include "support/operator_launches.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

gpu_features gpu_with_units() {
  gpu_features gpu = h100_like();
  gpu.cooperative_matrix = gpu.strong_matrices = true;
  return gpu;
}

/// The first way to multiply m × k by k × n.
launch_list first_way(int64_t m, int64_t n, int64_t k, const gpu_features& gpu = gpu_with_units()) {
  const attributes none;
  constexpr dtype type = dtype::float32;
  return onnx_launches("MatMul", {none, {{type, {m, k}}, {type, {k, n}}}, {{type, {m, n}}}, gpu}).at(0);
}

} // namespace

TEST_CASE("Large products of float32 are computed in pieces, small ones by scalar arithmetic", "[launch][pieces]") {
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{4096, 3072, 768}, {4096, 768, 3072}, {1024, 1024, 1024}}) {
    const launch_list list = first_way(m, n, k);
    CHECK(list.name == "matmul_cooperative");
    const launch& l = list.launches.at(0);
    CHECK(l.shader.starts_with("matmul_cooperative.f32_"));
    CHECK((l.constants.at(8) & shader::product_vector_out) != 0);
    gpu_features other = gpu_with_units();
    other.strong_matrices = false; // a tuner may still choose pieces
    CHECK(first_way(m, n, k, other).name == "matmul");
  }
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{49, 160, 960}, {3136, 24, 96}, {128, 768, 768}})
    CHECK(first_way(m, n, k).name == "matmul");
}

TEST_CASE("Operands that are gathered element by element are not worth splitting", "[launch][pieces]") {
  CHECK(first_way(4096, 3072, 770).name == "matmul");
  CHECK(first_way(4096, 3070, 768).name == "matmul");
}

TEST_CASE("Results whose columns are not whole vectors are written one by one", "[launch][pieces]") {
  const attributes none;
  constexpr dtype type = dtype::float32;
  auto w = std::make_shared<weight>(); // its bytes are not asked for
  w->type = type;
  w->dims = {1024, 1022};
  operand right{type, w->dims};
  right.constant = w;
  const launch_list list =
      onnx_launches("MatMul", {none, {{type, {1024, 1024}}, right}, {{type, {1024, 1022}}}, gpu_with_units()}).at(0);
  CHECK(list.name == "matmul_cooperative"); // packed by columns, whose depths are whole vectors
  CHECK((list.launches.at(0).constants.at(8) & shader::product_vector_out) == 0);
}

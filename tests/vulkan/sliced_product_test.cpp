// Products and convolutions of float32 by tiles whose depths are shared among slices of a group
// (shaders/gemm_tiled.glsl), which launch rules take on large devices alone: forced, against the reference, at sizes
// that leave remainders in tiles, depths and slices.
#include "support/catch.hpp"
#include "support/graph_builder.hpp"
#include "support/kernel_case.hpp"

#include <limits>

using namespace troupe;
using namespace troupe::test;

namespace {

using int_list = std::vector<int64_t>;

/// A call on random operands of these dims, input 1 and the bias constants if that is asked for.
kernel_case call_of(std::string op, const std::vector<shape>& dims, attributes attrs = {}, std::string domain = "",
                    uint32_t constants = 0) {
  kernel_case c{.op = std::move(op),
                .attrs = std::move(attrs),
                .domain = std::move(domain),
                .atol = 1e-4,
                .constants = constants};
  for (const shape& d : dims)
    c.inputs.push_back(random_floats(d, c.inputs.size() + 1));
  c.in_double = true;
  return c;
}

/// Checks a call by the tiles of `kernel` with two slices, and with four where shared memory has room for them.
void check_slices(const kernel_case& c, const std::string& kernel) {
  CHECK_FALSE(check_gpu_ways(c, kernel + " 32x32x32/128").empty());
  check_gpu_ways(c, kernel + " 32x32x64/256");
}

} // namespace

TEST_CASE("GPU products by slices: rows, columns and depths around tiles and slices", "[vulkan][slices]") {
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{33, 37, 70}, {40, 48, 64}, {9, 65, 5}, {31, 32, 97}})
    for (const uint32_t constants : {0, 2})
      check_slices(call_of("MatMul", {{m, k}, {k, n}}, {}, "", constants), "matmul");
  check_slices(call_of("MatMul", {{3, 1, 33, 12}, {2, 12, 40}}), "matmul");
  check_slices(call_of("MatMul", {{9, 1024}, {1024, 40}}, {}, "", 2), "matmul"); // splits whose sums are added later
}

TEST_CASE("GPU products by slices: operands by rows and columns, and their endings", "[vulkan][slices]") {
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{36, 44, 72}, {35, 41, 50}})
    check_slices(call_of("Gemm", {{k, m}, {n, k}, {n}},
                         attrs_of({{"transA", int64_t{1}}, {"transB", int64_t{1}}, {"alpha", 0.5f}, {"beta", 2.f}})),
                 "matmul");
  check_slices(call_of("MatMul", {{34, 40}, {40, 36}, {36}, {34, 36}}, attrs_of({{"activation", std::string("Relu")}}),
                       "troupe", 6),
               "matmul");
}

TEST_CASE("GPU products by slices: NaN and infinities stay in their rows", "[vulkan][slices]") {
  kernel_case c = call_of("MatMul", {{40, 64}, {64, 48}});
  float* a = c.inputs[0].mutable_data<float>();
  for (const int64_t k : {0, 17, 33, 63}) // one in each share of two steps' depths
    a[k / 2 * 64 + k] = k % 2 == 0 ? std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::infinity();
  check_slices(c, "matmul");
}

TEST_CASE("GPU convolutions by slices: channels in vectors or not, groups, splits, ends", "[vulkan][slices]") {
  const attributes padded = attrs_of({{"pads", int_list{1, 0, 1, 2}}});
  check_slices(call_of("Conv", {{2, 16, 7, 9}, {24, 16, 3, 3}, {24}}, padded, "", 2), "conv");
  check_slices(call_of("Conv", {{1, 5, 9, 7}, {7, 5, 3, 3}, {7}}, attrs_of({{"strides", int_list{2, 1}}})), "conv");
  check_slices(call_of("Conv", {{2, 16, 6, 7}, {12, 8, 3, 2}}, attrs_of({{"group", int64_t{2}}}), "", 2), "conv");
  check_slices(call_of("Conv", {{2, 16, 6, 5}, {16, 16, 3, 3}, {16}, {2, 16, 6, 5}},
                       attrs_of({{"pads", int_list{1, 1, 1, 1}}, {"activation", std::string("Relu")}}), "troupe", 2),
               "conv");
  check_slices(call_of("Conv", {{1, 64, 7, 7}, {40, 64, 3, 3}}, attrs_of({{"pads", int_list{1, 1, 1, 1}}}), "", 2),
               "conv");
}

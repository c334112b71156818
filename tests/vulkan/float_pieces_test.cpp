// Products and convolutions of float32 by matrix units of float16 (shaders/float_pieces.glsl), which devices without
// them lack: by every way of the cooperative kernels, and of scalar arithmetic, which has to hold the same; against
// float64.
#include "support/catch.hpp"
#include "support/gpu.hpp"
#include "support/graph_builder.hpp"
#include "support/kernel_case.hpp"
#include "vulkan/device_choice.hpp"

#include <limits>

using namespace troupe;
using namespace troupe::test;

namespace {

using int_list = std::vector<int64_t>;

/// A call on these operands, to within a few units in the last place of the sum of its terms' magnitudes.
kernel_case call_of(std::string op, std::vector<tensor> inputs, attributes attrs = {}, std::string domain = "",
                    uint32_t constants = 0) {
  return {.op = std::move(op),
          .inputs = std::move(inputs),
          .attrs = std::move(attrs),
          .domain = std::move(domain),
          .rtol = 2e-6,
          .atol = 5e-5,
          .constants = constants,
          .in_double = true};
}

kernel_case call_of(std::string op, const std::vector<shape>& dims, attributes attrs = {}, std::string domain = "",
                    uint32_t constants = 0) {
  std::vector<tensor> inputs;
  for (const shape& d : dims)
    inputs.push_back(random_floats(d, inputs.size() + 1));
  return call_of(std::move(op), std::move(inputs), std::move(attrs), std::move(domain), constants);
}

/// Checks a call by all ways of `kernel` and of `kernel`_cooperative.
void check_pieces(const kernel_case& c, const std::string& kernel = "matmul") {
  const std::set<std::string> names = check_gpu_ways(c, kernel);
  const bool has_units = vulkan::features_of(gpus()->gpus()[0].snapshot).cooperative_matrix;
  const auto count =
      std::ranges::count_if(names, [&](const std::string& name) { return name.starts_with(kernel + "_cooperative"); });
  CHECK((count > 0) == has_units);
}

/// The size of products that are not split on any device: many, of 64 × 64, whose groups go through all depths.
constexpr int64_t stacked = 150, side = 64, deep = 1056;

/// Positive numbers, whose sums lose nothing, `large` times as much from row `row` and column `column` on.
tensor positive(const shape& dims, uint64_t seed, float scale = 1, int64_t row = 0, int64_t column = 0,
                float large = 1) {
  tensor t = random_floats(dims, seed, 0.5, 1);
  float* x = t.mutable_data<float>();
  for (int64_t i = 0; i < t.size(); ++i)
    x[i] *= i / dims[1] >= row && i % dims[1] >= column ? scale * large : scale;
  return t;
}

/// A product of positive numbers, right to within units in the last place however small it is.
kernel_case positive_product(tensor a, tensor b, uint32_t constants = 0) {
  kernel_case c = call_of("MatMul", std::vector<tensor>{std::move(a), std::move(b)}, {}, "", constants);
  c.atol = 0;
  return c;
}

} // namespace

TEST_CASE("GPU products in pieces: rows, columns and depths around tiles", "[vulkan][pieces]") {
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{200, 136, 300}, {129, 72, 64}, {66, 260, 36}, {500, 380, 128}})
    for (const uint32_t constants : {0, 2})
      check_pieces(call_of("MatMul", {{m, k}, {k, n}}, {}, "", constants));
  check_pieces(call_of("MatMul", {{3, 1, 80, 72}, {2, 72, 96}}));
  check_pieces(call_of("MatMul", {{70, 2048}, {2048, 80}}, {}, "", 2)); // splits whose sums are added later
}

TEST_CASE("GPU products in pieces: operands by rows and columns, and their endings", "[vulkan][pieces]") {
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{136, 144, 72}, {132, 148, 52}})
    check_pieces(call_of("Gemm", {{k, m}, {n, k}, {n}},
                         attrs_of({{"transA", int64_t{1}}, {"transB", int64_t{1}}, {"alpha", 0.5f}, {"beta", 2.f}})));
  check_pieces(call_of("MatMul", {{134, 140}, {140, 136}, {136}, {134, 136}},
                       attrs_of({{"activation", std::string("Relu")}}), "troupe", 6));
}

TEST_CASE("GPU products in pieces: operands of any size", "[vulkan][pieces]") {
  for (const auto& [a, b] : {std::pair{1e20f, 1e-25f}, {3e-30f, 1e28f}, {1e-18f, 1e-19f}, {3e18f, 2e17f}, {7.f, 1e6f}})
    check_pieces(positive_product(positive({150, 200}, 1, a), positive({200, 140}, 2, b)));
  check_pieces(positive_product(positive({150, 200}, 1, 0), positive({200, 140}, 2)));
}

TEST_CASE("GPU products in pieces: elements that come later are larger", "[vulkan][pieces]") {
  for (const float large : {6.f, 40.f, 1e9f}) {
    const tensor a = positive({150, 300}, 1, 1, 0, 250, large), b = positive({300, 140}, 2, 1, 250, 0, large);
    check_pieces(positive_product(a, positive({300, 140}, 2)));
    check_pieces(positive_product(positive({150, 300}, 1), b, 2));
  }
}

TEST_CASE("GPU products in pieces: nothing at first, then elements of any size", "[vulkan][pieces]") {
  for (const float later : {1e-9f, 1e-3f, 1.f, 1e6f}) {
    tensor a = positive({150, 300}, 1, later), b = positive({300, 140}, 2);
    for (int64_t i = 0; i < a.size(); ++i)
      if (i % 300 < 70 && i / 300 % 2 == 0) // of every second row
        a.mutable_data<float>()[i] = 0;
    for (int64_t i = 0; i < 40 * 140; ++i)
      b.mutable_data<float>()[i] = 0;
    check_pieces(positive_product(a, b));
  }
  tensor x = random_floats({2, 64, 12, 13}, 1, 1e-9f, 2e-9f); // the first taps of the first rows are padding
  kernel_case c = call_of("Conv", std::vector<tensor>{x, random_floats({72, 64, 3, 3}, 2, 0.5, 1)},
                          attrs_of({{"pads", int_list{1, 1, 1, 1}}}), "", 2);
  c.atol = 0;
  check_pieces(c, "conv");
}

TEST_CASE("GPU products in pieces: many steps of a group that is not split", "[vulkan][pieces]") {
  for (const float large : {1.f, 1e5f}) { // elements that suit no scale come late
    tensor a = random_floats({stacked, side, deep}, 1, 0.5, 1), b = random_floats({stacked, deep, side}, 2, 0.5, 1);
    for (int64_t i = 0; i < a.size(); ++i)
      if (i % deep > 900 && i / deep % 3 == 0)
        a.mutable_data<float>()[i] *= large;
    kernel_case c = call_of("MatMul", std::vector<tensor>{a, b});
    c.rtol = 4e-6; // scalar arithmetic loses as much
    c.atol = 0;
    check_pieces(c);
  }
}

TEST_CASE("GPU products in pieces: rows and columns of another size than their neighbours", "[vulkan][pieces]") {
  for (const float large : {1e6f, 1e15f})
    for (const uint32_t constants : {0, 2})
      check_pieces(positive_product(positive({150, 200}, 1, 1e-3f, 100, 0, large),
                                    positive({200, 140}, 2, 1, 0, 90, large), constants));
}

TEST_CASE("GPU products in pieces: a selection gives the elements that it selects", "[vulkan][pieces]") {
  tensor from = positive({160, 128}, 1, 1e-3f, 80, 0, 1e6f), chosen(dtype::float32, {140, 160});
  std::fill_n(chosen.mutable_data<float>(), chosen.size(), 0.f);
  for (int64_t i = 0; i < 140; ++i)
    chosen.mutable_data<float>()[i * 160 + i * 37 % 160] = 1;
  kernel_case c = positive_product(chosen, from, 1);
  c.rtol = 2.4e-7; // two units in the last place
  check_pieces(c);
}

TEST_CASE("GPU products in pieces: NaN and infinities are as in float32", "[vulkan][pieces]") {
  kernel_case c = call_of("MatMul", {{140, 96}, {96, 132}});
  float *a = c.inputs[0].mutable_data<float>(), *b = c.inputs[1].mutable_data<float>();
  constexpr float infinity = std::numeric_limits<float>::infinity();
  a[3 * 96 + 5] = std::numeric_limits<float>::quiet_NaN();
  a[70 * 96 + 40] = infinity;
  a[71 * 96 + 95] = -infinity;
  a[72 * 96 + 1] = infinity, a[72 * 96 + 2] = -infinity;
  b[7 * 132 + 20] = infinity;
  b[40 * 132 + 21] = 0;  // times row 70's infinity
  a[73 * 96 + 8] = 1e6f; // beside an infinity
  a[73 * 96 + 9] = infinity;
  b[7 * 132 + 22] = b[7 * 132 + 23] = 3e6f; // which other columns have
  check_pieces(c);
}

TEST_CASE("GPU convolutions in pieces: channels in vectors, groups, splits, ends", "[vulkan][pieces]") {
  const attributes padded = attrs_of({{"pads", int_list{1, 1, 1, 1}}});
  check_pieces(call_of("Conv", {{2, 64, 17, 19}, {72, 64, 3, 3}, {72}}, padded, "", 2), "conv");
  check_pieces(call_of("Conv", {{2, 128, 16, 17}, {136, 64, 3, 2}}, attrs_of({{"group", int64_t{2}}}), "", 2), "conv");
  check_pieces(call_of("Conv", {{1, 256, 9, 9}, {80, 256, 3, 3}}, padded, "", 2), "conv");
  check_pieces(call_of("Conv", {{2, 64, 16, 15}, {64, 64, 3, 3}, {64}, {2, 64, 16, 15}},
                       attrs_of({{"pads", int_list{1, 1, 1, 1}}, {"activation", std::string("Relu")}}), "troupe", 2),
               "conv");
}

// Every kernel of products and convolutions against the reference, at sizes that leave remainders everywhere.
#include "support/catch.hpp"
#include "support/gpu.hpp"
#include "support/graph_builder.hpp"
#include "support/kernel_case.hpp"
#include "support/operator_launches.hpp"
#include "vulkan/device_choice.hpp"
#include "vulkan/shader_library.hpp"

#include <algorithm>
#include <tuple>

using namespace troupe;
using namespace troupe::test;

namespace {

using int_list = std::vector<int64_t>;

/// Runs an operator on random operands of these dims; {0} is for an absent one.
void check(std::string op, std::vector<shape> dims, attributes attrs = {}, std::string domain = "",
           std::vector<uint32_t> constants_sets = {0, 2}) {
  kernel_case c{
      .op = std::move(op), .attrs = std::move(attrs), .domain = std::move(domain), .rtol = 1e-4, .atol = 1e-4};
  for (size_t i = 0; i < dims.size(); ++i)
    c.inputs.push_back(dims[i] == shape{0} ? tensor() : random_floats(dims[i], i + 1));
  c.in_double = true;
  for (const uint32_t constants : constants_sets) // input 1: given, and a constant
    for (const bool half : {false, true}) {
      c.constants = constants;
      c.in_double = true; // the float16 reference of a fused operator rounds before its residual
      check_gpu_kernels(c, half);
    }
}

} // namespace

TEST_CASE("GPU MatMul multiplies odd sizes, batches and vectors", "[vulkan][slow]") {
  for (const auto& [a, b] : {std::pair<shape, shape>{{5, 11}, {11, 7}},
                             {{33, 72}, {72, 65}},
                             {{1, 300}, {300, 100}},
                             {{3, 64}, {64, 40}},
                             {{8, 1024}, {1024, 8}},    // deep: split
                             {{70, 520}, {520, 72}},    // slices, and matrices of groups
                             {{300, 768}, {768, 200}},  // slices of larger tiles
                             {{2100, 264}, {264, 520}}, // one buffer
                             {{2, 1, 5, 8}, {3, 8, 16}},
                             {{5, 7}, {2, 3, 7, 9}},
                             {{7}, {7, 9}},
                             {{2, 4, 7}, {7}}})
    check("MatMul", {a, b});
}

TEST_CASE("GPU Gemm transposes, scales and broadcasts C", "[vulkan][slow]") {
  for (const int64_t ta : {0, 1})
    for (const int64_t tb : {0, 1})
      check("Gemm",
            {ta ? shape{17, 35} : shape{35, 17}, tb ? shape{41, 17} : shape{17, 41}, ta ? shape{41} : shape{35, 1}},
            attrs_of({{"transA", ta}, {"transB", tb}, {"alpha", 0.5f}, {"beta", 2.f}}));
}

TEST_CASE("GPU Gemm reads whole vectors along rows and columns", "[vulkan][slow]") {
  for (const auto& [m, n, k] : {std::tuple{36, 20, 33}, {200, 136, 50}, {8, 16, 1024}, {264, 132, 70}})
    for (const int64_t ta : {0, 1})
      for (const int64_t tb : {0, 1})
        check("Gemm", {ta ? shape{k, m} : shape{m, k}, tb ? shape{n, k} : shape{k, n}},
              attrs_of({{"transA", ta}, {"transB", tb}}));
}

TEST_CASE("GPU fused products end in every activation", "[vulkan][slow]") {
  for (const char* name :
       {"Relu", "Clip", "Sigmoid", "Tanh", "HardSwish", "HardSigmoid", "LeakyRelu", "Swish", "Gelu", "GeluTanh"})
    check("MatMul", {{9, 8}, {8, 24}, {24}, {9, 24}},
          attrs_of({{"activation", std::string(name)}, {"activation_alpha", 0.3f}, {"activation_beta", 0.6f}}),
          "troupe");
}

TEST_CASE("GPU Conv covers groups, strides, dilations, pads and one to three axes", "[vulkan][slow]") {
  check("Conv", {{2, 16, 9, 11}, {24, 16, 3, 3}, {24}}, attrs_of({{"pads", int_list{1, 0, 1, 2}}}));
  check("Conv", {{1, 3, 13, 12}, {8, 3, 7, 7}},
        attrs_of({{"strides", int_list{2, 2}}, {"pads", int_list{3, 3, 3, 3}}}));
  check("Conv", {{3, 8, 7, 7}, {16, 8, 1, 1}, {16}});
  check("Conv", {{1, 8, 9, 9}, {16, 8, 1, 1}}, attrs_of({{"strides", int_list{2, 2}}}));
  check("Conv", {{1, 64, 7, 7}, {40, 64, 3, 3}}, attrs_of({{"pads", int_list{1, 1, 1, 1}}})); // split
  check("Conv", {{2, 12, 9, 8}, {8, 3, 3, 2}, {8}},
        attrs_of({{"group", int64_t{4}}, {"dilations", int_list{2, 1}}, {"pads", int_list{0, 1, 2, 1}}}));
  check("Conv", {{2, 4, 17}, {6, 4, 5}}, attrs_of({{"strides", int_list{3}}, {"pads", int_list{2, 1}}}));
  check("Conv", {{2, 4, 5, 6, 7}, {8, 4, 3, 2, 3}}, attrs_of({{"strides", int_list{2, 1, 2}}}));
}

TEST_CASE("GPU Conv by matrices of few channels, packed", "[vulkan][slow]") {
  const gpu_features gpu = vulkan::features_of(gpus()->gpus().at(0).snapshot);
  if (!gpu.float16 || !gpu.cooperative_matrix || gpu.subgroup_size != 32)
    return;
  struct {
    shape image, filters;
    int_list strides, pads, dilations = {1, 1};
    bool infinite = false; // a pixel, which counts in the windows that it is in, and in no others
  } const cases[] = {{{2, 3, 30, 27}, {24, 3, 7, 7}, {2, 2}, {3, 3, 3, 3}},
                     {{2, 3, 18, 27}, {8, 3, 7, 7}, {2, 2}, {3, 3, 3, 3}, {1, 1}, true},
                     {{3, 3, 16, 17}, {16, 3, 3, 3}, {2, 2}, {0, 1, 1, 0}},
                     {{1, 4, 12, 20}, {9, 4, 3, 6}, {1, 4}, {2, 1, 0, 5}, {2, 1}},
                     {{2, 1, 40, 9}, {8, 1, 5, 2}, {3, 2}, {0, 0, 0, 0}}};
  for (const auto& each : cases) {
    INFO(to_string(each.filters));
    kernel_case c{.op = "Conv", .rtol = 1e-3, .atol = 1e-3, .constants = 2};
    c.inputs = {random_floats(each.image, 1), random_floats(each.filters, 2), random_floats({each.filters[0]}, 3)};
    if (each.infinite)
      c.inputs[0].mutable_data<float>()[each.image[2] * each.image[3] / 2 + 4] = INFINITY;
    c.attrs = attrs_of({{"strides", each.strides}, {"pads", each.pads}, {"dilations", each.dilations}});
    c.in_double = true;
    CHECK_FALSE(check_gpu_ways(c, "conv_cooperative.packed", true).empty());
  }
}

TEST_CASE("GPU Conv with one channel a group", "[vulkan][slow]") {
  for (const int64_t stride : {1, 2})
    check("Conv", {{2, 16, 9, 10}, {16, 1, 3, 3}, {16}},
          attrs_of({{"group", int64_t{16}}, {"strides", int_list{stride, stride}}, {"pads", int_list{1, 1, 1, 1}}}));
  check("Conv", {{1, 6, 9, 8}, {12, 1, 3, 2}}, attrs_of({{"group", int64_t{6}}, {"dilations", int_list{2, 1}}}));
}

TEST_CASE("GPU fused Conv adds bias and residual before its activation", "[vulkan][slow]") {
  for (const shape& w : {shape{16, 16, 3, 3}, shape{16, 1, 3, 3}})
    check("Conv", {{2, 16, 6, 5}, w, {16}, {2, 16, 6, 5}},
          attrs_of({{"pads", int_list{1, 1, 1, 1}}, {"group", 16 / w[1]}, {"activation", std::string("Relu")}}),
          "troupe");
}

TEST_CASE("GPU ConvTranspose gathers", "[vulkan][slow]") {
  check("ConvTranspose", {{2, 8, 5, 6}, {8, 4, 4, 2}, {4}},
        attrs_of({{"strides", int_list{2, 3}}, {"pads", int_list{1, 0, 1, 1}}, {"output_padding", int_list{1, 0}}}));
  check("ConvTranspose", {{1, 4, 5}, {4, 2, 3}}, attrs_of({{"group", int64_t{2}}, {"dilations", int_list{2}}}));
}

TEST_CASE("GPU ConvTranspose whose windows tile the output", "[vulkan]") {
  const auto stride = [](int_list sizes) { return attrs_of({{"strides", std::move(sizes)}}); };
  check("ConvTranspose", {{2, 16, 5, 6}, {16, 8, 2, 2}, {8}}, stride({2, 2}), "", {6});
  check("ConvTranspose", {{1, 13, 4, 7}, {13, 5, 3, 2}, {5}}, stride({3, 2}), "", {6}); // columns are padded
  check("ConvTranspose", {{2, 8, 4, 3}, {8, 12, 1, 2}}, stride({1, 2}), "", {2});       // all rows are one matrix
  check("ConvTranspose", {{2, 8, 4, 3}, {8, 12, 2, 1}, {12}}, stride({2, 1}), "", {2, 6});
}

TEST_CASE("GPU ConvTranspose whose windows tile the output, of one and three axes", "[vulkan][slow]") {
  const auto stride = [](int_list sizes) { return attrs_of({{"strides", std::move(sizes)}}); };
  check("ConvTranspose", {{3, 6, 9}, {6, 10, 4}, {10}}, stride({4}), "", {6});
  check("ConvTranspose", {{2, 8, 3, 4, 5}, {8, 4, 2, 3, 2}, {4}}, stride({2, 3, 2}), "", {6});
  check("ConvTranspose", {{2, 8, 3, 4, 5}, {8, 4, 2, 1, 3}, {4}}, stride({2, 1, 3}), "", {6});
  check("ConvTranspose", {{0, 8, 3, 4}, {8, 4, 2, 2}, {4}}, stride({2, 2}), "", {6});
  check("ConvTranspose", {{1, 256, 1, 3}, {256, 8, 1, 2}, {8}}, stride({1, 2}), "", {6}); // few rows
  attributes ended = stride({2, 2});
  ended.set("activation", std::string("Relu"));
  check("ConvTranspose", {{2, 24, 5, 9}, {24, 8, 2, 2}, {8}, {2, 8, 10, 18}}, ended, "troupe", {6});
}

TEST_CASE("GPU products by matrices of subgroups: few and many steps of depths, by every tile", "[vulkan][slow]") {
  for (const auto& [rows, depths] :
       {std::pair<int64_t, int64_t>{70, 40}, {70, 72}, {70, 136}, {70, 200}, {70, 392}, {5000, 72}}) {
    INFO(rows << " rows, " << depths << " depths");
    kernel_case c{.op = "MatMul", .rtol = 1e-3, .atol = 1e-3, .constants = 2};
    c.inputs = {random_floats({rows, depths}, 1), random_floats({depths, 104}, 2)};
    c.in_double = true;
    check_gpu_ways(c, "matmul_cooperative", true);
  }
}

TEST_CASE("GPU products by matrices of groups: tiles in bands of columns, the last one narrower", "[vulkan][slow]") {
  if (!vulkan::features_of(gpus()->gpus().at(0).snapshot).group_matrices)
    return; // nothing else goes through tiles so, and a CPU as a GPU would take a minute
  for (const int64_t depths : {9088, 9096}) { // whole steps of all tiles, and of none
    INFO(depths << " depths");
    kernel_case c{.op = "MatMul", .rtol = 1e-3, .atol = 4e-2, .constants = 2};
    c.inputs = {random_floats({600, depths}, 1), random_floats({depths, 1288}, 2)};
    c.in_double = true;
    CHECK_FALSE(check_gpu_ways(c, "matmul.matrices", true).empty());
  }
}

TEST_CASE("GPU products by matrices of groups: whole tiles and others, few and many steps of depths", "[vulkan]") {
  if (!vulkan::features_of(gpus()->gpus().at(0).snapshot).group_matrices)
    return;
  for (const auto& [rows, columns, depths] : {std::array<int64_t, 3>{1280, 1536, 768},
                                              {1250, 1544, 776},
                                              {1250, 1536, 768},
                                              {256, 128, 2048},
                                              {130, 136, 2056}})
    for (const bool residual : {false, true}) {
      INFO(rows << " rows, " << columns << " columns, " << depths << " depths");
      kernel_case c{.op = "MatMul", .domain = "troupe", .rtol = 1e-3, .atol = 1e-2, .constants = 2};
      c.inputs = {random_floats({rows, depths}, 1), random_floats({depths, columns}, 2), random_floats({columns}, 3)};
      if (residual)
        c.inputs.push_back(random_floats({rows, columns}, 4));
      c.in_double = true;
      const auto names = check_gpu_ways(c, "matmul.matrices", true);
      if (rows < 1000)
        continue; // their sums are split among groups
      for (const char* tile : {"128x64x64/128", "128x128x64/128"})
        CHECK(names.contains(fmt::format("matmul.matrices {}", tile)));
    }
}

TEST_CASE("GPU products by matrices of groups end in every activation", "[vulkan]") {
  for (const char* name : {"Relu", "Sigmoid", "Tanh", "HardSwish", "Swish", "Gelu", "GeluTanh"}) {
    kernel_case c{.op = "MatMul", .domain = "troupe", .rtol = 1e-3, .atol = 1e-3, .constants = 2};
    c.inputs = {random_floats({130, 72}, 1, -2, 2), random_floats({72, 136}, 2), random_floats({136}, 3)};
    c.attrs = attrs_of({{"activation", std::string(name)}, {"activation_alpha", 1.5f}});
    c.in_double = true;
    check_gpu_ways(c, "matmul.matrices", true);
  }
}

TEST_CASE("Every tile has its shader, and its threads cover it", "[vulkan]") {
  gpu_features gpu{
      .subgroup_size = 32, .max_group_size = 1024, .shared_bytes = 49152, .float16 = true, .cooperative_matrix = true};
  gpu.max_groups[0] = 1u << 31;
  const auto is_embedded = [](const std::string& name) {
    const auto all = vulkan::embedded_shaders();
    return std::any_of(all.begin(), all.end(), [&](const auto& s) { return s.name == name; });
  };
  const attributes none;
  for (const uint32_t units : {8u, 132u})
    for (const int64_t m : {1, 49, 196, 1000, 12544})
      for (const int64_t n : {16, 96, 512, 4096})
        for (const int64_t k : {32, 576, 4608}) {
          gpu.units = units;
          for (const dtype type : {dtype::float32, dtype::float16}) {
            const gpu_call call{none, {{type, {m, k}}, {type, {k, n}}}, {{type, {m, n}}}, gpu};
            for (const launch_list& list : testing::onnx_launches("MatMul", call))
              for (const launch& l : list.launches) {
                CHECK(is_embedded(l.shader));
                if (l.shader.starts_with("matmul")) {
                  const std::vector<uint32_t>& c = l.constants;
                  const uint32_t parts = c.at(1) / c.at(4) * (c.at(2) / c.at(5));
                  if (list.name == "matmul") {
                    const uint32_t slices = c[0] / parts; // each with whole vectors of every depth step
                    CHECK(c[0] == slices * parts);
                    CHECK(c[3] % (4 * slices) == 0);
                    CHECK((slices > 1) == l.shader.ends_with("_sliced"));
                    CHECK((slices == 1 || slices * c[1] <= 2 * (c[3] + 4))); // sums fit into B's tile
                    continue;
                  }
                  const uint32_t slices = c[0] / (32 * parts); // each with whole matrices of every depth step
                  CHECK(c[0] == slices * 32 * parts);
                  CHECK(c[3] % (16 * slices) == 0);
                  const uint32_t width = type == dtype::float32 ? 4 : 8;
                  CHECK(c[1] * c[3] / width % c[0] == 0); // every invocation loads as many vectors
                  CHECK(c[2] * c[3] / width % c[0] == 0);
                }
              }
          }
        }
}

// Launch rules of products and convolutions on fabricated devices. Results are tested on a device.
#include "launch/launch_table.hpp"
#include "launch/parameters.hpp"
#include "ops/registry.hpp"
#include "ops/run_op.hpp"
#include "support/catch.hpp"
#include "support/fabricated_gpu.hpp"
#include "support/operator_launches.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

gpu_features small_gpu() {
  return {.max_group_size = 256, .shared_bytes = 32768, .float16 = true, .units = 8};
}

gpu_features large_gpu() {
  gpu_features gpu = h100_like();
  gpu.cooperative_matrix = true;
  return gpu;
}

operand make(shape dims, dtype type = dtype::float32, layout l = layout::plain) {
  return {.type = type, .dims = std::move(dims), .layout = l};
}

operand constant(shape dims, dtype type = dtype::float32) {
  operand o = make(std::move(dims), type);
  auto w = std::make_shared<weight>(); // its bytes are not asked for
  w->type = type;
  w->dims = o.dims;
  o.constant = std::move(w);
  return o;
}

/// Whether a run reads input `i` itself, not only its packed form.
bool reads(const launch_list& list, uint32_t i) {
  return std::any_of(list.launches.begin(), list.launches.end(), [&](const launch& l) {
    return std::any_of(l.bindings.begin(), l.bindings.end(), [&](const launch_binding& b) {
      return b.from == launch_binding::source::input && b.index == i;
    });
  });
}

/// Every launch covers its product: groups times tiles reach M and N, splits times their depth reach K.
void check_cover(const launch& l) {
  const auto at = [&](size_t i) { return int64_t{l.params.at(i)}; };
  CHECK(int64_t{l.groups[0]} * l.constants.at(1) >= at(0));
  CHECK(int64_t{l.groups[1]} * l.constants.at(2) >= at(1));
  CHECK(at(3) * at(4) >= at(2));
  CHECK(at(3) % l.constants.at(3) == 0);
}

} // namespace

TEST_CASE("A product's launches cover it, and its constants are packed", "[ops]") {
  const attributes none;
  for (const gpu_features& gpu : {small_gpu(), large_gpu()})
    for (const auto& [m, n, k] : {std::array<int64_t, 3>{5, 7, 11}, {128, 768, 3072}, {1000, 1000, 1000}}) {
      const gpu_call call{none, {make({m, k}), constant({k, n})}, {make({m, n})}, gpu};
      const launch_lists lists = onnx_launches("MatMul", call);
      REQUIRE_FALSE(lists.empty());
      for (const launch_list& list : lists) {
        REQUIRE(list.packed.size() == 1);
        CHECK_FALSE(reads(list, 1));
        CHECK(list.packed[0]->dims.back() % 8 == 0);
        if (list.name == "matmul")
          check_cover(list.launches.at(0));
      }
    }
}

TEST_CASE("Matrices of groups come first where they gain enough", "[ops]") {
  gpu_features gpu = large_gpu();
  gpu.group_matrices = true;
  const attributes none;
  const auto f16 = dtype::float16;
  const auto lists = [&](int64_t m, int64_t n, int64_t k) {
    return onnx_launches("MatMul", {none, {make({m, k}, f16), constant({k, n}, f16)}, {make({m, n}, f16)}, gpu});
  };
  CHECK(lists(4096, 4096, 4096).at(0).name == "matmul.matrices");
  CHECK(lists(4096, 4096, 4096).at(1).name == "matmul_cooperative");
  const auto whole_tiles = [&](int64_t m) {
    return (lists(m, 4096, 4096).at(0).launches.at(0).constants.at(0) & shader::product_whole_tiles) != 0;
  };
  CHECK(whole_tiles(4096));
  CHECK(whole_tiles(4100)); // the last one moves up
  const auto band = [&](int64_t m, int64_t n, int64_t k) {
    return lists(m, n, k).at(0).launches.at(0).constants.at(6);
  };
  CHECK(band(4096, 4096, 4096) == 8);
  CHECK(band(6304, 3072, 768) == 0); // a cache holds its operands
  CHECK(lists(196, 384, 64).at(0).name == "matmul_cooperative");
  CHECK(lists(196, 384, 64).at(1).name == "matmul.matrices");
  for (const auto& [n, k] : {std::pair<int64_t, int64_t>{4095, 4096}, {4096, 4095}}) // lines that are not whole vectors
    for (const launch_list& list : lists(4096, n, k))
      CHECK(list.name != "matmul.matrices");
  for (const launch_list& list : onnx_launches(
           "MatMul", {none, {make({4096, 4096}, f16), make({4096, 4096}, f16)}, {make({4096, 4096}, f16)}, gpu}))
    CHECK(list.name != "matmul.matrices"); // the right matrix is given with each run
}

TEST_CASE("float16 products need a device with float16", "[ops]") {
  gpu_features gpu = small_gpu();
  gpu.float16 = false;
  const attributes none;
  const auto f16 = dtype::float16;
  CHECK(onnx_launches("MatMul", {none, {make({4, 4}, f16), make({4, 4}, f16)}, {make({4, 4}, f16)}, gpu}).empty());
  const auto f64 = dtype::float64;
  CHECK(onnx_launches("MatMul", {none, {make({4, 4}, f64), make({4, 4}, f64)}, {make({4, 4}, f64)}, gpu}).empty());
}

TEST_CASE("Weights beyond a binding's limit are multiplied in column ranges", "[ops]") {
  gpu_features gpu = small_gpu();
  const attributes none;
  const int64_t k = 768, n = 50257;
  const gpu_call call{none, {make({16, k}), constant({k, n})}, {make({16, n})}, gpu};
  const launch_lists lists = onnx_launches("MatMul", call);
  REQUIRE_FALSE(lists.empty());
  for (const launch_list& list : lists) {
    int64_t columns = 0, bytes = 0;
    for (const launch& l : list.launches) {
      CHECK(l.bindings[1].bytes <= gpu.max_binding_bytes);
      CHECK(l.bindings[1].offset % gpu.binding_alignment == 0);
      CHECK(l.bindings[1].offset == bytes);
      bytes += l.bindings[1].bytes;
      columns += l.params.at(1);
    }
    CHECK(list.launches.size() == 2);
    CHECK(columns == n);
    CHECK(bytes == n * k * 4);
  }
}

TEST_CASE("A pointwise channels-last convolution is a plain product", "[ops]") {
  const attributes none;
  const gpu_features gpu = large_gpu();
  const auto last = layout::channels_last;
  const auto x = make({1, 64, 56, 56}, dtype::float32, last), y = make({1, 256, 56, 56}, dtype::float32, last);
  const launch_lists lists = onnx_launches("Conv", {none, {x, constant({256, 64, 1, 1})}, {y}, gpu});
  REQUIRE_FALSE(lists.empty());
  CHECK(lists[0].launches[0].shader == "matmul.f32");
  CHECK(lists[0].packed.empty());
}

TEST_CASE("A transposed convolution is a product only if its windows tile the output of constants", "[ops]") {
  const gpu_features gpu = large_gpu();
  const auto f16 = dtype::float16;
  const auto first = [&](const operand& weights, const operand& bias, const attributes& attrs, const shape& out,
                         layout l = layout::channels_last) {
    return onnx_launches("ConvTranspose",
                         {attrs, {make({2, 64, 16, 16}, f16, l), weights, bias}, {make(out, f16, l)}, gpu})
        .at(0);
  };
  const attributes two = attrs_of({{"strides", int_list{2, 2}}});
  const auto weights = constant({64, 32, 2, 2}, f16), bias = constant({32}, f16);
  const shape out{2, 32, 32, 32};
  const launch_list product = first(weights, bias, two, out);
  CHECK(product.name == "matmul_cooperative");
  REQUIRE(product.packed.size() == 2);
  CHECK(product.packed[0]->dims == shape{1, 2, 2, 32, 64});
  CHECK(product.packed[1]->dims == shape{2, 32});
  CHECK_FALSE(reads(product, 1));
  CHECK_FALSE(reads(product, 2));
  CHECK(product.launches.at(0).groups[2] == 2 * 16 * 2); // images, rows, rows of a tile
  const auto is_gathered = [](const launch_list& l) { return l.name == "conv_transpose"; };
  CHECK(is_gathered(first(make({64, 32, 2, 2}, f16), bias, two, out)));
  CHECK(is_gathered(first(weights, make({32}, f16), two, out)));
  CHECK(is_gathered(first(weights, bias, two, out, layout::plain)));
  CHECK(is_gathered(first(constant({64, 32, 3, 3}, f16), bias, two, {2, 32, 33, 33})));
  attributes cut = two;
  cut.set("pads", int_list{0, 0, 1, 0});
  CHECK(is_gathered(first(weights, bias, cut, {2, 32, 31, 32})));
  attributes more = two;
  more.set("output_padding", int_list{1, 0});
  CHECK(is_gathered(first(weights, bias, more, {2, 32, 33, 32})));
  attributes grouped = two;
  grouped.set("group", int64_t{2});
  CHECK(is_gathered(first(constant({64, 16, 2, 2}, f16), bias, grouped, out)));
}

TEST_CASE("Convolution packs constant weights by taps, and reads other weights as they are", "[ops]") {
  const attributes attrs = attrs_of({{"pads", int_list{1, 1, 1, 1}}});
  const gpu_features gpu = large_gpu();
  const auto last = layout::channels_last;
  const auto x = make({1, 64, 7, 7}, dtype::float32, last), y = make({1, 32, 7, 7}, dtype::float32, last);
  const launch_list packed = onnx_launches("Conv", {attrs, {x, constant({32, 64, 3, 3})}, {y}, gpu}).at(0);
  REQUIRE(packed.packed.size() == 1);
  CHECK(packed.packed[0]->step_attributes.integers("dims") == shape{32, 64, 9});
  CHECK(packed.packed[0]->dims == shape{32, 9, 64});
  CHECK(packed.launches.at(0).constants.at(6) == 0); // vectors along the channels
  check_cover(packed.launches[0]);
  const launch_list plain = onnx_launches("Conv", {attrs, {x, make({32, 64, 3, 3})}, {y}, gpu}).at(0);
  CHECK(plain.packed.empty());
  CHECK(plain.launches.at(0).constants.at(10) == 0); // ONNX's order of weights
}

TEST_CASE("Few rows are multiplied by the kernel that reads weights once", "[ops]") {
  const attributes none;
  const gpu_features gpu = large_gpu();
  const auto f16 = dtype::float16;
  const gpu_call call{none, {make({1, 768}, f16), constant({768, 3072}, f16)}, {make({1, 3072}, f16)}, gpu};
  const launch_lists lists = onnx_launches("MatMul", call);
  REQUIRE(lists.size() == 3);
  CHECK(lists[0].name == "gemv");
  CHECK(lists[1].name == "matmul_cooperative");
  CHECK(lists[2].name == "matmul");
  const launch& l = lists[0].launches.at(0);
  CHECK(int64_t{l.groups[0]} * l.constants[0] / l.constants[1] * l.constants[2] >= 3072);
}

TEST_CASE("Cooperative kernels need their device, and take floats", "[ops]") {
  const attributes none;
  gpu_features gpu = large_gpu();
  const auto names = [&](dtype type) {
    std::vector<std::string> found;
    for (const launch_list& list :
         onnx_launches("MatMul", {none, {make({64, 64}, type), make({64, 64}, type)}, {make({64, 64}, type)}, gpu}))
      found.push_back(list.name);
    return found;
  };
  CHECK(names(dtype::float16) == std::vector<std::string>{"matmul_cooperative", "matmul"});
  CHECK(names(dtype::float32) == std::vector<std::string>{"matmul", "matmul_cooperative"});
  gpu.cooperative_matrix = false;
  for (const dtype type : {dtype::float16, dtype::float32})
    CHECK(names(type) == std::vector<std::string>{"matmul"});
}

TEST_CASE("Depthwise convolution packs its weights by taps", "[ops]") {
  const attributes attrs = attrs_of({{"pads", int_list{1, 1, 1, 1}}, {"group", int64_t{32}}});
  const gpu_features gpu = large_gpu();
  const auto last = layout::channels_last;
  const auto x = make({1, 32, 9, 9}, dtype::float32, last);
  const launch_lists lists = onnx_launches("Conv", {attrs, {x, constant({32, 1, 3, 3})}, {x}, gpu});
  REQUIRE(lists.size() == 2);
  CHECK(lists[0].name == "depthwise");
  REQUIRE(lists[0].packed.size() == 1);
  CHECK(lists[0].packed[0]->dims == shape{9, 32});
  CHECK(lists[1].name == "conv");
  const auto nothing = make({1, 32, 0, 9}, dtype::float32, last), padding = make({1, 32, 1, 9}, dtype::float32, last);
  const attributes around = attrs_of({{"pads", int_list{2, 1, 1, 1}}, {"group", int64_t{32}}});
  for (const launch_list& list : onnx_launches("Conv", {around, {nothing, constant({32, 1, 3, 3})}, {padding}, gpu}))
    CHECK(list.name != "depthwise"); // which reads the input's last element
}

namespace {

/// An output that is columns [first, …) of rows of `pitch` elements.
operand part(operand o, int64_t first, int64_t pitch, int64_t rows) {
  o.part = {.pitch = pitch, .first = first, .size = rows * pitch};
  return o;
}

/// Checks that a kernel of products writes rows `pitch` apart from `first` on, the whole range bound, in vectors if
/// they are aligned.
void check_part(const launch_list& list, const operand& out, uint32_t width) {
  INFO(list.name);
  const bool split = list.launches.size() == 2, aligned = out.part.pitch % width == 0 && out.part.first % width == 0;
  const launch &first = list.launches.at(0), &last = list.launches.back();
  CHECK(((first.constants.at(8) & shader::product_vector_out) != 0) == aligned);
  CHECK(last.params.at(split ? 3 : 7) == out.part.pitch);
  CHECK(last.params.at(split ? 6 : 19) == out.part.first);
  CHECK(last.bindings.back().bytes == out.stored_bytes());
  CHECK(last.bindings.back().from == launch_binding::source::output);
}

} // namespace

TEST_CASE("Products write parts of larger rows", "[ops]") {
  const attributes none;
  const auto f16 = dtype::float16;
  for (const auto& [first, pitch] : {std::pair<int64_t, int64_t>{64, 128}, {8, 72}, {4, 68}, {3, 67}})
    for (const int64_t m : {1, 200}) {
      const gpu_features gpu = large_gpu();
      const operand y = part(make({m, 64}, f16), first, pitch, m);
      const launch_lists lists =
          onnx_launches("MatMul", {none, {make({m, 512}, f16), constant({512, 64}, f16)}, {y}, gpu});
      CHECK(lists.size() == (m == 1 ? 3 : 2));
      for (const launch_list& list : lists)
        if (list.name != "gemv")
          check_part(list, y, list.name == "matmul_cooperative" ? 8 : 4);
        else
          CHECK((list.launches.at(0).params.at(7) == pitch && list.launches.at(0).params.at(19) == first));
    }
}

TEST_CASE("Few rows by one matrix are a projection where subgroups can add", "[ops]") {
  gpu_features gpu = large_gpu();
  gpu.subgroup_arithmetic = true;
  gpu.subgroup_size = 32;
  const auto f16 = dtype::float16;
  const auto first = [&](const attributes& attrs, const std::vector<shape>& dims, const operand& y) {
    std::vector<operand> inputs{make(dims[0], f16), constant(dims[1], f16)};
    for (size_t i = 2; i < dims.size(); ++i)
      inputs.push_back(dims[i].empty() ? operand{} : make(dims[i], f16));
    const launch_lists lists = troupe_launches("MatMul", {attrs, inputs, {y}, gpu});
    if (lists.at(0).name == "projections")
      CHECK(lists.at(1).name == "gemv");
    return lists.at(0).name;
  };
  const auto with = [](const char* name, attribute value) {
    attributes attrs;
    attrs.set(name, std::move(value));
    return attrs;
  };
  const operand y = make({2, 48}, f16);
  CHECK(first({}, {{2, 768}, {768, 48}}, y) == "projections");
  CHECK(first(with("transB", int64_t{1}), {{2, 768}, {48, 768}, {48}, {2, 48}}, y) == "projections");
  CHECK(first(with("alpha", 2.f), {{2, 768}, {768, 48}}, y) == "gemv");
  CHECK(first(with("transA", int64_t{1}), {{768, 2}, {768, 48}}, y) != "projections");
  CHECK(first({}, {{5, 768}, {768, 48}}, make({5, 48}, f16)) == "matmul_cooperative");
  CHECK(first({}, {{2, 768}, {768, 48}}, part(make({2, 48}, f16), 48, 96, 2)) == "gemv");
  gpu.subgroup_arithmetic = false;
  CHECK(first({}, {{2, 768}, {768, 48}}, y) == "gemv");
}

TEST_CASE("Convolutions write parts of larger rows where pixels are rows", "[ops]") {
  const gpu_features gpu = large_gpu();
  const auto f16 = dtype::float16;
  const auto last = layout::channels_last;
  const attributes none, padded = attrs_of({{"pads", int_list{1, 1, 1, 1}}}),
                         each = attrs_of({{"pads", int_list{1, 1, 1, 1}}, {"group", int64_t{64}}});
  const operand x = make({2, 64, 5, 6}, f16, last);
  for (const auto& [first, pitch] : {std::pair<int64_t, int64_t>{64, 128}, {4, 68}, {3, 67}}) {
    const operand y = part(make({2, 64, 5, 6}, f16, last), first, pitch, 60);
    for (const int64_t kernel : {1, 3}) {
      const launch_lists lists =
          onnx_launches("Conv", {kernel == 1 ? none : padded, {x, constant({64, 64, kernel, kernel}, f16)}, {y}, gpu});
      REQUIRE(lists.size() >= 2);
      for (const launch_list& list : lists)
        check_part(list, y, list.name.ends_with("_cooperative") ? 8 : 4);
    }
    const launch l = onnx_launches("Conv", {each, {x, constant({64, 1, 3, 3}, f16)}, {y}, gpu}).at(0).launches.at(0);
    CHECK(l.shader == "depthwise.f16");
    CHECK(l.constants.at(0) == (first % 4 == 0 ? 1 : 0)); // vectors
    CHECK((l.params.at(8) == 30 * pitch && l.params.at(10) == pitch && l.params.at(14) == first));
  }
  const auto convolve = [&](const operand& in, const operand& out) {
    return onnx_launches("Conv", {none, {in, constant({64, 64, 1, 1}, f16)}, {out}, gpu});
  };
  const operand plain = make({2, 64, 5, 6}, f16);
  CHECK(convolve(plain, part(plain, 0, 128 * 30, 2)).empty()); // rows of channels first are not pixels
  CHECK(convolve(x, part(x, 0, 128, 61)).empty());             // other rows
  CHECK_FALSE(convolve(plain, plain).empty());
}

TEST_CASE("Rules that do not know parts have no launches for them", "[ops]") {
  gpu_features gpu = large_gpu();
  gpu.group_matrices = true;
  const attributes none;
  const auto f16 = dtype::float16;
  const operand a = make({4096, 4096}, f16), b = constant({4096, 4096}, f16), bias = make({4096}, f16);
  const operand y = part(a, 0, 8192, 4096);
  const auto relu = [&](const operand& out) { return launches_of(*find_op("", "Relu", 17), {none, {a}, {out}, gpu}); };
  CHECK_FALSE(relu(a).empty());
  CHECK(relu(y).empty());
  const auto product = [&](std::vector<operand> inputs, const operand& out) {
    return launches_of(*find_op("troupe", "MatMul", 1), {none, std::move(inputs), {out}, gpu});
  };
  const auto constants = [&](const operand& out) {
    const launch_list list = product({a, b, bias}, out).at(0);
    CHECK(list.name == "matmul.matrices");
    return std::pair(list.launches.at(0).constants.at(4), list.launches.at(0).constants.at(5));
  };
  CHECK(constants(a) == std::pair(4096u, 0u));
  CHECK(constants(part(a, 64, 8192, 4096)) == std::pair(8192u, 64u));
  for (const launch_list& list : product({a, b, bias}, part(a, 4, 8192, 4096))) // no whole vectors
    CHECK(list.name != "matmul.matrices");
  CHECK_FALSE(product({a, b, bias, a}, a).empty());
  CHECK(product({a, b, bias, a}, y).empty()); // the residual's rows have another layout
  const auto f64 = dtype::float64;
  gpu.float64 = gpu.int64 = true;
  const operand c = make({8, 8}, f64);
  CHECK_FALSE(onnx_launches("MatMul", {none, {c, c}, {c}, gpu}).empty());
  CHECK(onnx_launches("MatMul", {none, {c, c}, {part(c, 0, 16, 8)}, gpu}).empty()); // a contraction
}

// Attention of many queries by tiles of keys against the reference: sizes around blocks of rows, tiles of keys and
// teams, masks that are one row for all queries or are not, and masked keys whatever they hold. First by the blocks
// that the launch rule takes, then by every block that it knows.
#include "support/catch.hpp"
#include "support/kernel_case.hpp"

#include <limits>

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr float infinite = std::numeric_limits<float>::infinity();
constexpr float no_number = std::numeric_limits<float>::quiet_NaN();

struct sizes {
  int64_t batch, heads, kv_heads, queries, keys, width, value_width;
  shape mask = {};
};

/// Heads as projections write them.
kernel_case call_of(const sizes& s, bool causal = false) {
  kernel_case c{.op = "Attention",
                .inputs = {random_floats({s.batch, s.queries, s.heads, s.width}, 1),
                           random_floats({s.batch, s.keys, s.kv_heads, s.width}, 2),
                           random_floats({s.batch, s.keys, s.kv_heads, s.value_width}, 3)},
                .domain = "troupe",
                .rtol = 1e-3,
                .atol = 2e-5};
  if (!s.mask.empty())
    c.inputs.push_back(random_floats(s.mask, 4, -3, 0));
  for (const char* name : {"q_layout", "kv_layout", "out_layout"})
    c.attrs.set(name, std::string("bshd"));
  c.attrs.set("scale", 0.3f);
  c.attrs.set("is_causal", int64_t{causal});
  return c;
}

/// A call of ONNX's operator whose mask leaves out every third key of a query, and all keys of query 5.
kernel_case with_holes(int64_t queries, int64_t keys) {
  kernel_case c{.op = "Attention",
                .inputs = {random_floats({1, 2, queries, 16}, 1), random_floats({1, 2, keys, 16}, 2),
                           random_floats({1, 2, keys, 24}, 3), random_floats({queries, keys}, 4)},
                .opset = 23,
                .rtol = 1e-3,
                .atol = 2e-5};
  float* mask = c.inputs[3].mutable_data<float>();
  for (int64_t s = 0; s < queries; ++s)
    for (int64_t t = 0; t < keys; ++t)
      if (t % 3 == 1 || s == 5)
        mask[s * keys + t] = -infinite;
  return c;
}

} // namespace

TEST_CASE("GPU attention by tiles: queries and keys around blocks, tiles and teams", "[vulkan][tiled attention]") {
  for (const int64_t queries : {5, 17, 33, 65})
    for (const int64_t keys : {1, 31, 32, 33, 64, 65, 129})
      check_gpu_kernels(call_of({1, 2, 2, queries, keys, 64, 64}, queries <= keys));
}

TEST_CASE("GPU attention by tiles: widths, rows of heads that share keys, float16", "[vulkan][tiled attention]") {
  for (const sizes& s : {sizes{2, 6, 2, 11, 70, 4, 4},
                         {1, 2, 1, 18, 40, 20, 36},
                         {1, 4, 2, 9, 35, 15, 33},
                         {1, 1, 1, 19, 66, 128, 72},
                         {2, 2, 1, 16, 33, 72, 160}})
    for (const bool half : {false, true}) {
      kernel_case c = call_of(s, true);
      if (half)
        c.atol = 3e-3;
      check_gpu_kernels(c, half);
    }
}

TEST_CASE("GPU attention by tiles: one row of the mask for all queries, or several", "[vulkan][tiled attention]") {
  for (const shape& mask :
       {shape{3, 1, 1, 75}, {75}, {1, 1, 1, 1}, {1, 4, 1, 75}, {3, 1, 20, 75}, {3, 4, 20, 75}, {20, 1}})
    for (const bool causal : {false, true})
      check_gpu_kernels(call_of({3, 4, 2, 20, 75, 32, 32, mask}, causal));
  kernel_case yes_or_no = with_holes(20, 75);
  for (const shape& mask : {shape{75}, {20, 75}}) {
    yes_or_no.inputs[3] = random_integers(dtype::boolean, mask, 5, 0, 2);
    check_gpu_kernels(yes_or_no);
  }
}

TEST_CASE("GPU attention by tiles: masked keys count nothing, whatever they are", "[vulkan][tiled attention]") {
  kernel_case c = with_holes(20, 75);
  check_gpu_kernels(c);
  for (const size_t i : {1, 2}) { // keys, and then values besides
    const int64_t width = c.inputs[i].dims()[3];
    for (int64_t row = 0; row < 2 * 75; ++row)
      if (row % 75 % 3 == 1)
        c.inputs[i].mutable_data<float>()[row * width + row % width] = row % 2 == 0 ? infinite : no_number;
    check_gpu_kernels(c);
  }
}

TEST_CASE("GPU attention by tiles: infinities and NaN of keys that count", "[vulkan][tiled attention]") {
  for (const float odd : {infinite, -infinite, no_number})
    for (const size_t i : {0, 1, 2}) {
      kernel_case c = call_of({1, 2, 2, 20, 75, 16, 16});
      c.inputs[i].mutable_data<float>()[5 * 2 * 16 + 3] = odd;
      check_gpu_kernels(c);
    }
}

namespace {

/// Every block of attention_tiled.comp: rows x keys of a tile x teams.
const char* const blocks[] = {"attention.tiled64x32",   "attention.tiled32x32",   "attention.tiled32x32x2",
                              "attention.tiled32x16x4", "attention.tiled16x32x2", "attention.tiled16x16x4"};

/// Checks a call by every block, whose shared memory has to suffice on any device: keys are at most 48 wide, values 32.
/// `split`: with keys split over groups too.
void check_blocks(const kernel_case& c, bool split = false) {
  const std::set<std::string> names = check_gpu_ways(c, "attention.tiled");
  for (const std::string block : blocks) {
    INFO(block);
    CHECK(names.contains(block));
    if (split)
      CHECK(names.contains(block + ".split"));
  }
}

/// Sets an element of row 3 and one of row 30 of operand `i`, whose rows are `width` long, to NaN and infinity.
void spoil(kernel_case& c, size_t i, int64_t width) {
  auto* e = c.inputs[i].mutable_data<float>();
  e[3 * width + 1] = no_number;
  e[30 * width + width - 1] = infinite;
}

} // namespace

// Equal widths in different tests: compiling kernels takes most of their time.
TEST_CASE("GPU attention by every block: rows and keys beyond it, heads that share keys", "[vulkan][tiled attention]") {
  for (const auto& [queries, keys] : {std::pair<int64_t, int64_t>{5, 1}, {9, 17}, {17, 33}, {33, 65}, {35, 90}}) {
    INFO(queries << " queries, " << keys << " keys");
    check_blocks(call_of({2, 4, 2, queries, keys, 48, 20}));
    check_blocks(call_of({1, 2, 1, queries, keys, 48, 20}, true));
  }
  kernel_case half = call_of({1, 2, 1, 35, 75, 15, 29}, true);
  half.atol = 3e-3;
  CHECK(check_gpu_ways(half, "attention.tiled32x", true).size() == 3); // of one, two and four teams
}

TEST_CASE("GPU attention by every block: masks by query and head, one for all, rows that see nothing",
          "[vulkan][tiled attention]") {
  for (const shape& mask : {shape{20, 75}, {2, 4, 20, 75}, {2, 1, 1, 75}})
    check_blocks(call_of({2, 4, 2, 20, 75, 48, 20, mask}));
  check_blocks(with_holes(35, 75));
}

TEST_CASE("GPU attention by every block: NaN and infinities stay in their rows", "[vulkan][tiled attention]") {
  kernel_case queries = call_of({1, 2, 1, 37, 75, 48, 20}, true);
  spoil(queries, 0, 48);
  check_blocks(queries);
  kernel_case keys = with_holes(35, 75), values = keys;
  spoil(keys, 1, 16);
  check_blocks(keys);
  spoil(values, 2, 24);
  check_blocks(values);
}

TEST_CASE("GPU attention by every block: keys split over groups", "[vulkan][tiled attention]") {
  check_blocks(call_of({1, 1, 1, 33, 300, 48, 20}), true);
  kernel_case holes = with_holes(35, 300);
  for (const size_t i : {0, 1, 2}) { // of one head: few groups
    const shape dims = holes.inputs[i].dims();
    holes.inputs[i] = random_floats({1, 1, dims[2], dims[3]}, i);
  }
  for (int64_t s = 0; s < 7; ++s) // queries whose first splits see nothing
    std::fill_n(holes.inputs[3].mutable_data<float>() + s * 300, 280, -infinite);
  check_blocks(holes, true);
}

TEST_CASE("GPU attention by every block that has room for wide heads", "[vulkan][tiled attention]") {
  CHECK(check_gpu_ways(call_of({1, 2, 1, 19, 70, 64, 80}, true), "attention.tiled").size() >= 3);
  check_gpu_ways(call_of({1, 2, 1, 19, 70, 128, 128}, true), "attention.tiled"); // 32 KiB have room for none
}

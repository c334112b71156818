#include "support/catch.hpp"
#include "support/kernel_case.hpp"
#include "support/packed_heads.hpp"

#include <limits>

using namespace troupe;
using namespace troupe::test;

namespace {

/// Sizes of a call; masks broadcast to [batch, heads, queries, keys].
struct sizes {
  int64_t batch, heads, kv_heads, queries, keys, width, value_width;
  shape mask = {};
};

shape dims_of(int64_t batch, int64_t heads, int64_t positions, int64_t width, const std::string& layout) {
  return layout == "bshd" ? shape{batch, positions, heads, width} : shape{batch, heads, positions, width};
}

kernel_case fused(const sizes& s, bool causal, const std::string& layout) {
  attributes attrs;
  attrs.set("scale", 0.3f);
  attrs.set("is_causal", int64_t{causal});
  for (const char* name : {"q_layout", "kv_layout", "out_layout"})
    attrs.set(name, layout);
  std::vector<tensor> inputs{random_floats(dims_of(s.batch, s.heads, s.queries, s.width, layout), 1),
                             random_floats(dims_of(s.batch, s.kv_heads, s.keys, s.width, layout), 2),
                             random_floats(dims_of(s.batch, s.kv_heads, s.keys, s.value_width, layout), 3)};
  if (!s.mask.empty())
    inputs.push_back(random_floats(s.mask, 4, -3, 0));
  return {.op = "Attention", .inputs = inputs, .attrs = attrs, .domain = "troupe", .rtol = 1e-3, .atol = 2e-5};
}

tensor mask_with_holes(shape dims) {
  tensor t = random_floats(std::move(dims), 7, -1, 1);
  for (int64_t i = 0; i < t.size(); ++i)
    if (i % 3 != 1)
      t.mutable_data<float>()[i] = -std::numeric_limits<float>::infinity();
  return t;
}

/// Scores far apart, masked keys, and a row of the mask that is −inf alone.
kernel_case large_scores(int64_t queries) {
  constexpr int64_t keys = 90;
  kernel_case c = fused({1, 2, 2, queries, keys, 16, 16, {1, 1, queries, keys}}, false, "bhsd");
  c.inputs[0] = random_floats({1, 2, queries, 16}, 1, -60, 60);
  c.inputs[3] = mask_with_holes({1, 1, queries, keys});
  std::fill_n(c.inputs[3].mutable_data<float>(), keys, -std::numeric_limits<float>::infinity());
  return c;
}

} // namespace

TEST_CASE("GPU attention: sizes, groups of heads, layouts, masks", "[vulkan]") {
  const sizes all[] = {
      {1, 2, 2, 37, 37, 64, 64},
      {2, 4, 2, 5, 19, 16, 8, {2, 1, 1, 19}},
      {1, 6, 2, 3, 70, 10, 7, {3, 70}},
      {2, 2, 1, 17, 130, 40, 24, {1, 2, 17, 130}},
      {1, 1, 1, 9, 33, 256, 256},
      {1, 2, 2, 20, 8, 100, 132},
      {0, 2, 2, 4, 4, 8, 8},
  };
  for (const sizes& s : all)
    for (bool causal : {false, true})
      for (const char* layout : {"bhsd", "bshd"}) {
        if (causal && s.queries > s.keys)
          continue;
        check_gpu_kernels(fused(s, causal, layout));
        kernel_case half = fused(s, causal, layout);
        half.atol = 2e-3;
        check_gpu_kernels(half, true);
      }
}

TEST_CASE("GPU attention by matrices: tiles, heads that share keys, masks, causality", "[vulkan]") {
  std::set<std::string> names; // of kernels; empty on a GPU without such matrices
  for (const sizes& s : {sizes{1, 2, 2, 37, 37, 64, 64},
                         {2, 4, 2, 70, 133, 64, 64, {2, 1, 1, 133}},
                         {1, 2, 1, 33, 97, 128, 128, {1, 2, 33, 97}},
                         {1, 1, 1, 16, 1, 64, 64},
                         {1, 2, 2, 40, 128, 32, 32, {1, 2, 1, 128}},
                         {2, 2, 1, 197, 197, 64, 64, {2, 1, 1, 197}},
                         {1, 2, 2, 33, 256, 64, 64},
                         {1, 2, 1, 65, 300, 64, 64, {65, 300}},
                         {3, 4, 2, 65, 144, 32, 32, {3, 1, 65, 144}},
                         {2, 2, 2, 95, 71, 128, 128, {2, 1, 1, 71}}})
    for (bool causal : {false, true})
      for (const char* layout : {"bhsd", "bshd"}) {
        if (causal && s.queries > s.keys)
          continue;
        kernel_case c = fused(s, causal, layout);
        c.atol = 3e-3;
        names.merge(check_gpu_ways(c, "attention.matrices", true));
      }
  CHECK((names.empty() || names.size() == 5)); // two tiles for heads of 128, three for others
  kernel_case hidden = fused({1, 2, 2, 20, 90, 64, 64, {1, 1, 20, 90}}, false, "bhsd");
  hidden.inputs[3] = mask_with_holes({1, 1, 20, 90});
  for (int64_t t = 0; t < 90; ++t) // a row of −inf alone
    hidden.inputs[3].mutable_data<float>()[t] = -std::numeric_limits<float>::infinity();
  hidden.atol = 3e-3;
  check_gpu_ways(hidden, "attention.matrices", true);
}

TEST_CASE("GPU attention by matrices: masks that hide whole tiles of keys", "[vulkan]") {
  constexpr float lowest = -65504, infinite = std::numeric_limits<float>::infinity();
  const sizes one{1, 16, 4, 512, 530, 64, 64, {1, 1, 512, 530}}, each{2, 8, 8, 520, 520, 32, 32, {2, 8, 520, 520}};
  const sizes wide{1, 16, 16, 512, 513, 128, 128, {512, 513}};
  const auto check = [](const sizes& s, bool causal, auto&& mask) {
    kernel_case c = fused(s, causal, "bshd");
    float* m = c.inputs[3].mutable_data<float>();
    for (int64_t i = 0; i < c.inputs[3].size(); ++i)
      m[i] = mask(i / (s.queries * s.keys), i / s.keys % s.queries, i % s.keys);
    c.atol = 3e-3;
    check_gpu_ways(c, "attention.matrices", true);
  };
  for (const sizes& s : {one, each, wide}) {
    const int64_t past = s.keys - s.queries;
    check(s, false, [&](int64_t, int64_t q, int64_t k) { return k <= q + past ? 0 : lowest; });
    // Padding on the left, by which the first rows see nothing, but for what is the same for all keys.
    check(s, false, [&](int64_t i, int64_t q, int64_t k) { return k <= q + past && k >= 70 * i + 90 ? 0 : lowest; });
    check(s, false, [&](int64_t, int64_t q, int64_t k) { return k <= q && k > q - 100 ? 0 : -infinite; });
    check(s, false, [&](int64_t, int64_t q, int64_t k) { return k > q + 20 || k % 7 == 3 ? -infinite : 0.01f * k; });
    check(s, true, [&](int64_t, int64_t, int64_t k) { return k < 200 ? lowest : 0; });
  }
}

TEST_CASE("GPU attention by matrices: infinities and NaN of keys that count", "[vulkan]") {
  for (const float odd : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
    for (const size_t i : {0, 1, 2}) {
      kernel_case c = fused({1, 2, 2, 20, 75, 64, 64}, false, "bhsd");
      c.inputs[i].mutable_data<float>()[5 * 64 + 3] = odd;
      c.atol = 3e-3;
      check_gpu_ways(c, "attention.matrices", true);
    }
}

TEST_CASE("GPU attention of few queries and many keys is split", "[vulkan]") {
  for (const sizes& s :
       {sizes{1, 2, 2, 1, 700, 64, 64}, {1, 4, 1, 1, 1025, 32, 36, {1, 1, 1, 1025}}, {1, 1, 1, 3, 999, 20, 18}})
    for (bool causal : {false, true}) {
      check_gpu_kernels(fused(s, causal, "bhsd"));
      kernel_case half = fused(s, causal, "bshd");
      half.atol = 2e-3;
      check_gpu_kernels(half, true);
    }
}

TEST_CASE("GPU attention of few queries: blocks of keys, splits, widths, masks", "[vulkan]") {
  for (const sizes& s : {sizes{1, 3, 3, 1, 1, 64, 64},
                         {2, 4, 2, 1, 65, 64, 64, {2, 1, 1, 65}},
                         {1, 8, 1, 4, 300, 8, 40, {4, 300}},
                         {1, 2, 1, 2, 520, 128, 16, {1, 2, 2, 520}},
                         {1, 1, 1, 1, 2, 512, 512},
                         {2, 1, 1, 3, 2501, 16, 24, {2, 1, 3, 2501}},
                         {1, 1, 1, 1, 5000, 8, 8}})
    for (bool causal : {false, true})
      for (const char* layout : {"bhsd", "bshd"}) {
        if (causal && s.queries > s.keys)
          continue;
        check_gpu_kernels(fused(s, causal, layout));
        kernel_case half = fused(s, causal, layout);
        half.atol = 2e-3;
        check_gpu_kernels(half, true);
      }
  check_gpu_kernels(large_scores(2));
}

TEST_CASE("GPU attention with a cache: few and many queries, every layout of new keys", "[vulkan]") {
  for (const sizes& s : {sizes{1, 3, 3, 1, 1, 64, 64},
                         {2, 4, 2, 1, 1, 64, 64, {2, 1, 1, 66}},
                         {1, 4, 2, 3, 3, 16, 24, {3, 68}},
                         {1, 2, 1, 20, 20, 64, 64},
                         {1, 2, 2, 5, 2, 10, 7}})
    for (int64_t past : {0, 65, 2050})
      for (bool causal : {false, true})
        for (const char* layout : {"bhsd", "bshd"}) {
          if ((causal && s.queries > s.keys + past) || (past != 65 && !s.mask.empty()))
            continue;
          kernel_case c = fused(s, causal, layout);
          c.inputs.resize(6);
          c.inputs[4] = random_floats({s.batch, s.kv_heads, past, s.width}, 5);
          c.inputs[5] = random_floats({s.batch, s.kv_heads, past, s.value_width}, 6);
          check_gpu_kernels(c);
          c.atol = 3e-3;
          check_gpu_kernels(c, true);
          c.inputs[4] = random_floats({past, s.batch, s.kv_heads, s.width}, 5);
          c.inputs[5] = random_floats({past, s.batch, s.kv_heads, s.value_width}, 6);
          c.attrs.set("past_layout", std::string("sbhd"));
          check_gpu_kernels(c, true);
        }
}

TEST_CASE("GPU attention reads some heads of its operands", "[vulkan]") {
  for (const sizes& s : {sizes{1, 3, 3, 37, 37, 64, 64},
                         {2, 4, 2, 70, 133, 64, 64, {2, 1, 1, 133}},
                         {1, 2, 1, 33, 97, 128, 128},
                         {1, 6, 2, 3, 70, 10, 7, {3, 70}},
                         {2, 2, 1, 2, 65, 16, 24},
                         {1, 2, 2, 1, 1300, 20, 12}})
    for (const int64_t past : {0, 66})
      for (const char* layout : {"bhsd", "bshd"}) {
        kernel_case c = fused(s, past == 0 && s.queries <= s.keys, layout);
        if (past > 0) {
          c.inputs.resize(3);
          c.inputs.emplace_back();
          c.inputs.push_back(random_floats({s.batch, s.kv_heads, past, s.width}, 5));
          c.inputs.push_back(random_floats({s.batch, s.kv_heads, past, s.value_width}, 6));
        }
        put_among_heads(c.inputs, c.attrs);
        check_gpu_kernels(c);
        c.atol = 3e-3;
        if (layout == std::string("bshd")) // as projections write them
          check_gpu_kernels(c, true);
      }
  kernel_case many = fused({30, 12, 4, 65, 40, 64, 64}, false, "bshd"); // blocks of 64 queries for every multiprocessor
  put_among_heads(many.inputs, many.attrs);
  many.atol = 3e-3;
  check_gpu_kernels(many, true);
}

TEST_CASE("GPU attention in float16 with a float32 cache: few and many queries, splits, both orders", "[vulkan]") {
  for (const sizes& s : {sizes{1, 3, 3, 1, 1, 64, 64},
                         {2, 4, 2, 1, 1, 64, 64, {2, 1, 1, 66}},
                         {1, 4, 2, 3, 3, 16, 24, {3, 68}},
                         {1, 2, 1, 20, 20, 64, 64}})
    for (int64_t past : {0, 65, 2050})
      for (bool causal : {false, true})
        for (const bool first : {false, true}) {
          if (past != 65 && !s.mask.empty())
            continue;
          kernel_case c = fused(s, causal, "bshd");
          c.inputs.resize(6);
          for (tensor& t : c.inputs)
            if (t.defined())
              t = to_half(t);
          const auto cache = [&](int64_t width, uint64_t seed) {
            return random_floats(
                first ? shape{past, s.batch, s.kv_heads, width} : shape{s.batch, s.kv_heads, past, width}, seed);
          };
          c.inputs[4] = cache(s.width, 5);
          c.inputs[5] = cache(s.value_width, 6);
          c.attrs.set("past_layout", std::string(first ? "sbhd" : "bhsd"));
          c.rtol = 1e-2;
          c.atol = 3e-3;
          check_gpu_kernels(c);
        }
}

TEST_CASE("GPU attention: large scores and masked keys", "[vulkan]") {
  check_gpu_kernels(large_scores(20));
}

TEST_CASE("GPU ONNX attention: masks, causality, rows without keys", "[vulkan]") {
  attributes causal, flat;
  causal.set("is_causal", int64_t{1});
  flat.set("q_num_heads", int64_t{4});
  flat.set("kv_num_heads", int64_t{2});
  const std::vector<tensor> four{random_floats({2, 4, 6, 8}, 1), random_floats({2, 2, 11, 8}, 2),
                                 random_floats({2, 2, 11, 12}, 3)};
  const std::vector<tensor> three{random_floats({2, 6, 32}, 1), random_floats({2, 11, 16}, 2),
                                  random_floats({2, 11, 24}, 3)};
  const tensor masks[] = {tensor(), mask_with_holes({6, 11}), random_integers(dtype::boolean, {2, 1, 6, 11}, 5, 0, 2),
                          random_integers(dtype::boolean, {6, 1}, 6, 0, 2), mask_with_holes({2, 4, 6, 7})};
  for (const tensor& mask : masks)
    for (const auto& [inputs, attrs] : {std::pair{four, attributes()}, {four, causal}, {three, flat}}) {
      kernel_case c{.op = "Attention", .inputs = inputs, .attrs = attrs, .opset = 23, .rtol = 1e-3, .atol = 2e-5};
      c.inputs.push_back(mask);
      if (!mask.defined())
        c.inputs.pop_back();
      check_gpu_kernels(c);
    }
}

TEST_CASE("GPU ONNX attention: past keys, softcap, lengths, scores", "[vulkan]") {
  attributes flat;
  flat.set("q_num_heads", int64_t{4});
  flat.set("kv_num_heads", int64_t{2});
  const std::vector<tensor> four{random_floats({2, 4, 6, 8}, 1), random_floats({2, 2, 7, 8}, 2),
                                 random_floats({2, 2, 7, 12}, 3)};
  const std::vector<tensor> three{random_floats({2, 6, 32}, 1), random_floats({2, 7, 16}, 2),
                                  random_floats({2, 7, 24}, 3)};
  for (const auto& [inputs, attrs] : {std::pair{four, attributes()}, {three, flat}})
    for (int64_t mode : {0, 1, 2, 3})
      for (int64_t past : {0, 5}) {
        kernel_case c{.op = "Attention", .inputs = inputs, .attrs = attrs, .opset = 24, .outputs = 4};
        c.rtol = 1e-3;
        c.atol = 2e-5;
        c.attrs.set("qk_matmul_output_mode", mode);
        c.attrs.set("softcap", mode % 2 == 0 ? 0.7f : 0.f);
        c.attrs.set("is_causal", mode / 2);
        c.inputs.push_back(past > 0 ? mask_with_holes({6, 7 + past})
                                    : random_integers(dtype::boolean, {2, 1, 6, 7}, 5, 0, 2));
        if (past > 0) {
          c.inputs.push_back(random_floats({2, 2, past, 8}, 6));
          c.inputs.push_back(random_floats({2, 2, past, 12}, 7));
        }
        check_gpu_kernels(c);
        if (past > 0) { // the joined keys and values are not wanted
          kernel_case alone = c;
          alone.outputs = 1;
          check_gpu_kernels(alone);
        }
        c.atol = 3e-3;
        check_gpu_kernels(c, true);
      }
  for (int64_t causal : {0, 1})
    for (size_t outputs : {1, 4}) {
      kernel_case c{.op = "Attention", .inputs = four, .opset = 24, .outputs = outputs, .rtol = 1e-3, .atol = 2e-5};
      c.attrs.set("is_causal", causal);
      c.inputs.resize(7);
      c.inputs[6] = tensor::of<int64_t>({2}, std::vector<int64_t>{3, 7});
      check_gpu_kernels(c);
    }
}

namespace {

enum class cache_types : uint8_t { float32, float16, float32_beside_float16 };

/// A call of ONNX's Attention with caches of `past` positions whose joined keys and values are not wanted.
kernel_case beside_caches(int64_t queries, int64_t past, bool flat, cache_types types) {
  const auto rows = [&](int64_t heads, int64_t width, uint64_t seed) {
    return random_floats(flat ? shape{2, queries, heads * width} : shape{2, heads, queries, width}, seed);
  };
  const bool half = types != cache_types::float32;
  kernel_case c{.op = "Attention",
                .inputs = {rows(4, 16, 1), rows(2, 16, 2), rows(2, 24, 3),
                           random_integers(dtype::boolean, {2, 1, queries, past + queries}, 4, 0, 4),
                           random_floats({2, 2, past, 16}, 5), random_floats({2, 2, past, 24}, 6)},
                .opset = 23,
                .rtol = half ? 1e-2 : 1e-3,
                .atol = half ? 3e-3 : 2e-5};
  for (const size_t i : {0, 1, 2, 4, 5})
    if (types == cache_types::float16 || (half && i < 3))
      c.inputs[i] = to_half(c.inputs[i]);
  c.attrs.set("is_causal", int64_t{1});
  if (flat) {
    c.attrs.set("q_num_heads", int64_t{4});
    c.attrs.set("kv_num_heads", int64_t{2});
  }
  return c;
}

} // namespace

TEST_CASE("GPU ONNX attention beside its caches: few and many queries, types", "[vulkan]") {
  using enum cache_types;
  for (const int64_t queries : {1, 3, 9})
    for (const int64_t past : {0, 70})
      for (const bool flat : {false, true})
        for (const cache_types types : {float32, float16, float32_beside_float16})
          check_gpu_kernels(beside_caches(queries, past, flat, types));
}

TEST_CASE("GPU rotary embedding", "[vulkan]") {
  for (const char* layout : {"bhsd", "bshd"})
    for (int64_t width : {6, 16})
      for (int64_t batch : {1, 2})
        for (bool half : {false, true}) {
          attributes attrs;
          attrs.set("layout", std::string(layout));
          check_gpu_kernels({.op = "Rotary",
                             .inputs = {random_floats(dims_of(2, 3, 5, width, layout), 1),
                                        random_floats({batch, 5, width}, 2), random_floats({1, 5, width}, 3)},
                             .attrs = attrs,
                             .domain = "troupe",
                             .atol = half ? 1e-3 : 1e-5},
                            half);
        }
}

TEST_CASE("GPU ONNX rotary embedding", "[vulkan]") {
  for (int64_t interleaved : {0, 1})
    for (int64_t rotated : {0, 4})
      for (bool positions : {false, true})
        for (bool flat : {false, true}) {
          attributes attrs;
          attrs.set("interleaved", interleaved);
          attrs.set("rotary_embedding_dim", rotated);
          attrs.set("num_heads", int64_t{3});
          const int64_t pairs = rotated ? rotated / 2 : 4;
          const shape cache = positions ? shape{9, pairs} : shape{2, 5, pairs};
          std::vector<tensor> inputs{random_floats(flat ? shape{2, 5, 24} : shape{2, 3, 5, 8}, 1),
                                     random_floats(cache, 2), random_floats(cache, 3)};
          if (positions)
            inputs.push_back(random_integers(dtype::int64, {2, 5}, 4, 0, 9));
          check_gpu_kernels({.op = "RotaryEmbedding", .inputs = inputs, .attrs = attrs, .opset = 23});
        }
}

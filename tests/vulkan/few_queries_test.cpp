// Attention of few queries against the reference: rows that share keys, numbers of keys around each block and split,
// caches of every type.
#include "support/bound_values.hpp"
#include "support/cached_decoder.hpp"

#include <limits>

using namespace troupe;
using namespace troupe::test;

namespace {

enum class cache_types : uint8_t { float32, float16, float32_caches };

/// Sizes of a call; `past` of its `keys` are in caches.
struct sizes {
  int64_t batch, heads, kv_heads, queries, keys, past, width, value_width;
  shape mask = {};
};

kernel_case call_of(const sizes& s, cache_types of, bool causal, bool rows_first) {
  const int64_t fresh = s.keys - s.past;
  kernel_case c{.op = "Attention",
                .inputs = {random_floats({s.batch, s.queries, s.heads, s.width}, 1, -2, 2),
                           random_floats({s.batch, fresh, s.kv_heads, s.width}, 2),
                           random_floats({s.batch, fresh, s.kv_heads, s.value_width}, 3)},
                .domain = "troupe",
                .rtol = of == cache_types::float32 ? 1e-3 : 1e-2,
                .atol = of == cache_types::float32 ? 2e-5 : 3e-3};
  c.inputs.push_back(s.mask.empty() ? tensor() : random_floats(s.mask, 4, -3, 0));
  if (s.past > 0)
    for (const int64_t width : {s.width, s.value_width})
      c.inputs.push_back(random_floats(
          rows_first ? shape{s.past, s.batch, s.kv_heads, width} : shape{s.batch, s.kv_heads, s.past, width}, 5));
  for (size_t i = 0; i < c.inputs.size(); ++i)
    if (c.inputs[i].defined() && (of == cache_types::float16 || (of == cache_types::float32_caches && i < 4)))
      c.inputs[i] = to_half(c.inputs[i]);
  for (const char* name : {"q_layout", "kv_layout", "out_layout"})
    c.attrs.set(name, std::string("bshd"));
  c.attrs.set("past_layout", std::string(rows_first ? "sbhd" : "bhsd"));
  c.attrs.set("scale", 0.3f);
  c.attrs.set("is_causal", int64_t{causal});
  return c;
}

} // namespace

TEST_CASE("GPU attention of few queries: numbers of keys around blocks and splits", "[vulkan]") {
  using enum cache_types;
  for (const int64_t keys : {1, 33, 64, 65, 129, 257, 520})
    check_gpu_kernels(call_of({1, 2, 1, 1, keys, keys - 1, 64, 64}, float16, keys % 2 == 1, true));
  for (const int64_t keys : {63, 128, 513})
    check_gpu_kernels(call_of({1, 2, 1, 1, keys, keys / 2 + 1, 64, 64}, float32_caches, keys % 2 == 1, false));
  for (const int64_t keys : {2, 127, 256})
    check_gpu_kernels(call_of({1, 2, 1, 1, keys, 0, 64, 64}, float32, keys % 2 == 1, false));
}

TEST_CASE("GPU attention of few queries: widths, rows that share keys, masks", "[vulkan]") {
  using enum cache_types;
  for (const cache_types of : {float32, float16, float32_caches})
    for (const sizes& s : {sizes{1, 6, 2, 2, 70, 68, 8, 24, {1, 6, 2, 70}},
                           {2, 8, 1, 1, 140, 139, 80, 96, {2, 1, 1, 140}},
                           {2, 5, 5, 3, 150, 146, 16, 16, {3, 1}},
                           {1, 7, 1, 1, 300, 257, 128, 128},
                           {3, 3, 1, 4, 200, 190, 48, 40, {3, 1, 4, 200}},
                           {1, 2, 2, 1, 90, 80, 160, 256},
                           {1, 2, 1, 2, 90, 80, 320, 512},
                           {9, 8, 4, 1, 170, 165, 32, 64}})
      for (const bool causal : {false, true})
        check_gpu_kernels(call_of(s, of, causal, causal));
}

TEST_CASE("GPU attention of few queries: masked, infinite and NaN elements stay with their rows", "[vulkan]") {
  constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  constexpr int64_t keys = 300, width = 16, heads = 4;
  kernel_case c =
      call_of({1, heads, 2, 1, keys, 290, width, width, {1, heads, 1, keys}}, cache_types::float32, false, false);
  const auto mask_of = [&](int64_t head) { return c.inputs[3].mutable_data<float>() + head * keys; };
  std::fill_n(mask_of(0), keys, -infinity); // a row of -inf alone is NaN
  std::fill_n(mask_of(1), 250, -infinity);  // whole splits are
  for (int64_t t = 0; t < keys; ++t)        // one key alone
    mask_of(2)[t] = t == 137 ? 0.f : -infinity;
  mask_of(3)[200] = infinity;
  check_gpu_kernels(c);
  mask_of(3)[200] = nan;
  check_gpu_kernels(c);
}

TEST_CASE("GPU ONNX attention of few queries never multiplies masked values", "[vulkan]") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const bool by_row : {false, true}) { // all of a row's keys, or some of them
    kernel_case c{.op = "Attention",
                  .inputs = {random_floats({1, 4, 2, 16}, 1), random_floats({1, 2, 200, 16}, 2),
                             random_floats({1, 2, 200, 16}, 3),
                             random_integers(dtype::boolean, by_row ? shape{2, 1} : shape{1, 4, 2, 200}, 9, 0, 2)},
                  .opset = 23,
                  .rtol = 1e-3,
                  .atol = 2e-5};
    if (!by_row)
      for (int64_t i = 0; i < 8; ++i) // keys that no query sees
        for (int64_t t = 60; t < 70; ++t)
          c.inputs[3].mutable_data<uint8_t>()[i * 200 + t] = 0;
    else
      c.inputs[3].mutable_data<uint8_t>()[1] = 0;
    for (int64_t h = 0; h < 2; ++h)
      for (int64_t e = 60 * 16; !by_row && e < 70 * 16; ++e)
        c.inputs[1].mutable_data<float>()[h * 200 * 16 + e] = c.inputs[2].mutable_data<float>()[h * 200 * 16 + e] = nan;
    check_gpu_kernels(c);
  }
}

TEST_CASE("a bound decode goes on where more splits of its keys are needed", "[actors][vulkan][B7]") {
  engine e(engine_of({gpu("d", {.poison = true})}));
  const session model = e.load(cached_decoder(1), {.precision = GENERATE(precision::fp32, precision::fp16)});
  bound_session bound = model.bind({{"present_k0", "past_k0"}, {"present_v0", "past_v0"}});
  named_tensors caches{{"past_k0", random_floats({1, 2, 8186, 8}, 1)}, {"past_v0", random_floats({1, 2, 8186, 8}, 2)}};
  for (uint64_t step = 0; step < 12; ++step) { // one token each: 8,192 keys are 16 splits of 512
    const tensor x = random_floats({1, 1, 16}, 10 + step);
    named_tensors inputs = step == 0 ? caches : named_tensors();
    inputs["x"] = caches["x"] = x;
    const run_result fed = model.run(caches);
    CHECK(same(bound.run(inputs).outputs.at("y"), fed.outputs.at("y")));
    caches = {{"past_k0", fed.outputs.at("present_k0")}, {"past_v0", fed.outputs.at("present_v0")}};
  }
  CHECK(new_gpu_messages() == "");
}

TEST_CASE("a bound decode whose attention is projected goes on where it has more keys than are read at once",
          "[actors][vulkan][B7]") {
  engine e(engine_of({gpu("d", {.poison = true})}));
  const session model = e.load(projected_decoder(), {.precision = GENERATE(precision::fp32, precision::fp16)});
  const std::vector<std::string> names = cache_names();
  std::vector<output_binding> pairs;
  named_tensors caches;
  for (const std::string& name : names) {
    pairs.push_back({"present_" + name, "past_" + name});
    caches["past_" + name] = random_floats({1, 2, 250, 8}, pairs.size());
  }
  bound_session bound = model.bind(pairs);
  for (uint64_t step = 0; step < 12; ++step) {
    const tensor x = random_floats({1, 1, 16}, 20 + step);
    named_tensors inputs = step == 0 ? caches : named_tensors();
    inputs["x"] = caches["x"] = x;
    const run_result fed = model.run(caches);
    CHECK(same(bound.run(inputs).outputs.at("y"), fed.outputs.at("y")));
    for (const std::string& name : names)
      caches["past_" + name] = fed.outputs.at("present_" + name);
  }
  CHECK(new_gpu_messages() == "");
}

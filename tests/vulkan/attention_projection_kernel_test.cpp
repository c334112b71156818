// troupe.AttentionProjection on the GPU: the kernel of a decode step, and attention and product apart.
#include "ops/composed/fused_attention.hpp"
#include "support/catch.hpp"
#include "support/kernel_case.hpp"
#include "support/packed_heads.hpp"

#include <limits>

using namespace troupe;
using namespace troupe::test;

namespace {

/// Sizes of a call: with a cache of `past` keys, new ones beside it, and a mask of that shape if it has one.
struct sizes {
  int64_t heads, kv_heads, past, width, value_width, columns;
  shape mask = {};
  int64_t batch = 1, queries = 1;
};

struct ends {
  bool bias, residual, transposed = false;
};

kernel_case projected(const sizes& s, const ends& e) {
  const int64_t depth = s.heads * s.value_width;
  kernel_case c{.op = "AttentionProjection",
                .inputs = {random_floats({s.batch, s.queries, s.heads, s.width}, 1),
                           random_floats({s.batch, s.queries, s.kv_heads, s.width}, 2),
                           random_floats({s.batch, s.queries, s.kv_heads, s.value_width}, 3)},
                .domain = "troupe",
                .rtol = 1e-3,
                .atol = 1e-4,
                .constants = 1u << attention_projection::weights | 1u << attention_projection::bias};
  c.inputs.resize(attention_projection::residual + 1);
  if (!s.mask.empty())
    c.inputs[3] = random_floats(s.mask, 4, -3, 0);
  if (s.past > 0) {
    c.inputs[4] = random_floats({s.batch, s.kv_heads, s.past, s.width}, 5);
    c.inputs[5] = random_floats({s.batch, s.kv_heads, s.past, s.value_width}, 6);
  }
  c.inputs[attention_projection::weights] =
      random_floats(e.transposed ? shape{s.columns, depth} : shape{depth, s.columns}, 7, -0.2f, 0.2f);
  if (e.bias)
    c.inputs[attention_projection::bias] = random_floats({s.columns}, 8);
  if (e.residual)
    c.inputs[attention_projection::residual] = random_floats({s.batch, s.queries, s.columns}, 9);
  while (!c.inputs.back().defined())
    c.inputs.pop_back();
  for (const char* name : {"q_layout", "kv_layout", "out_layout"})
    c.attrs.set(name, std::string("bshd"));
  c.attrs.set("scale", 0.3f);
  c.attrs.set("transB.product", int64_t{e.transposed});
  return c;
}

void check(kernel_case c) {
  check_gpu_kernels(c);
  c.rtol = c.atol = 1e-2;
  check_gpu_kernels(c, true);
}

} // namespace

TEST_CASE("GPU attention with its projection: heads, keys, widths, columns, what is added", "[vulkan]") {
  for (const sizes& s : {sizes{2, 2, 0, 64, 64, 48},
                         {12, 12, 65, 64, 64, 768, {1, 1, 1, 66}},
                         {32, 4, 65, 64, 64, 300},
                         {8, 1, 500, 32, 96, 70, {501}},
                         {3, 3, 17, 16, 40, 33},
                         {6, 2, 1300, 128, 128, 257, {1, 6, 1, 1301}},
                         {1, 1, 2, 8, 8, 9}})
    for (const ends& e : {ends{false, false}, {true, true, true}, {false, true}, {true, false}})
      check(projected(s, e));
}

TEST_CASE("GPU attention with its projection: several queries, several batch elements", "[vulkan]") {
  check(projected({4, 2, 20, 16, 16, 24, {}, 1, 3}, {true, true}));
  check(projected({4, 2, 20, 16, 16, 24, {}, 2, 1}, {true, true}));
}

TEST_CASE("GPU attention with its projection: caches of other types and orders, masked keys, heads among others",
          "[vulkan]") {
  const sizes s{8, 4, 70, 32, 32, 96, {1, 1, 1, 71}};
  kernel_case c = projected(s, {false, true});
  for (int64_t t = 0; t < 71; ++t)
    if (t % 3 != 1)
      c.inputs[3].mutable_data<float>()[t] = -std::numeric_limits<float>::infinity();
  check(c);
  c.inputs[4] = random_floats({70, 1, 4, 32}, 5);
  c.inputs[5] = random_floats({70, 1, 4, 32}, 6);
  c.attrs.set("past_layout", std::string("sbhd"));
  check(c);
  for (const size_t i : {0, 1, 2, 3, 6, 8})
    c.inputs[i] = to_half(c.inputs[i]);
  c.rtol = c.atol = 1e-2;
  check_gpu_kernels(c); // float32 caches beside float16
  kernel_case causal = projected(s, {true, true});
  causal.attrs.set("is_causal", int64_t{1});
  check(causal);
  kernel_case among = projected(s, {true, true});
  put_among_heads(among.inputs, among.attrs);
  check(among);
}

TEST_CASE("GPU attention with its projection: infinities and NaN of a key, and a mask that hides all", "[vulkan]") {
  for (const float odd : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
    for (const size_t i : {0, 4, 5}) {
      kernel_case c = projected({4, 2, 30, 32, 32, 40}, {true, true});
      c.inputs[i].mutable_data<float>()[3] = odd;
      check(c);
    }
  kernel_case hidden = projected({4, 2, 30, 32, 32, 40, {1, 1, 1, 31}}, {true, true});
  std::fill_n(hidden.inputs[3].mutable_data<float>(), 31, -std::numeric_limits<float>::infinity());
  check(hidden);
}

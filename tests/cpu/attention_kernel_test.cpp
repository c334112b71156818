// The CPU's kernel of ONNX's Attention against the operator's plain loops.
#include "cpu/kernel_check.hpp"
#include "ops/evaluate.hpp"
#include "support/catch.hpp"
#include "support/run_graph.hpp"

#include <cmath>
#include <limits>

using namespace troupe;
using namespace troupe::testing;

namespace {

constexpr int64_t batch = 2, heads = 4, width = 24, value_width = 16;

attributes attributes_with(bool flat, int64_t kv_heads, bool causal, float softcap) {
  attributes a;
  if (flat) {
    a.set("q_num_heads", heads);
    a.set("kv_num_heads", kv_heads);
  }
  a.set("is_causal", int64_t{causal});
  a.set("softcap", softcap);
  return a;
}

shape dims_of(bool flat, int64_t count, int64_t positions, int64_t size) {
  return flat ? shape{batch, positions, count * size} : shape{batch, count, positions, size};
}

tensor random_flags(shape dims) {
  tensor flags(dtype::boolean, std::move(dims));
  const tensor from = test::random_tensor(flags.dims(), 7);
  for (int64_t i = 0; i < flags.size(); ++i)
    flags.mutable_data<uint8_t>()[i] = from.data<float>()[i] > -0.3f;
  return flags;
}

/// No mask; numbers for each query and key; flags by key; numbers for fewer keys than there are; one column.
void add_mask(kernel_check& check, int kind, int64_t queries, int64_t keys) {
  switch (kind) {
    case 0: check.absent(); return;
    case 1: check.input({batch, 1, queries, keys}, false, layout::plain, -2, 2); return;
    case 2: check.input(random_flags({keys})); return;
    case 3: check.input({heads, queries, keys - 1}, false, layout::plain, -2, 2); return;
    default: check.input({queries, 1}, false, layout::plain, -2, 2);
  }
}

tensor filled(shape dims, float value) {
  tensor t(dtype::float32, std::move(dims));
  std::fill_n(t.mutable_data<float>(), t.size(), value);
  return t;
}

} // namespace

TEST_CASE("ONNX's Attention on the CPU agrees with the reference", "[cpu]") {
  const bool flat = GENERATE(false, true), causal = GENERATE(false, true);
  const auto softcap = GENERATE(0.f, 0.8f);
  for (int64_t queries : {1, 5, 70})
    for (int64_t past : {0, 63})
      for (int64_t kv_heads : {4, 2})
        for (int mask = 0; mask < 5; ++mask) {
          INFO(queries << " queries, past " << past << ", " << kv_heads << " kv heads, mask " << mask << flat
                       << causal);
          const int64_t now = queries + 3, keys = past + now;
          kernel_check check("", "Attention", attributes_with(flat, kv_heads, causal, softcap));
          check.input(dims_of(flat, heads, queries, width)).input(dims_of(flat, kv_heads, now, width));
          check.input(dims_of(flat, kv_heads, now, value_width));
          add_mask(check, mask, queries, keys);
          if (past > 0)
            check.input({batch, kv_heads, past, width}).input({batch, kv_heads, past, value_width});
          CHECK(check.worst("attention.onnx", 1e-4, 2e-5, 3) < 1);
        }
}

TEST_CASE("ONNX's Attention on the CPU ends at the lengths it is given", "[cpu]") {
  const bool causal = GENERATE(false, true);
  for (std::vector<int64_t> lengths : {std::vector<int64_t>{9, 4}, {0, 2}, {20, -1}})
    for (int mask : {0, 2}) {
      INFO(lengths[0] << ", " << lengths[1] << ", mask " << mask << causal);
      kernel_check check("", "Attention", attributes_with(false, heads, causal, 0));
      check.input({batch, heads, 5, width}).input({batch, heads, 9, width}).input({batch, heads, 9, value_width});
      add_mask(check, mask, 5, 9);
      tensor limits(dtype::int64, {batch});
      std::copy(lengths.begin(), lengths.end(), limits.mutable_data<int64_t>());
      check.absent().absent().input(limits);
      CHECK(check.worst("attention.onnx", 1e-4, 2e-5) < 1);
    }
}

TEST_CASE("ONNX's Attention on the CPU keeps out the elements of masked keys and values", "[cpu]") {
  const auto hidden = GENERATE(std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity());
  const auto as_flags = GENERATE(false, true);
  for (int64_t queries : {1, 5}) {
    const int64_t keys = 6;
    tensor k = test::random_tensor({1, 1, keys, width}, 1), v = test::random_tensor({1, 1, keys, value_width}, 2);
    for (int64_t at : {0, 3}) {
      std::fill_n(k.mutable_data<float>() + at * width, width, hidden);
      std::fill_n(v.mutable_data<float>() + at * value_width, value_width, hidden);
    }
    tensor mask = as_flags ? tensor(dtype::boolean, {keys}) : filled({keys}, 0);
    for (int64_t at = 0; at < keys; ++at)
      if (as_flags)
        mask.mutable_data<uint8_t>()[at] = at != 0 && at != 3;
      else if (at == 0 || at == 3)
        mask.mutable_data<float>()[at] = -std::numeric_limits<float>::infinity();
    kernel_check check("", "Attention");
    check.input({1, 1, queries, width}).input(k).input(v).input(mask);
    CHECK(check.worst("attention.onnx") < 1);
  }
}

TEST_CASE("ONNX's Attention on the CPU gives zeros to queries that see no key", "[cpu]") {
  kernel_check check("", "Attention");
  check.input({1, 1, 3, width}).input({1, 1, 4, width}).input({1, 1, 4, value_width});
  check.input(filled({3, 4}, -std::numeric_limits<float>::infinity()));
  CHECK(check.worst("attention.onnx") < 1);
}

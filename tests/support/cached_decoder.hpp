// A decoder in small whose keys and values are cached as exporters do it, for tests of caches that stay on a device.
#pragma once

#include "support/graph_builder.hpp"
#include "support/kernel_case.hpp"

namespace troupe::test {

/// Attention over `layers` caches: x [batch, seq, 16] and, for each layer l, past_k{l} and past_v{l} [batch, 2, past,
/// 8] → y [batch, seq, 16], present_k{l}, present_v{l} [batch, 2, past + seq, 8]. `projected`: the heads of a layer are
/// multiplied by a matrix.
inline graph decoder_of_layers(size_t layers, bool projected) {
  graph_builder b;
  const dim batch = dim::symbol("batch"), seq = dim::symbol("seq"), past = dim::symbol("past");
  value_id x = b.input("x", {batch, seq, 16});
  const auto turned = [&](value_id v, const std::vector<int64_t>& perm) {
    return b.op("Transpose", {v}, attrs_of({{"perm", perm}}));
  };
  const auto heads = [&](uint64_t seed) {
    const value_id w = b.constant("w" + std::to_string(seed), random_floats({16, 16}, seed, -0.3f, 0.3f));
    return turned(b.op("Reshape", {b.op("MatMul", {x, w}), b.integers({0, 0, 2, 8})}), {0, 2, 1, 3});
  };
  const auto cached = [&](const std::string& name, value_id rows) {
    const value_id cache = b.input("past_" + name, {batch, 2, past, 8});
    const value_id all = b.op("Concat", {cache, rows}, attrs_of({{"axis", int64_t{2}}}), "present_" + name);
    b.output(all);
    return all;
  };
  for (size_t l = 0; l < layers; ++l) {
    const std::string number = std::to_string(l);
    const value_id q = heads(10 * l + 1), k = cached("k" + number, heads(10 * l + 2)),
                   v = cached("v" + number, heads(10 * l + 3));
    const value_id scores = b.op("MatMul", {q, turned(k, {0, 1, 3, 2})});
    const value_id weights = b.op("Softmax", {scores}, attrs_of({{"axis", int64_t{-1}}}));
    const std::string name = l + 1 == layers ? "y" : "";
    x = b.op("Reshape", {turned(b.op("MatMul", {weights, v}), {0, 2, 1, 3}), b.integers({0, 0, 16})}, {},
             projected ? "" : name);
    if (projected)
      x = b.op("MatMul", {x, b.constant("projection" + number, random_floats({16, 16}, 10 * l + 4, -0.3f, 0.3f))}, {},
               name);
  }
  b.output(x);
  return b.g;
}

inline graph cached_decoder(size_t layers = 2) {
  return decoder_of_layers(layers, false);
}
inline graph projected_decoder(size_t layers = 2) {
  return decoder_of_layers(layers, true);
}

/// The same inputs and outputs by ONNX's Attention, which has the caches as operands and is causal.
inline graph decoder_by_operator(size_t layers = 2) {
  graph_builder b(23);
  const dim batch = dim::symbol("batch"), seq = dim::symbol("seq"), past = dim::symbol("past");
  value_id x = b.input("x", {batch, seq, 16});
  const auto projected = [&](uint64_t seed) {
    const value_id w = b.constant("w" + std::to_string(seed), random_floats({16, 16}, seed, -0.3f, 0.3f));
    return b.op("MatMul", {x, w});
  };
  for (size_t l = 0; l < layers; ++l) {
    const std::string number = std::to_string(l);
    const value_id q = projected(10 * l + 1), k = projected(10 * l + 2), v = projected(10 * l + 3),
                   past_k = b.input("past_k" + number, {batch, 2, past, 8}),
                   past_v = b.input("past_v" + number, {batch, 2, past, 8});
    const auto made =
        b.call("Attention", {q, k, v, no_value, past_k, past_v},
               {l + 1 == layers ? "y" : "x" + number, "present_k" + number, "present_v" + number},
               attrs_of({{"q_num_heads", int64_t{2}}, {"kv_num_heads", int64_t{2}}, {"is_causal", int64_t{1}}}));
    x = made[0];
    b.output(made[1]);
    b.output(made[2]);
  }
  b.output(x);
  return b.g;
}

/// The caches of `cached_decoder`: "k0", "v0", "k1" …
inline std::vector<std::string> cache_names(size_t layers = 2) {
  std::vector<std::string> names;
  for (size_t l = 0; l < layers; ++l)
    for (const char* kind : {"k", "v"})
      names.push_back(kind + std::to_string(l));
  return names;
}

} // namespace troupe::test

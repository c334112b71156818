// A call of attention as the CPU's kernel sees it: of troupe.Attention (ops/composed/fused_attention.cpp) or of ONNX's
// Attention (ops/onnx/attention.cpp).
#pragma once

#include "cpu/kernel.hpp"

namespace troupe {

/// Elements from one batch element, head or position to the next, and before the first head.
struct attention_strides {
  int64_t batch = 0, head = 0, row = 0, start = 0;
};

/// Sizes in elements; positions of keys count those of the cache, inputs 4 and 5, too.
struct attention_call {
  int64_t batch, heads, groups, queries, past, keys, width, value_width;
  attention_strides q, k, v, past_k, past_v, y;
  shape mask;            // strides of input 3 as [batch, heads, queries, mask_keys]; empty without a mask
  int64_t mask_keys;     // keys after these are masked
  bool flags = false;    // the mask holds booleans: true takes part
  bool limited = false;  // input 6 says how many keys each batch element has
  bool causal = false;   // query s sees keys t ≤ s + causal_offset
  int64_t causal_offset; // of a batch element without a limit
  bool writes_keys = false, writes_values = false; // outputs 1 and 2: all keys and values, past ones first
  bool skips = false; // masked keys and values are never multiplied, and a query that sees no key gives zeros
  float scale = 1;
  float softcap = 0; // scores become softcap · tanh(score / softcap), unless it is 0
};

/// Returns what a call of troupe.Attention asks for; its operands have rank 4.
attention_call parse_fused_attention(const kernel_request& r);

/// Returns what a call of ONNX's Attention asks for, nothing if its mask does not fit its scores.
std::optional<attention_call> parse_onnx_attention(const kernel_request& r);

} // namespace troupe

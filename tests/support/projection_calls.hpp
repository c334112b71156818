// Calls of troupe.Projections on fabricated devices.
#pragma once

#include "ops/composed/projections.hpp"
#include "ops/run_op.hpp"
#include "support/fabricated_gpu.hpp"
#include "support/operator_launches.hpp"

#include <fmt/format.h>

namespace troupe::testing {

inline gpu_features projection_gpu() {
  gpu_features gpu = h100_like();
  gpu.int8 = gpu.subgroup_arithmetic = gpu.subgroup_shuffle = gpu.integer_dot = true;
  return gpu;
}

inline operand constant_operand(shape dims, dtype type = dtype::float16) {
  operand o{.type = type, .dims = std::move(dims)};
  auto w = std::make_shared<weight>(); // its bytes are not asked for
  w->type = type;
  w->dims = o.dims;
  o.constant = std::move(w);
  return o;
}

/// Queries, keys and values after a norm.
struct decoder_call {
  attributes attrs = attrs_of({{"norm", std::string("RMSNormalization")}, {"products", int64_t{3}}});
  std::vector<operand> inputs, outputs;

  explicit decoder_call(int64_t rows, int64_t hidden = 768, std::vector<int64_t> columns = {768, 256, 256}) {
    inputs = {{.type = dtype::float16, .dims = {1, rows, hidden}}, constant_operand({hidden}), {}};
    for (const int64_t n : columns) {
      inputs.push_back(constant_operand({hidden, n}));
      inputs.resize(inputs.size() + projection::each - 1);
      outputs.push_back({.type = dtype::float16, .dims = {1, rows, n}});
    }
    attrs.set("products", static_cast<int64_t>(columns.size()));
  }

  /// Rotates queries and keys, of heads 64 wide.
  decoder_call& rotate(int64_t table_rows = 1) {
    const int64_t positions = inputs[0].dims[1];
    attrs.set("rotary", std::string("Rotary"));
    attrs.set("rotary_heads", std::vector<int64_t>{outputs[0].dims[2] / 64, outputs[1].dims[2] / 64, 0});
    inputs.resize(inputs.size() + 2, {.type = dtype::float16, .dims = {table_rows, positions, 64}});
    return *this;
  }

  launch_lists lists(const gpu_features& gpu) const {
    return troupe_launches("Projections", {attrs, inputs, outputs, gpu});
  }
};

/// Queries, keys and values by codes of 4 bits, in blocks of `block`.
struct packed_call : decoder_call {
  packed_call(int64_t rows, int64_t hidden, std::vector<int64_t> columns, int64_t block)
      : decoder_call(rows, hidden, {}) {
    const int64_t blocks = (hidden + block - 1) / block;
    for (const int64_t n : columns) {
      const std::string part = std::to_string(outputs.size());
      inputs.insert(
          inputs.end(),
          {constant_operand({n, blocks, block / 2}, dtype::uint8), constant_operand({n, blocks}), {}, {}, {}});
      outputs.push_back({.type = dtype::float16, .dims = {1, rows, n}});
      for (const auto& [name, value] : {std::pair{"K", hidden}, {"N", n}, {"bits", int64_t{4}}, {"block_size", block}})
        attrs.set(fmt::format("{}.{}", name, part), value);
    }
    attrs.set("products", static_cast<int64_t>(columns.size()));
  }
};

} // namespace troupe::testing

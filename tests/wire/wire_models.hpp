// Models of every kind, rewritten, and devices of several hosts, for tests of all that crosses the wire.
#pragma once

#include "plan/bind/layout_buckets.hpp"
#include "support/graph_builder.hpp"
#include "wire/plans.hpp"

#include <random>

namespace troupe::test {

/// Rewritten models with weights small and large, recipes, control flow, symbolic and data-dependent dims, quantised
/// ones.
const std::map<std::string, std::shared_ptr<const graph>>& wire_programs();

/// A graph of real operators: chains, joins, views, products, dims that depend on data.
std::shared_ptr<const graph> random_program(std::mt19937_64& random);

/// Sets of CPUs and GPUs of this host and of others.
std::vector<std::vector<device_info>> wire_device_sets();

/// Content hashes, and the leaves that they are of.
struct leaf_table {
  std::unordered_map<hash128, tensor> leaves;

  wire::content_hashes hashes() {
    return [this](const weight& leaf) {
      const hash128 h = content_hash(leaf.leaf);
      leaves[h] = leaf.leaf;
      return h;
    };
  }
  std::vector<uint8_t> encode(const plan& p) { return wire::encode_plan(p, hashes()); }
};

/// Decodes a plan and gives it all leaves.
inline wire::decoded_plan decode_whole(const std::vector<uint8_t>& bytes, const leaf_table& table) {
  wire::decoded_plan made = wire::decode_plan(bytes);
  for (const auto& [content, leaf] : made.leaves)
    wire::fill(*leaf, table.leaves.at(content));
  return made;
}

/// Every symbol of a plan with the value `n`.
inline bindings symbols_near(const plan& p, int64_t n) {
  bindings values;
  for (const std::string& name : symbols_of(p, p.segment_count - 1))
    values[name] = n;
  return values;
}

} // namespace troupe::test

// Where a file says that its nodes run: the multi-device configurations of ONNX IR version 11. Plain data.
#pragma once

#include "base/hash.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace troupe {

/// A tensor of a node is in parts along a dim, one on each device of the configuration's team.
struct tensor_sharding {
  std::string tensor;
  int64_t axis = 0; // negative: from the end
};

/// What a configuration says of one node.
struct node_annotation {
  std::optional<int64_t> device; // index among the configuration's; nullopt: on several, or not stated
  std::optional<int64_t> stage;  // of a pipeline
  std::vector<tensor_sharding> shardings;
  std::string refused; // what is stated and cannot be followed; "" if there is nothing
};

/// A set of devices, and what runs where on them.
struct device_configuration {
  std::string name;
  int64_t count = 0;                // of devices
  std::vector<std::string> devices; // their names; empty: not stated
  std::vector<int64_t> team;        // those that have parts of tensors, as indices; empty: no tensor is in parts
  std::vector<node_annotation> nodes;
  std::unordered_map<std::string, size_t> by_result, by_name; // of nodes: index in `nodes`

  /// Adds a node with the names of its results.
  void add(node_annotation annotation, const std::string& node, const std::vector<std::string>& results);
  /// Returns the annotation of the node that makes one of `results`, else of the node called `node`; null: none. The
  /// rewrite renames nodes that it fuses, but not what they make.
  const node_annotation* find(const std::string& node, const std::vector<std::string>& results) const;
};

struct model_annotations {
  std::vector<device_configuration> configurations; // those that some node uses, in the order of the file
  hash128 key;                                      // of what the file says
};

} // namespace troupe

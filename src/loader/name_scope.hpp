// Spaces of names, in which a model's nodes name values: of a graph, or of a called function, whose values are in the
// caller's graph under a prefix. A name that a body does not declare is captured from the enclosing scope.
#pragma once

#include "graph/graph.hpp"
#include "loader/proto.hpp"

#include <unordered_map>
#include <unordered_set>

namespace troupe {

using opset_map = std::map<std::string, int64_t>;

/// What a function's call gives its attributes.
using call_attributes = std::map<std::string, const onnx::AttributeProto*>;

/// A graph under construction.
struct canvas {
  graph g;
  std::unordered_set<std::string> taken; // names of values
  std::vector<value_id> captured_from;   // in the enclosing canvas, parallel to g.captured
  std::unordered_set<value_id> defaults; // initializers that are inputs, too

  std::string unique_name(const std::string& name);
};

/// See the top of this file.
struct name_scope {
  canvas& target;
  name_scope* parent = nullptr; // where names that are not declared here are captured from
  const opset_map& opsets;
  const call_attributes* call = nullptr; // inside a function
  std::string prefix = {};               // of names in the target
  std::unordered_map<std::string, value_id> names = {};
  std::unordered_set<std::string> maps = {}; // graph inputs

  /// Adds a value of that name. Throws `errc::invalid_model` and `errc::unsupported` for a name that cannot be.
  value_id declare(const std::string& name, value v);
  /// Finds the value of that name, captured if need be; false if there is none. Throws `errc::unsupported` for a map.
  bool find(const std::string& name, value_id& found);
  /// The same; throws `errc::invalid_model` if there is none, naming the `reader`.
  value_id lookup(const std::string& name, const std::string& reader);
  bool is_map(const std::string& name) const;
};

} // namespace troupe

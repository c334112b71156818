#include "graph/annotations.hpp"

namespace troupe {

void device_configuration::add(node_annotation annotation, const std::string& node,
                               const std::vector<std::string>& results) {
  for (const std::string& result : results)
    by_result.emplace(result, nodes.size());
  by_name.emplace(node, nodes.size());
  nodes.push_back(std::move(annotation));
}

const node_annotation* device_configuration::find(const std::string& node,
                                                  const std::vector<std::string>& results) const {
  for (const std::string& result : results)
    if (const auto found = by_result.find(result); found != by_result.end())
      return &nodes[found->second];
  const auto found = by_name.find(node);
  return found == by_name.end() ? nullptr : &nodes[found->second];
}

} // namespace troupe

// Annotations of a file (graph/annotations.hpp) on the devices of a plan.
#pragma once

#include "graph/annotations.hpp"
#include "plan/plan.hpp"

namespace troupe {

/// The configuration of a file that a plan follows.
struct followed_configuration {
  const device_configuration* from = nullptr; // of the graph's; null: none can be followed
  std::vector<device_index> devices;          // by the configuration's index
};

/// Returns the first configuration for which there are devices: those of its names if all are there, else as many as it
/// counts, in their order, fallback devices last.
followed_configuration followed(const graph& g, std::span<const device_info> devices);

/// Returns what the followed configuration says of a node of a rewritten graph; null: nothing.
const node_annotation* annotation_of(const followed_configuration& c, const graph& g, const node& n);

/// Returns the device that an annotation states for its node, by itself or by its stage.
std::optional<device_index> stated_device(const followed_configuration& c, const node_annotation& a);

/// Returns what people should know of annotations that a plan does not follow; `placement` is by the graph's nodes.
std::vector<std::string> annotation_remarks(const graph& g, std::span<const device_info> devices,
                                            std::span<const device_index> placement);

} // namespace troupe

// Values that kernels read or write where they are staged, so that nothing is copied between staging memory and the
// arena: a copy and its barrier take 5 µs of a GPU's time. Decided from the plan alone; no Vulkan call.
//
// - An input that the host has written to the GPU's own memory, if the kernels of one chunk are all that read it.
// - A result that no kernel of this device reads, and that one chunk makes and downloads: kernels write it to the
//   host's memory.
#pragma once

#include "plan/plan.hpp"

namespace troupe::vulkan {

class staged_values {
public:
  /// The values of plan device `self`.
  staged_values(const plan& p, device_index self);

  /// Whether only chunk `c` reads `v` on this device and `v` is never downloaded.
  bool is_read_by_one(chunk_id c, value_id v) const;
  /// Whether a node of chunk `c` makes `v`, no node on this device reads it, and it is downloaded once.
  bool is_only_made(chunk_id c, value_id v) const;
  /// Whether `v` is downloaded from this device, be it by another name (a view).
  bool leaves(chunk_id c, value_id v) const { return leaving_[root(c, v)] > 0; }

private:
  value_id root(chunk_id c, value_id v) const { return root_on(plan_, plan_.chunks[c], v); }

  const plan& plan_;
  std::vector<chunk_id> reader_;  // by root: the chunk whose nodes read it; or `no_reader`, or `several`
  std::vector<uint32_t> leaving_; // by root: how many downloads there are of it
};

} // namespace troupe::vulkan

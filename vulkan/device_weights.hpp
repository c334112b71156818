// Weights in device memory, shared by all installed plans of one device.
//
// A weight is held as long as a plan uses it; the table only remembers where it is. Each form (as it is, or packed) is made
// once: computed on the host, uploaded, and the host's copy dropped, with the pages of the model's file that it came from. So the
// host's memory holds one weight at a time, and of one that is used as it is in the file one piece (uploader.hpp).
#pragma once

#include "graph/weight.hpp"
#include "ops/launch.hpp"
#include "vulkan/uploader.hpp"

#include <unordered_map>

namespace troupe::vulkan {

class device_weights {
public:
  using handle = std::shared_ptr<const allocation>;

  device_weights(memory_pool& memory, uploader& uploads) : memory_(memory), uploads_(uploads) {}

  /// Returns the weight's elements, row-major, or packed. They are there after the uploader's `finish`.
  handle get(const weight& w, const weight_packing* packing);

  /// Returns the bytes held.
  int64_t bytes() const;

private:
  /// Frees what was computed on the host, so that the memory is the system's again before much more is.
  void drop(tensor computed);

  memory_pool& memory_;
  uploader& uploads_;
  std::unordered_map<hash128, std::weak_ptr<const allocation>> held_;
  int64_t dropped_bytes_ = 0; // since the heap was trimmed
};

} // namespace troupe::vulkan

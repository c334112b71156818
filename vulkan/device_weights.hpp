// Weights in device memory, shared by all installed plans of one device.
//
// A weight is held as long as a plan uses it; the table only remembers where it is. Equal recipes are one weight, made
// once: computed on the host, uploaded, and the host's copy dropped, with the pages of the model's file that it came
// from. So the host's memory holds one weight at a time, and of one that is used as it is in the file one piece
// (uploader.hpp).
#pragma once

#include "base/weak_table.hpp"
#include "graph/weight.hpp"
#include "vulkan/uploader.hpp"

namespace troupe::vulkan {

class device_weights {
public:
  using handle = std::shared_ptr<const allocation>;

  explicit device_weights(memory_pool& memory) : memory_(memory) {}

  /// Returns the weight's elements. If they are not there yet, they are after `uploads.finish`.
  handle get(const weight& w, uploader& uploads);

  /// Returns the bytes held.
  int64_t bytes() const;

  /// Returns how many weights the table knows of, at most twice as many as were ever held at once.
  size_t known() const { return held_.size(); }

private:
  /// Frees what was computed on the host, so that the memory is the system's again before much more is.
  void drop(tensor computed);

  memory_pool& memory_;
  weak_table<hash128, const allocation> held_;
  int64_t dropped_bytes_ = 0; // since the heap was trimmed
};

} // namespace troupe::vulkan

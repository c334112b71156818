// Working memory that all kernels of one CPU device share: they run one after the other.
#pragma once

#include "tensor/elements.hpp"

#include <algorithm>

namespace troupe {

/// Grows while kernels are prepared; its address is taken when they run.
class scratch_buffer {
public:
  /// Makes room for `bytes`; addresses taken before are invalid.
  void reserve(int64_t bytes) {
    if (bytes > size_) {
      bytes_ = tensor(dtype::uint8, {bytes});
      size_ = bytes;
    }
  }

  /// Returns the memory, 64-byte aligned; null if nothing was reserved.
  void* data() { return bytes_.mutable_data(); }

private:
  tensor bytes_;
  int64_t size_ = 0;
};

} // namespace troupe

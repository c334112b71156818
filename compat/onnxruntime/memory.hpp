// Memory for clients: all of it is the host's. Values that are on devices are troupe's own business.
#pragma once

#include "compat/onnxruntime/api.hpp"

#include <string>
#include <string_view>

/// Where memory is.
struct OrtMemoryInfo {
  std::string name;
  OrtAllocatorType allocator = OrtDeviceAllocator;
  int id = 0;
  OrtMemType type = OrtMemTypeDefault;
  OrtMemoryInfoDeviceType device = OrtMemoryInfoDeviceType_CPU;
  OrtDeviceMemoryType device_memory = OrtDeviceMemoryType_DEFAULT;
  uint32_t vendor = 0;

  /// Whether the host can read and write it.
  bool is_host() const { return device == OrtMemoryInfoDeviceType_CPU; }
  bool operator==(const OrtMemoryInfo&) const = default;
};

namespace troupe::ort {

/// Returns the host's memory: what all our allocators and values have.
const OrtMemoryInfo& host_memory();

/// Returns the one allocator that this library has. Its memory is aligned to 64 bytes; clients cannot release it.
OrtAllocator& default_allocator();

/// Returns memory of a client's choice; throws ORT_RUNTIME_EXCEPTION if it gives none.
void* allocate(OrtAllocator* allocator, size_t bytes);

/// Returns a copy of a text, with its end, in memory of a client's choice.
char* copy_text(OrtAllocator* allocator, std::string_view text);

} // namespace troupe::ort

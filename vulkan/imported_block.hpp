// A block of the host's memory as memory of a GPU, through VK_EXT_external_memory_host.
#pragma once

#include "device/host_block.hpp"
#include "vulkan/device_context.hpp"

#include <optional>

namespace troupe::vulkan {

/// A buffer over all bytes of a block, which must outlive it.
struct imported_block {
  memory_handle memory;
  buffer_handle buffer; // to copy from and to, and for kernels
};

/// Returns whether a GPU can import host memory.
bool imports_blocks(const gpu_snapshot& s);

/// Returns nullopt if the driver refuses: it need not take every kind of host memory, nor any amount of it.
std::optional<imported_block> import_block(const device_context& context, const host_block& block);

} // namespace troupe::vulkan

// Host memory as the GPU's own: blocks of the process's pool (device/host_block.hpp), imported through
// VK_EXT_external_memory_host, so that large tensors are copied by the device straight from and to where they lie.
//
// An import is kept under its block's id as long as the pool may use the block again. Used by the device's thread alone.
#pragma once

#include "device/host_block.hpp"
#include "vulkan/device_context.hpp"

#include <map>

namespace troupe::vulkan {

class host_imports {
public:
  /// `blocks` may be null: then, and where the driver cannot import, nothing is imported.
  host_imports(device_context& context, std::shared_ptr<host_block_pool> blocks);

  bool available() const { return import_properties_ != nullptr; }

  /// Where a tensor's bytes are for the device.
  struct place {
    uint64_t block = 0; // id
    VkBuffer buffer = VK_NULL_HANDLE;
    VkDeviceSize offset = 0;
  };
  /// Returns where the bytes of `t` are; they must lie in a block of the pool. Throws what the driver reports.
  place place_of(const tensor& t);

  /// Returns `t`, or a copy of it in a block where it does not lie in one.
  tensor in_block(const tensor& t);
  /// Returns a tensor in a block, its bytes uninitialised.
  tensor make(dtype type, const shape& dims) { return make_host_tensor(*blocks_, type, dims); }

private:
  struct imported {
    host_block_ptr block;
    memory_handle memory;
    buffer_handle buffer;
  };

  imported import(host_block_ptr block) const;
  void forget_retired();

  device_context& context_;
  std::shared_ptr<host_block_pool> blocks_;
  PFN_vkGetMemoryHostPointerPropertiesEXT import_properties_ = nullptr;
  std::map<uint64_t, imported> imports_; // by block id
};

} // namespace troupe::vulkan

// Ownership of Vulkan objects: a handle that its device destroys when it goes out of scope, and errors from VkResult.
#pragma once

#include "base/error.hpp"

#include <vulkan/vulkan.h>

#include <utility>

namespace troupe::vulkan {

/// Throws unless `result` is a success: `errc::device_lost`, `errc::out_of_memory` or `errc::device_failed`, naming
/// `call`.
void check(VkResult result, const char* call);

/// Owns an object that `Destroy(device, object, nullptr)` ends.
template <class Handle, auto Destroy>
class device_handle {
public:
  device_handle() = default;
  device_handle(VkDevice device, Handle handle) : device_(device), handle_(handle) {}
  device_handle(device_handle&& other) noexcept
      : device_(other.device_), handle_(std::exchange(other.handle_, VK_NULL_HANDLE)) {}
  device_handle& operator=(device_handle&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~device_handle() {
    if (handle_ != VK_NULL_HANDLE)
      Destroy(device_, handle_, nullptr);
  }

  Handle get() const { return handle_; }
  explicit operator bool() const { return handle_ != VK_NULL_HANDLE; }

private:
  VkDevice device_ = VK_NULL_HANDLE;
  Handle handle_ = VK_NULL_HANDLE;
};

using buffer_handle = device_handle<VkBuffer, vkDestroyBuffer>;
using memory_handle = device_handle<VkDeviceMemory, vkFreeMemory>;
using semaphore_handle = device_handle<VkSemaphore, vkDestroySemaphore>;
using command_pool_handle = device_handle<VkCommandPool, vkDestroyCommandPool>;
using descriptor_pool_handle = device_handle<VkDescriptorPool, vkDestroyDescriptorPool>;
using set_layout_handle = device_handle<VkDescriptorSetLayout, vkDestroyDescriptorSetLayout>;
using pipeline_layout_handle = device_handle<VkPipelineLayout, vkDestroyPipelineLayout>;
using pipeline_handle = device_handle<VkPipeline, vkDestroyPipeline>;
using pipeline_cache_handle = device_handle<VkPipelineCache, vkDestroyPipelineCache>;
using query_pool_handle = device_handle<VkQueryPool, vkDestroyQueryPool>;
using shader_module_handle = device_handle<VkShaderModule, vkDestroyShaderModule>;

} // namespace troupe::vulkan

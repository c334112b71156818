// A VkDevice with its queue, and nothing else: everything that lives on the GPU takes it by reference and ends before it.
#pragma once

#include "vulkan/handle.hpp"
#include "vulkan/instance.hpp"

#include <memory>

namespace troupe::vulkan {

/// See the top of this file.
class device_context {
public:
  /// Opens GPU `index` of `owner`, with one queue or, where `queues` and the GPU allow it, two. Throws `errc::device_failed`
  /// where it cannot be used.
  device_context(std::shared_ptr<const instance> owner, size_t index, uint32_t queues = 2);
  ~device_context() { vkDestroyDevice(device_, nullptr); }
  device_context(const device_context&) = delete;
  device_context& operator=(const device_context&) = delete;

  VkDevice get() const { return device_; }
  VkQueue queue() const { return queue_; }
  /// A second queue of the same family, for copies beside the work; null where there is one queue only.
  VkQueue copy_queue() const { return copy_queue_; }
  uint32_t family() const { return family_; }
  const gpu_snapshot& facts() const { return facts_; }
  bool has_calibrated_timestamps() const;

private:
  std::shared_ptr<const instance> owner_;
  gpu_snapshot facts_;
  uint32_t family_ = 0;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE, copy_queue_ = VK_NULL_HANDLE;
};

} // namespace troupe::vulkan

// A VkDevice with its queue, and nothing else: everything that lives on the GPU takes it by reference and ends before it.
#pragma once

#include "vulkan/handle.hpp"
#include "vulkan/instance.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace troupe::vulkan {

/// What a queue is for: work, and copies beside it. Where a GPU has no queue for copies, the two are the same.
enum class lane : uint8_t { work, copies };

/// See the top of this file.
class device_context {
public:
  /// Opens GPU `index` of `owner`; without a queue for copies where it has none or `one_queue` is set. Throws
  /// `errc::device_failed` where it cannot be used.
  device_context(std::shared_ptr<const instance> owner, size_t index, bool one_queue = false);
  ~device_context() { vkDestroyDevice(device_, nullptr); }
  device_context(const device_context&) = delete;
  device_context& operator=(const device_context&) = delete;

  VkDevice get() const { return device_; }
  bool has_copy_lane() const { return copy_family_.has_value(); }
  VkQueue queue(lane l = lane::work) const { return l == lane::copies && has_copy_lane() ? copy_queue_ : queue_; }
  uint32_t family(lane l = lane::work) const { return l == lane::copies ? copy_family_.value_or(family_) : family_; }
  /// Lets a buffer be used on all queues; `info` refers to the context.
  void share(VkBufferCreateInfo& info) const;
  const gpu_snapshot& facts() const { return facts_; }
  bool has_calibrated_timestamps() const;

private:
  std::shared_ptr<const instance> owner_;
  gpu_snapshot facts_;
  uint32_t family_ = 0;
  std::optional<uint32_t> copy_family_;
  std::vector<uint32_t> families_;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE, copy_queue_ = VK_NULL_HANDLE;
};

} // namespace troupe::vulkan

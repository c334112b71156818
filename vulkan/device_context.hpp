// A VkDevice with its queue, and nothing else: everything that lives on the GPU takes it by reference and ends before
// it.
#pragma once

#include "vulkan/handle.hpp"
#include "vulkan/instance.hpp"

#include <array>
#include <memory>
#include <vector>

namespace troupe::vulkan {

/// What a queue is for: work, and copies to and from the GPU beside it. Copies out wait for the work that makes what
/// they copy, so that copies in would wait with them on one queue.
enum class lane : uint8_t { work, copies_in, copies_out };
inline constexpr size_t lane_count = 3;

/// Which queues the lanes have.
enum class lane_queues : uint8_t {
  own,    // those for copies have queues that only copy; if the GPU has none, there is the lane for work only
  one,    // there is the lane for work only
  shared, // all are there, on one queue: the order of several queues on any GPU, for tests
};

/// See the top of this file.
class device_context {
public:
  /// Opens GPU `index` of `owner`. `statistics`: its compiler can be asked what it made of a kernel
  /// (VK_KHR_pipeline_executable_properties). Throws `errc::device_failed` if it cannot be used.
  device_context(std::shared_ptr<const instance> owner, size_t index, lane_queues queues = lane_queues::own,
                 bool statistics = false);
  ~device_context() { vkDestroyDevice(device_, nullptr); }
  device_context(const device_context&) = delete;
  device_context& operator=(const device_context&) = delete;

  VkDevice get() const { return device_; }
  const instance& owner() const { return *owner_; }
  /// Returns whether there is that lane; one that is not is the lane for work.
  bool has(lane l) const { return l == lane::work || shared_ || queues_[static_cast<size_t>(l)] != queue(); }
  VkQueue queue(lane l = lane::work) const { return queues_[static_cast<size_t>(l)]; }
  uint32_t family(lane l = lane::work) const {
    return has(l) && l != lane::work ? families_.back() : families_.front();
  }
  /// Lets a buffer be used on all queues; `info` refers to the context.
  void share(VkBufferCreateInfo& info) const;
  const gpu_snapshot& facts() const { return facts_; }
  bool has_calibrated_timestamps() const;

private:
  std::shared_ptr<const instance> owner_;
  gpu_snapshot facts_;
  const bool shared_;
  std::vector<uint32_t> families_; // for work, then for copies if there is one
  VkDevice device_ = VK_NULL_HANDLE;
  std::array<VkQueue, lane_count> queues_{};
};

} // namespace troupe::vulkan

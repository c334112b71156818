// A driver whose GPUs import each other's timelines, as NVIDIA's does: the test program puts functions in front of some
// of the Vulkan loader's. Lavapipe shares no timelines; here a thread submits work that waits for an imported one when
// the semaphore that was exported has come to the value.
#pragma once

#include <vulkan/vulkan.h>

#include <cstdint>
#include <optional>

namespace troupe::test {

/// As long as one lives, instances that are made list GPUs that share timelines. One at a time.
class shared_semaphores {
public:
  /// `waits` false: of a driver that takes the waits of one GPU for another, but does not wait.
  explicit shared_semaphores(bool waits = true);
  ~shared_semaphores();
  shared_semaphores(const shared_semaphores&) = delete;
  shared_semaphores& operator=(const shared_semaphores&) = delete;

  /// Returns how many imports there have been.
  int64_t imports() const;
  /// Returns how often a semaphore has ended that others still had imported.
  int64_t early_ends() const;
};

// -- for the functions in front of the loader's (vulkan_faults.cpp)

/// Does what vkQueueSubmit does.
VkResult submit_shared(VkQueue queue, uint32_t count, const VkSubmitInfo* submits, VkFence fence);
/// Returns the value of a semaphore that has imported another; nullopt for others.
std::optional<uint64_t> shared_value(VkSemaphore semaphore);

} // namespace troupe::test

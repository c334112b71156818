// Drivers that refuse a call, or are slow to answer: the test program puts functions in front of some of the Vulkan
// loader's, which do as a test tells them, and otherwise the same as the loader's.
#pragma once

#include <vulkan/vulkan.h>

#include <cstdint>

namespace troupe::test {

/// The calls that can be refused.
enum class vulkan_call : uint8_t {
  allocate_memory, // vkAllocateMemory, imports aside
  import_memory,   // vkAllocateMemory of host memory
  flush_memory,    // vkFlushMappedMemoryRanges
  end_commands,    // vkEndCommandBuffer
  submit,          // vkQueueSubmit
  read_timeline,   // vkGetSemaphoreCounterValue
  read_queries,    // vkGetQueryPoolResults
};
inline constexpr int vulkan_call_count = 7;

/// Lets the `nth` call of a kind, counted from its construction on (1: the next), fail with `result`, and the `count -
/// 1` after it. One for each kind at a time.
class refused_call {
public:
  explicit refused_call(vulkan_call call, int nth = 1, VkResult result = VK_ERROR_OUT_OF_HOST_MEMORY, int count = 1);
  ~refused_call();
  refused_call(const refused_call&) = delete;
  refused_call& operator=(const refused_call&) = delete;

  /// Returns whether a call has been refused.
  bool happened() const;

private:
  const vulkan_call call_;
};

/// While it lives, the driver tells no caller how far a timeline has come: for all that the engine knows, the GPU is
/// still at work.
class held_completions {
public:
  held_completions();
  ~held_completions() { release(); }
  held_completions(const held_completions&) = delete;
  held_completions& operator=(const held_completions&) = delete;

  void release();

private:
  bool held_ = true;
};

/// Returns how many imports of host memory there are in the process.
int64_t live_imports();

} // namespace troupe::test

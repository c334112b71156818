#include "support/vulkan_faults.hpp"

#include "support/shared_semaphores.hpp"

#include <array>
#include <atomic>
#include <condition_variable>
#include <dlfcn.h>
#include <mutex>
#include <set>

namespace troupe::test {
namespace {

struct fault {
  std::atomic<int> calls_left{0}; // until the first one that fails; 0: none does
  std::atomic<int> failures_left{0};
  std::atomic<bool> happened{false};
  std::atomic<VkResult> result{VK_SUCCESS};
};

std::array<fault, vulkan_call_count> faults;

struct {
  std::mutex mutex;
  std::condition_variable released;
  bool held = false;
} completions;

struct {
  std::mutex mutex;
  std::set<VkDeviceMemory> imported;
} memories;

fault& fault_of(vulkan_call call) {
  return faults[static_cast<size_t>(call)];
}

/// Returns the result that a call is to have without being made; VK_SUCCESS where it is to be made.
VkResult refusal(vulkan_call call) {
  fault& f = fault_of(call);
  if (f.calls_left > 1) {
    --f.calls_left;
    return VK_SUCCESS;
  }
  if (f.calls_left == 0 || f.failures_left == 0)
    return VK_SUCCESS;
  --f.failures_left;
  f.happened = true;
  return f.result;
}

/// The loader's function of that name.
template <class F>
F loaders(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

void wait_while_held() {
  std::unique_lock lock(completions.mutex);
  completions.released.wait(lock, [] { return !completions.held; });
}

bool imports(const VkMemoryAllocateInfo& info) {
  for (auto* next = static_cast<const VkBaseInStructure*>(info.pNext); next; next = next->pNext)
    if (next->sType == VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT)
      return true;
  return false;
}

} // namespace

refused_call::refused_call(vulkan_call call, int nth, VkResult result, int count) : call_(call) {
  fault& f = fault_of(call);
  f.happened = false;
  f.result = result;
  f.failures_left = count;
  f.calls_left = nth;
}

refused_call::~refused_call() {
  fault_of(call_).calls_left = 0;
}

bool refused_call::happened() const {
  return fault_of(call_).happened;
}

held_completions::held_completions() {
  const std::lock_guard lock(completions.mutex);
  completions.held = true;
}

void held_completions::release() {
  if (!held_)
    return;
  held_ = false;
  {
    const std::lock_guard lock(completions.mutex);
    completions.held = false;
  }
  completions.released.notify_all();
}

int64_t live_imports() {
  const std::lock_guard lock(memories.mutex);
  return static_cast<int64_t>(memories.imported.size());
}

} // namespace troupe::test

using namespace troupe::test;

extern "C" {

VkResult vkAllocateMemory(VkDevice device, const VkMemoryAllocateInfo* info, const VkAllocationCallbacks* callbacks,
                          VkDeviceMemory* memory) {
  static const auto next = loaders<PFN_vkAllocateMemory>("vkAllocateMemory");
  const bool import = imports(*info);
  if (const VkResult refused = refusal(import ? vulkan_call::import_memory : vulkan_call::allocate_memory))
    return refused;
  const VkResult result = next(device, info, callbacks, memory);
  if (import && result == VK_SUCCESS) {
    const std::lock_guard lock(memories.mutex);
    memories.imported.insert(*memory);
  }
  return result;
}

void vkFreeMemory(VkDevice device, VkDeviceMemory memory, const VkAllocationCallbacks* callbacks) {
  static const auto next = loaders<PFN_vkFreeMemory>("vkFreeMemory");
  {
    const std::lock_guard lock(memories.mutex);
    memories.imported.erase(memory);
  }
  next(device, memory, callbacks);
}

VkResult vkFlushMappedMemoryRanges(VkDevice device, uint32_t count, const VkMappedMemoryRange* ranges) {
  static const auto next = loaders<PFN_vkFlushMappedMemoryRanges>("vkFlushMappedMemoryRanges");
  const VkResult refused = refusal(vulkan_call::flush_memory);
  return refused ? refused : next(device, count, ranges);
}

VkResult vkEndCommandBuffer(VkCommandBuffer commands) {
  static const auto next = loaders<PFN_vkEndCommandBuffer>("vkEndCommandBuffer");
  const VkResult refused = refusal(vulkan_call::end_commands);
  const VkResult result = next(commands); // in any case: the layer counts a call that it has not seen as forgotten
  return refused ? refused : result;
}

VkResult vkQueueSubmit(VkQueue queue, uint32_t count, const VkSubmitInfo* submits, VkFence fence) {
  const VkResult refused = refusal(vulkan_call::submit);
  return refused ? refused : submit_shared(queue, count, submits, fence);
}

VkResult vkGetSemaphoreCounterValue(VkDevice device, VkSemaphore semaphore, uint64_t* value) {
  static const auto next = loaders<PFN_vkGetSemaphoreCounterValue>("vkGetSemaphoreCounterValue");
  if (const std::optional<uint64_t> shared = shared_value(semaphore)) {
    *value = *shared;
    return VK_SUCCESS;
  }
  wait_while_held();
  const VkResult refused = refusal(vulkan_call::read_timeline);
  return refused ? refused : next(device, semaphore, value);
}

VkResult vkGetQueryPoolResults(VkDevice device, VkQueryPool queries, uint32_t first, uint32_t count, size_t bytes,
                               void* data, VkDeviceSize stride, VkQueryResultFlags flags) {
  static const auto next = loaders<PFN_vkGetQueryPoolResults>("vkGetQueryPoolResults");
  wait_while_held();
  const VkResult refused = refusal(vulkan_call::read_queries);
  return refused ? refused : next(device, queries, first, count, bytes, data, stride, flags);
}

VkResult vkWaitSemaphores(VkDevice device, const VkSemaphoreWaitInfo* info, uint64_t timeout) {
  static const auto next = loaders<PFN_vkWaitSemaphores>("vkWaitSemaphores");
  wait_while_held();
  return next(device, info, timeout);
}
}

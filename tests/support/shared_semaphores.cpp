#include "support/shared_semaphores.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <dlfcn.h>
#include <fcntl.h>
#include <list>
#include <map>
#include <mutex>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <vector>

namespace troupe::test {
namespace {

constexpr const char* extension = VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME;

struct semaphore_value {
  VkSemaphore semaphore = VK_NULL_HANDLE;
  uint64_t value = 0;
};

/// The loader's function of that name.
template <class F>
F loaders(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

/// A semaphore that was exported, or one that has imported it. A submission that waits for an import is kept back until
/// its value has come: the validation layer, which does not know of the other GPU, would take the wait for one that
/// never ends.
struct member {
  VkDevice device = VK_NULL_HANDLE;
  VkSemaphore semaphore = VK_NULL_HANDLE;
  uint64_t raised = 0; // by the host
};

struct payload {
  member maker;
  std::vector<member> imports;
};

/// A submission that is kept back, and those after it on its queue.
struct kept_submission {
  std::vector<semaphore_value> awaited;         // imports
  std::vector<semaphore_value> others, signals; // of the GPU's own
  std::vector<VkPipelineStageFlags> stages;     // of `others`
  std::vector<VkCommandBuffer> commands;
};

std::atomic<bool> enabled{false}, waits_are_kept{true};
std::mutex mutex; // of the variables below
std::list<payload> payloads;
std::map<int, payload*> by_descriptor;
std::map<VkQueue, std::deque<kept_submission>> kept_back;
int64_t import_count = 0, early_end_count = 0;

uint64_t value_of(const member& m) {
  static const auto get = loaders<PFN_vkGetSemaphoreCounterValue>("vkGetSemaphoreCounterValue");
  uint64_t value = 0;
  return get(m.device, m.semaphore, &value) == VK_SUCCESS ? std::max(value, m.raised) : m.raised;
}

/// Returns the payload that a semaphore has imported; null if it has none.
payload* imported_by(VkSemaphore semaphore) {
  for (payload& p : payloads)
    for (const member& m : p.imports)
      if (m.semaphore == semaphore)
        return &p;
  return nullptr;
}

bool has_come(const kept_submission& s) {
  return !waits_are_kept || std::all_of(s.awaited.begin(), s.awaited.end(), [](const semaphore_value& a) {
    const payload* const p = imported_by(a.semaphore);
    return !p || value_of(p->maker) >= a.value;
  });
}

VkResult submit_now(VkQueue queue, const kept_submission& s) {
  static const auto next = loaders<PFN_vkQueueSubmit>("vkQueueSubmit");
  std::vector<VkSemaphore> before, after;
  std::vector<uint64_t> before_values, after_values;
  for (const semaphore_value& each : s.others) {
    before.push_back(each.semaphore);
    before_values.push_back(each.value);
  }
  for (const semaphore_value& each : s.signals) {
    after.push_back(each.semaphore);
    after_values.push_back(each.value);
  }
  VkTimelineSemaphoreSubmitInfo values{VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO};
  values.waitSemaphoreValueCount = static_cast<uint32_t>(before.size());
  values.pWaitSemaphoreValues = before_values.data();
  values.signalSemaphoreValueCount = static_cast<uint32_t>(after.size());
  values.pSignalSemaphoreValues = after_values.data();
  VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO, &values};
  info.waitSemaphoreCount = static_cast<uint32_t>(before.size());
  info.pWaitSemaphores = before.data();
  info.pWaitDstStageMask = s.stages.data();
  info.commandBufferCount = static_cast<uint32_t>(s.commands.size());
  info.pCommandBuffers = s.commands.data();
  info.signalSemaphoreCount = static_cast<uint32_t>(after.size());
  info.pSignalSemaphores = after.data();
  return next(queue, 1, &info, VK_NULL_HANDLE);
}

kept_submission copy_of(const VkSubmitInfo& info) {
  kept_submission s;
  const auto* const values = static_cast<const VkTimelineSemaphoreSubmitInfo*>(info.pNext);
  for (uint32_t i = 0; i < info.waitSemaphoreCount; ++i) {
    const semaphore_value each{info.pWaitSemaphores[i], values->pWaitSemaphoreValues[i]};
    if (imported_by(each.semaphore)) {
      s.awaited.push_back(each);
      continue;
    }
    s.others.push_back(each);
    s.stages.push_back(info.pWaitDstStageMask[i]);
  }
  for (uint32_t i = 0; i < info.signalSemaphoreCount; ++i)
    s.signals.push_back({info.pSignalSemaphores[i], values->pSignalSemaphoreValues[i]});
  s.commands.assign(info.pCommandBuffers, info.pCommandBuffers + info.commandBufferCount);
  return s;
}

void let_go_on(const std::atomic<bool>& ends) {
  while (!ends) {
    {
      const std::lock_guard lock(mutex);
      for (auto& [queue, submissions] : kept_back)
        for (; !submissions.empty() && has_come(submissions.front()); submissions.pop_front())
          submit_now(queue, submissions.front());
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

std::atomic<bool> ends{false};
std::thread going_on;

VKAPI_ATTR VkResult VKAPI_CALL get_fd(VkDevice device, const VkSemaphoreGetFdInfoKHR* info, int* made) {
  const std::lock_guard lock(mutex);
  const auto is_it = [&](const payload& p) { return p.maker.semaphore == info->semaphore; };
  auto found = std::find_if(payloads.begin(), payloads.end(), is_it);
  if (found == payloads.end())
    found = payloads.insert(found, payload{{device, info->semaphore, 0}, {}});
  *made = open("/dev/null", O_RDONLY | O_CLOEXEC);
  by_descriptor[*made] = &*found;
  return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL import_fd(VkDevice device, const VkImportSemaphoreFdInfoKHR* info) {
  const std::lock_guard lock(mutex);
  const auto found = by_descriptor.find(info->fd);
  if (found == by_descriptor.end())
    return VK_ERROR_INVALID_EXTERNAL_HANDLE;
  found->second->imports.push_back({device, info->semaphore, 0});
  ++import_count;
  by_descriptor.erase(found);
  close(info->fd);
  return VK_SUCCESS;
}

bool has_extension(VkPhysicalDevice device) {
  static const auto next = loaders<PFN_vkEnumerateDeviceExtensionProperties>("vkEnumerateDeviceExtensionProperties");
  uint32_t count = 0;
  next(device, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> all(count);
  next(device, nullptr, &count, all.data());
  return std::any_of(all.begin(), all.end(),
                     [](const VkExtensionProperties& e) { return std::strcmp(e.extensionName, extension) == 0; });
}

} // namespace

shared_semaphores::shared_semaphores(bool waits) {
  waits_are_kept = waits;
  ends = false;
  import_count = early_end_count = 0;
  enabled = true;
  going_on = std::thread([] { let_go_on(ends); });
}

shared_semaphores::~shared_semaphores() {
  ends = true;
  going_on.join();
  enabled = false;
}

int64_t shared_semaphores::imports() const {
  const std::lock_guard lock(mutex);
  return import_count;
}

int64_t shared_semaphores::early_ends() const {
  const std::lock_guard lock(mutex);
  return early_end_count;
}

VkResult submit_shared(VkQueue queue, uint32_t count, const VkSubmitInfo* submits, VkFence fence) {
  static const auto next = loaders<PFN_vkQueueSubmit>("vkQueueSubmit");
  if (!enabled || count != 1 || fence)
    return next(queue, count, submits, fence);
  const std::lock_guard lock(mutex);
  kept_submission s = copy_of(*submits);
  std::deque<kept_submission>& before = kept_back[queue];
  if (before.empty() && has_come(s))
    return submit_now(queue, s);
  before.push_back(std::move(s));
  return VK_SUCCESS;
}

std::optional<uint64_t> shared_value(VkSemaphore semaphore) {
  if (!enabled)
    return std::nullopt;
  const std::lock_guard lock(mutex);
  const payload* const p = imported_by(semaphore);
  return p ? std::optional(value_of(p->maker)) : std::nullopt;
}

} // namespace troupe::test

using namespace troupe::test;

extern "C" {

VkResult vkEnumerateDeviceExtensionProperties(VkPhysicalDevice device, const char* layer, uint32_t* count,
                                              VkExtensionProperties* properties) {
  static const auto next = loaders<PFN_vkEnumerateDeviceExtensionProperties>("vkEnumerateDeviceExtensionProperties");
  if (!enabled || layer || has_extension(device))
    return next(device, layer, count, properties);
  if (!properties) {
    const VkResult result = next(device, layer, count, nullptr);
    ++*count;
    return result;
  }
  uint32_t others = *count - 1;
  const VkResult result = next(device, layer, &others, properties);
  std::strcpy(properties[others].extensionName, extension);
  properties[others].specVersion = 1;
  *count = others + 1;
  return result;
}

void vkGetPhysicalDeviceExternalSemaphoreProperties(VkPhysicalDevice device,
                                                    const VkPhysicalDeviceExternalSemaphoreInfo* info,
                                                    VkExternalSemaphoreProperties* properties) {
  static const auto next =
      loaders<PFN_vkGetPhysicalDeviceExternalSemaphoreProperties>("vkGetPhysicalDeviceExternalSemaphoreProperties");
  next(device, info, properties);
  if (enabled)
    properties->externalSemaphoreFeatures =
        VK_EXTERNAL_SEMAPHORE_FEATURE_EXPORTABLE_BIT | VK_EXTERNAL_SEMAPHORE_FEATURE_IMPORTABLE_BIT;
}

VkResult vkCreateDevice(VkPhysicalDevice physical, const VkDeviceCreateInfo* info,
                        const VkAllocationCallbacks* callbacks, VkDevice* device) {
  static const auto next = loaders<PFN_vkCreateDevice>("vkCreateDevice");
  if (!enabled || has_extension(physical))
    return next(physical, info, callbacks, device);
  std::vector<const char*> others;
  for (uint32_t i = 0; i < info->enabledExtensionCount; ++i)
    if (std::strcmp(info->ppEnabledExtensionNames[i], extension) != 0)
      others.push_back(info->ppEnabledExtensionNames[i]);
  VkDeviceCreateInfo without = *info;
  without.enabledExtensionCount = static_cast<uint32_t>(others.size());
  without.ppEnabledExtensionNames = others.data();
  return next(physical, &without, callbacks, device);
}

/// Lavapipe's timelines cannot be exported.
VkResult vkCreateSemaphore(VkDevice device, const VkSemaphoreCreateInfo* info, const VkAllocationCallbacks* callbacks,
                           VkSemaphore* made) {
  static const auto next = loaders<PFN_vkCreateSemaphore>("vkCreateSemaphore");
  const auto* const type = static_cast<const VkSemaphoreTypeCreateInfo*>(info->pNext);
  if (!enabled || !type || type->sType != VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO || !type->pNext)
    return next(device, info, callbacks, made);
  VkSemaphoreTypeCreateInfo plain = *type;
  plain.pNext = nullptr;
  VkSemaphoreCreateInfo without = *info;
  without.pNext = &plain;
  return next(device, &without, callbacks, made);
}

void vkDestroySemaphore(VkDevice device, VkSemaphore semaphore, const VkAllocationCallbacks* callbacks) {
  static const auto next = loaders<PFN_vkDestroySemaphore>("vkDestroySemaphore");
  {
    const std::lock_guard lock(mutex);
    for (auto p = payloads.begin(); p != payloads.end();) {
      std::erase_if(p->imports, [&](const member& m) { return m.device == device && m.semaphore == semaphore; });
      if (p->maker.device != device || p->maker.semaphore != semaphore) {
        ++p;
        continue;
      }
      early_end_count += static_cast<int64_t>(p->imports.size());
      std::erase_if(by_descriptor, [&](const auto& entry) { return entry.second == &*p; });
      p = payloads.erase(p);
    }
  }
  next(device, semaphore, callbacks);
}

VkResult vkSignalSemaphore(VkDevice device, const VkSemaphoreSignalInfo* info) {
  static const auto next = loaders<PFN_vkSignalSemaphore>("vkSignalSemaphore");
  const std::lock_guard lock(mutex);
  payload* const p = imported_by(info->semaphore);
  if (!p)
    return next(device, info);
  p->maker.raised = std::max(p->maker.raised, info->value);
  return VK_SUCCESS;
}

PFN_vkVoidFunction vkGetDeviceProcAddr(VkDevice device, const char* name) {
  static const auto next = loaders<PFN_vkGetDeviceProcAddr>("vkGetDeviceProcAddr");
  if (enabled && std::string_view(name) == "vkGetSemaphoreFdKHR")
    return reinterpret_cast<PFN_vkVoidFunction>(&get_fd);
  if (enabled && std::string_view(name) == "vkImportSemaphoreFdKHR")
    return reinterpret_cast<PFN_vkVoidFunction>(&import_fd);
  return next(device, name);
}
}

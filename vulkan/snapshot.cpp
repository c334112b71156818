#include "vulkan/snapshot.hpp"

#include "vulkan/cooperative_matrix.hpp"
#include "vulkan/handle.hpp"

#include <algorithm>
#include <cstring>

namespace troupe::vulkan {
namespace {

/// Appends `next` to the chain of structures that begins at `head`.
template <class Head, class Next>
void chain(Head& head, Next& next) {
  next.pNext = head.pNext;
  head.pNext = &next;
}

void read_extensions(VkPhysicalDevice device, gpu_snapshot& s) {
  uint32_t count = 0;
  check(vkEnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr), "vkEnumerateDeviceExtensionProperties");
  std::vector<VkExtensionProperties> found(count);
  check(vkEnumerateDeviceExtensionProperties(device, nullptr, &count, found.data()),
        "vkEnumerateDeviceExtensionProperties");
  for (const VkExtensionProperties& e : found)
    s.extensions.emplace_back(e.extensionName);
}

void read_limits(const VkPhysicalDeviceLimits& limits, gpu_snapshot& s) {
  s.max_group_invocations = std::min(limits.maxComputeWorkGroupInvocations, limits.maxComputeWorkGroupSize[0]);
  s.shared_bytes = limits.maxComputeSharedMemorySize;
  std::copy_n(limits.maxComputeWorkGroupCount, 3, s.max_groups.begin());
  s.max_storage_range = limits.maxStorageBufferRange;
  s.max_storage_buffers = std::min(limits.maxPerStageDescriptorStorageBuffers, limits.maxDescriptorSetStorageBuffers);
  s.storage_alignment = static_cast<int64_t>(limits.minStorageBufferOffsetAlignment);
  s.non_coherent_atom = static_cast<int64_t>(limits.nonCoherentAtomSize);
  s.timestamp_period = limits.timestampPeriod;
  s.max_allocations = limits.maxMemoryAllocationCount;
}

void read_properties(VkPhysicalDevice device, gpu_snapshot& s) {
  VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  VkPhysicalDeviceSubgroupProperties subgroup{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
  VkPhysicalDeviceExternalMemoryHostPropertiesEXT host{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT};
  VkPhysicalDeviceShaderSMBuiltinsPropertiesNV sm{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV};
  chain(properties, subgroup);
  if (s.has_extension(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME))
    chain(properties, host);
  if (s.has_extension(VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME))
    chain(properties, sm);
  vkGetPhysicalDeviceProperties2(device, &properties);
  const VkPhysicalDeviceProperties& p = properties.properties;
  s.name = p.deviceName;
  s.type = p.deviceType;
  s.driver_version = p.driverVersion;
  std::copy_n(p.pipelineCacheUUID, VK_UUID_SIZE, s.pipeline_cache_uuid.begin());
  read_limits(p.limits, s);
  s.subgroup_size = subgroup.subgroupSize;
  s.subgroup_operations =
      subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT ? subgroup.supportedOperations : VkSubgroupFeatureFlags{0};
  s.host_pointer_alignment = static_cast<int64_t>(host.minImportedHostPointerAlignment);
  s.multiprocessors = sm.shaderSMCount;
  s.subgroups_resident = sm.shaderWarpsPerSM;
}

void read_features(VkPhysicalDevice device, gpu_snapshot& s) {
  VkPhysicalDeviceFeatures2 features{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  VkPhysicalDeviceVulkan11Features v11{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES};
  VkPhysicalDeviceVulkan12Features v12{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  chain(features, v11);
  chain(features, v12);
  VkPhysicalDeviceShaderIntegerDotProductFeatures dot{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES};
  if (s.has_extension(VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME))
    chain(features, dot);
  VkPhysicalDevicePipelineCreationCacheControlFeatures cache{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_CREATION_CACHE_CONTROL_FEATURES};
  if (s.has_extension(VK_EXT_PIPELINE_CREATION_CACHE_CONTROL_EXTENSION_NAME))
    chain(features, cache);
  vkGetPhysicalDeviceFeatures2(device, &features);
  s.refuses_to_compile = cache.pipelineCreationCacheControl;
  s.integer_dot = dot.shaderIntegerDotProduct;
  s.timeline_semaphore = v12.timelineSemaphore;
  s.host_query_reset = v12.hostQueryReset;
  s.storage_16bit = v11.storageBuffer16BitAccess;
  s.float16 = v12.shaderFloat16;
  s.int16 = features.features.shaderInt16;
  s.storage_8bit = v12.storageBuffer8BitAccess;
  s.int8 = v12.shaderInt8;
  s.int64 = features.features.shaderInt64;
  s.float64 = features.features.shaderFloat64;
  s.memory_model = v12.vulkanMemoryModel;
}

void read_semaphores(VkPhysicalDevice device, gpu_snapshot& s) {
  if (!s.has_extension(VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME))
    return;
  const VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO, nullptr,
                                       VK_SEMAPHORE_TYPE_TIMELINE, 0};
  const VkPhysicalDeviceExternalSemaphoreInfo info{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_SEMAPHORE_INFO, &type,
                                                   VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT};
  VkExternalSemaphoreProperties can{VK_STRUCTURE_TYPE_EXTERNAL_SEMAPHORE_PROPERTIES};
  vkGetPhysicalDeviceExternalSemaphoreProperties(device, &info, &can);
  constexpr VkExternalSemaphoreFeatureFlags both =
      VK_EXTERNAL_SEMAPHORE_FEATURE_EXPORTABLE_BIT | VK_EXTERNAL_SEMAPHORE_FEATURE_IMPORTABLE_BIT;
  s.exports_timelines = (can.externalSemaphoreFeatures & both) == both;
}

void read_memory(VkPhysicalDevice device, gpu_snapshot& s) {
  VkPhysicalDeviceMemoryProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
  const bool has_budget = s.has_extension(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  if (has_budget)
    chain(properties, budget);
  vkGetPhysicalDeviceMemoryProperties2(device, &properties);
  const VkPhysicalDeviceMemoryProperties& m = properties.memoryProperties;
  for (uint32_t i = 0; i < m.memoryTypeCount; ++i)
    s.memory_types.push_back({m.memoryTypes[i].propertyFlags, m.memoryTypes[i].heapIndex});
  for (uint32_t i = 0; i < m.memoryHeapCount; ++i) {
    s.heap_bytes.push_back(static_cast<int64_t>(m.memoryHeaps[i].size));
    if (has_budget)
      s.heap_budget.push_back(static_cast<int64_t>(budget.heapBudget[i]));
  }
}

void read_queues(VkPhysicalDevice device, gpu_snapshot& s) {
  uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> found(count);
  vkGetPhysicalDeviceQueueFamilyProperties(device, &count, found.data());
  for (const VkQueueFamilyProperties& q : found)
    s.queues.push_back({q.queueFlags, q.queueCount, q.timestampValidBits});
}

void read_subgroup_products(VkInstance instance, VkPhysicalDevice device, gpu_snapshot& s) {
  using namespace cooperative_matrix;
  const auto query = reinterpret_cast<khr_query>(vkGetInstanceProcAddr(instance, khr_query_name));
  if (!query)
    return;
  uint32_t count = 0;
  check(query(device, &count, nullptr), khr_query_name);
  std::vector<khr_product> found(count);
  check(query(device, &count, found.data()), khr_query_name);
  const auto has = [&](uint32_t depth, int32_t factors, int32_t sums) {
    return std::ranges::any_of(found, [&](const khr_product& p) { return p.is_of_subgroup(depth, factors, sums); });
  };
  s.cooperative_16x16x16 = has(16, float16_component, float32_component);
  s.cooperative_bytes = has(32, int8_component, int32_component);
}

/// Whether groups of 128 and of 256 invocations can multiply float16 matrices whose sides are multiples of 32.
bool has_group_products(VkInstance instance, VkPhysicalDevice device) {
  using namespace cooperative_matrix;
  const auto query =
      reinterpret_cast<flexible_dimensions_query>(vkGetInstanceProcAddr(instance, flexible_dimensions_query_name));
  if (!query)
    return false;
  uint32_t count = 0;
  check(query(device, &count, nullptr), flexible_dimensions_query_name);
  std::vector<flexible_dimensions> found(count);
  check(query(device, &count, found.data()), flexible_dimensions_query_name);
  const auto has = [&](uint32_t invocations) {
    return std::any_of(found.begin(), found.end(), [&](const flexible_dimensions& f) {
      constexpr uint32_t side = 32;
      const auto fits = [](uint32_t granularity) { return granularity > 0 && side % granularity == 0; };
      return f.scope == group_scope && f.group_invocations == invocations && f.a == float16_component &&
             f.b == float16_component && f.c == float32_component && f.result == float32_component &&
             fits(f.m_granularity) && fits(f.n_granularity) && fits(f.k_granularity);
    });
  };
  return has(128) && has(256);
}

void read_matrices(VkInstance instance, VkPhysicalDevice device, gpu_snapshot& s) {
  if (!s.has_extension(cooperative_matrix::khr_extension))
    return;
  VkPhysicalDeviceFeatures2 features{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  cooperative_matrix::nv2_features nv2;
  cooperative_matrix::khr_features khr;
  features.pNext = &khr;
  if (s.has_extension(cooperative_matrix::nv2_extension))
    khr.next = &nv2;
  vkGetPhysicalDeviceFeatures2(device, &features);
  if (!khr.cooperative_matrix)
    return;
  read_subgroup_products(instance, device, s);
  s.group_matrices = nv2.suffice() && has_group_products(instance, device);
}

} // namespace

bool gpu_snapshot::has_extension(const char* extension) const {
  return std::any_of(extensions.begin(), extensions.end(), [&](const std::string& e) { return e == extension; });
}

gpu_snapshot take_snapshot(VkInstance instance, VkPhysicalDevice device) {
  gpu_snapshot s;
  VkPhysicalDeviceProperties basic;
  vkGetPhysicalDeviceProperties(device, &basic);
  s.api_version = basic.apiVersion;
  s.name = basic.deviceName;
  s.type = basic.deviceType;
  if (s.api_version < VK_API_VERSION_1_2)
    return s; // the structures below are those of 1.2
  read_extensions(device, s);
  read_properties(device, s);
  read_features(device, s);
  read_semaphores(device, s);
  read_memory(device, s);
  read_queues(device, s);
  read_matrices(instance, device, s);
  return s;
}

} // namespace troupe::vulkan

#include "vulkan/device_context.hpp"

#include "vulkan/cooperative_matrix.hpp"
#include "vulkan/device_choice.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace troupe::vulkan {
namespace {

/// One for each direction.
uint32_t copy_queues(const gpu_snapshot& facts, uint32_t family) {
  return std::min(facts.queues.at(family).count, 2u);
}

/// What is asked for: one queue of the first family, those for copies of the other.
std::vector<VkDeviceQueueCreateInfo> queues_of(const gpu_snapshot& facts, std::span<const uint32_t> families) {
  static constexpr float priorities[] = {1, 1};
  std::vector<VkDeviceQueueCreateInfo> queues;
  for (uint32_t family : families)
    queues.push_back({VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, nullptr, 0, family,
                      family == families[0] ? 1 : copy_queues(facts, family), priorities});
  return queues;
}

/// The features to enable, as Vulkan's chain of structures.
struct enabled_features {
  enabled_features(const gpu_snapshot& facts, bool statistics) {
    const gpu_features wanted = features_of(facts);
    const bool has_matrices = wanted.cooperative_matrix || wanted.byte_matrices || wanted.group_matrices;
    if (has_matrices)
      v12.pNext = &khr;
    if (wanted.group_matrices)
      khr.next = &nv2;
    if (wanted.integer_dot)
      dot.pNext = std::exchange(v12.pNext, &dot);
    if (facts.refuses_to_compile)
      cache.pNext = std::exchange(v12.pNext, &cache);
    if (statistics)
      executables.pNext = std::exchange(v12.pNext, &executables);
    v12.timelineSemaphore = VK_TRUE;
    v12.hostQueryReset = facts.host_query_reset;
    v12.shaderFloat16 = wanted.float16;
    v12.storageBuffer8BitAccess = wanted.int8;
    v12.shaderInt8 = wanted.int8;
    v12.vulkanMemoryModel = has_matrices;
    v11.storageBuffer16BitAccess = wanted.float16;
    all.features.shaderInt64 = wanted.int64;
    all.features.shaderFloat64 = wanted.float64;
    all.features.shaderInt16 = wanted.float16;
  }
  enabled_features(const enabled_features&) = delete;
  enabled_features& operator=(const enabled_features&) = delete;

  cooperative_matrix::nv2_features nv2{.workgroup_scope = VK_TRUE,
                                       .flexible_dimensions = VK_TRUE,
                                       .reductions = VK_TRUE,
                                       .conversions = VK_TRUE,
                                       .per_element_operations = VK_TRUE,
                                       .tensor_addressing = VK_TRUE};
  cooperative_matrix::khr_features khr{.cooperative_matrix = VK_TRUE};
  VkPhysicalDeviceShaderIntegerDotProductFeatures dot{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES, nullptr, VK_TRUE};
  VkPhysicalDevicePipelineCreationCacheControlFeatures cache{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_CREATION_CACHE_CONTROL_FEATURES, nullptr, VK_TRUE};
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR executables{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR, nullptr, VK_TRUE};
  VkPhysicalDeviceVulkan12Features v12{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  VkPhysicalDeviceVulkan11Features v11{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, &v12};
  VkPhysicalDeviceFeatures2 all{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &v11};
};

VkDevice create_device(VkPhysicalDevice physical, const gpu_snapshot& facts, std::span<const uint32_t> families,
                       bool statistics) {
  const enabled_features enabled(facts, statistics);
  const std::vector<VkDeviceQueueCreateInfo> queues = queues_of(facts, families);
  std::vector<const char*> extensions = wanted_extensions(facts);
  if (statistics)
    extensions.push_back(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
  VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, &enabled.all};
  info.queueCreateInfoCount = static_cast<uint32_t>(queues.size());
  info.pQueueCreateInfos = queues.data();
  info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  VkDevice device = VK_NULL_HANDLE;
  check(vkCreateDevice(physical, &info, nullptr, &device), "vkCreateDevice");
  return device;
}

} // namespace

device_context::device_context(std::shared_ptr<const instance> owner, size_t index, lane_queues queues, bool statistics)
    : owner_(std::move(owner)), shared_(queues == lane_queues::shared) {
  if (index >= owner_->gpus().size())
    fail(errc::invalid_argument, "there is no GPU {}; this machine has {}", index, owner_->gpus().size());
  facts_ = owner_->gpus()[index].snapshot;
  if (const std::string why = why_unusable(facts_); !why.empty())
    fail(errc::device_failed, "{} cannot be used: {}", facts_.name, why);
  families_ = {compute_family(facts_)};
  const std::optional<uint32_t> copies = queues == lane_queues::own ? copy_family(facts_) : std::nullopt;
  if (copies)
    families_.push_back(*copies);
  device_ = create_device(owner_->gpus()[index].handle, facts_, families_, statistics);
  VkQueue work = VK_NULL_HANDLE;
  vkGetDeviceQueue(device_, families_[0], 0, &work);
  queues_.fill(work);
  if (!copies)
    return;
  vkGetDeviceQueue(device_, *copies, 0, &queues_[static_cast<size_t>(lane::copies_in)]);
  if (copy_queues(facts_, *copies) > 1)
    vkGetDeviceQueue(device_, *copies, 1, &queues_[static_cast<size_t>(lane::copies_out)]);
}

void device_context::share(VkBufferCreateInfo& info) const {
  if (families_.size() == 1)
    return;
  info.sharingMode = VK_SHARING_MODE_CONCURRENT;
  info.queueFamilyIndexCount = static_cast<uint32_t>(families_.size());
  info.pQueueFamilyIndices = families_.data();
}

bool device_context::has_calibrated_timestamps() const {
  return facts_.has_extension(VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME);
}

} // namespace troupe::vulkan

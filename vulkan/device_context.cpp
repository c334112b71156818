#include "vulkan/device_context.hpp"

#include "vulkan/device_choice.hpp"

#include <span>

namespace troupe::vulkan {
namespace {

VkDevice create_device(VkPhysicalDevice physical, const gpu_snapshot& facts, std::span<const uint32_t> families) {
  const gpu_features features = features_of(facts);
  VkPhysicalDeviceCooperativeMatrixFeaturesNV cooperative{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_NV, nullptr, VK_TRUE, VK_FALSE};
  VkPhysicalDeviceVulkan12Features v12{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  v12.pNext = features.cooperative_matrix ? &cooperative : nullptr;
  v12.timelineSemaphore = VK_TRUE;
  v12.hostQueryReset = facts.host_query_reset;
  v12.shaderFloat16 = features.float16;
  v12.storageBuffer8BitAccess = features.int8;
  v12.shaderInt8 = features.int8;
  v12.vulkanMemoryModel = features.cooperative_matrix;
  VkPhysicalDeviceVulkan11Features v11{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, &v12};
  v11.storageBuffer16BitAccess = features.float16;
  VkPhysicalDeviceFeatures2 enabled{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &v11};
  enabled.features.shaderInt64 = features.int64;
  enabled.features.shaderInt16 = features.float16;

  const float priority = 1;
  std::vector<VkDeviceQueueCreateInfo> queues;
  for (uint32_t family : families)
    queues.push_back({VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, nullptr, 0, family, 1, &priority});
  const std::vector<const char*> extensions = wanted_extensions(facts);
  VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, &enabled};
  info.queueCreateInfoCount = static_cast<uint32_t>(queues.size());
  info.pQueueCreateInfos = queues.data();
  info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  VkDevice device = VK_NULL_HANDLE;
  check(vkCreateDevice(physical, &info, nullptr, &device), "vkCreateDevice");
  return device;
}

} // namespace

device_context::device_context(std::shared_ptr<const instance> owner, size_t index, bool one_queue)
    : owner_(std::move(owner)) {
  if (index >= owner_->gpus().size())
    fail(errc::invalid_argument, "there is no GPU {}; this machine has {}", index, owner_->gpus().size());
  facts_ = owner_->gpus()[index].snapshot;
  if (const std::string why = why_unusable(facts_); !why.empty())
    fail(errc::device_failed, "{} cannot be used: {}", facts_.name, why);
  family_ = compute_family(facts_);
  families_ = {family_};
  if (!one_queue)
    copy_family_ = copy_family(facts_);
  if (copy_family_)
    families_.push_back(*copy_family_);
  device_ = create_device(owner_->gpus()[index].handle, facts_, families_);
  vkGetDeviceQueue(device_, family_, 0, &queue_);
  if (copy_family_)
    vkGetDeviceQueue(device_, *copy_family_, 0, &copy_queue_);
}

void device_context::share(VkBufferCreateInfo& info) const {
  if (!has_copy_lane())
    return;
  info.sharingMode = VK_SHARING_MODE_CONCURRENT;
  info.queueFamilyIndexCount = static_cast<uint32_t>(families_.size());
  info.pQueueFamilyIndices = families_.data();
}

bool device_context::has_calibrated_timestamps() const {
  return facts_.has_extension(VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME);
}

} // namespace troupe::vulkan

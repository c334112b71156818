#include "vulkan/instance.hpp"

#include "vulkan/device_choice.hpp"
#include "vulkan/handle.hpp"

#include <atomic>

namespace troupe::vulkan {
namespace {

constexpr const char* validation_layer = "VK_LAYER_KHRONOS_validation";
constexpr size_t max_messages = 1000;
constexpr std::string_view write_after_write = "SYNC-HAZARD-WRITE-AFTER-WRITE";

constexpr VkValidationFeatureEnableEXT wanted_checks[] = {VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};

/// Keeps the first instance that ends until the process does; returns whether this is it. When the last one is
/// destroyed the loader unloads the drivers, and NVIDIA's (580) does not start again after some tens of times.
bool is_kept(VkInstance ended) {
  static std::atomic<VkInstance> kept{};
  VkInstance none = VK_NULL_HANDLE;
  return kept.compare_exchange_strong(none, ended);
}

} // namespace

instance::instance(const instance_options& options) {
  create(options.validation);
  list_gpus();
}

instance::~instance() {
  if (validates()) {
    const auto destroy = reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(
        vkGetInstanceProcAddr(instance_, "vkDestroyDebugUtilsMessengerEXT"));
    destroy(instance_, messenger_, nullptr);
  }
  if (!is_kept(instance_))
    vkDestroyInstance(instance_, nullptr);
}

void instance::create(bool validation) {
  const VkApplicationInfo application{
      VK_STRUCTURE_TYPE_APPLICATION_INFO, nullptr, "troupe", 1, "troupe", 1, VK_API_VERSION_1_2};
  VkDebugUtilsMessengerCreateInfoEXT messenger{VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
  messenger.messageSeverity =
      VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  messenger.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
  messenger.pfnUserCallback = keep_message;
  messenger.pUserData = this;
  const VkValidationFeaturesEXT checks{VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
                                       &messenger,
                                       static_cast<uint32_t>(std::size(wanted_checks)),
                                       wanted_checks,
                                       0,
                                       nullptr};
  const char* extensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME};
  VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  info.pApplicationInfo = &application;
  if (validation) {
    info.pNext = &checks;
    info.enabledLayerCount = 1;
    info.ppEnabledLayerNames = &validation_layer;
    info.enabledExtensionCount = 1;
    info.ppEnabledExtensionNames = extensions;
  }
  const VkResult result = vkCreateInstance(&info, nullptr, &instance_);
  if (result == VK_ERROR_LAYER_NOT_PRESENT)
    fail(errc::device_failed, "the Vulkan validation layer is not installed (Debian: vulkan-validationlayers)");
  if (result == VK_ERROR_INCOMPATIBLE_DRIVER)
    fail(errc::device_failed, "no Vulkan driver is installed");
  check(result, "vkCreateInstance");
  if (!validation)
    return;
  const auto make = reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(
      vkGetInstanceProcAddr(instance_, "vkCreateDebugUtilsMessengerEXT"));
  check(make(instance_, &messenger, nullptr, &messenger_), "vkCreateDebugUtilsMessengerEXT");
}

void instance::list_gpus() {
  uint32_t count = 0;
  check(vkEnumeratePhysicalDevices(instance_, &count, nullptr), "vkEnumeratePhysicalDevices");
  std::vector<VkPhysicalDevice> found(count);
  check(vkEnumeratePhysicalDevices(instance_, &count, found.data()), "vkEnumeratePhysicalDevices");
  std::vector<gpu_snapshot> snapshots;
  snapshots.reserve(found.size());
  for (VkPhysicalDevice device : found)
    snapshots.push_back(take_snapshot(instance_, device));
  for (size_t i : order_of(snapshots))
    gpus_.push_back({found[i], snapshots[i]});
}

std::vector<std::string> instance::messages() const {
  const std::lock_guard lock(mutex_);
  return messages_;
}

instance::writing_parts::writing_parts(const instance& owner) : owner_(owner) {
  if (!owner_.validates())
    return;
  const std::lock_guard lock(owner_.mutex_);
  owner_.writing_parts_.insert(std::this_thread::get_id());
}

instance::writing_parts::~writing_parts() {
  if (!owner_.validates())
    return;
  const std::lock_guard lock(owner_.mutex_);
  owner_.writing_parts_.erase(std::this_thread::get_id());
}

VkBool32 instance::keep_message(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                                const VkDebugUtilsMessengerCallbackDataEXT* data, void* self) {
  auto& owner = *static_cast<instance*>(self);
  const std::lock_guard lock(owner.mutex_);
  const std::string_view id = data->pMessageIdName ? data->pMessageIdName : "";
  if (id == write_after_write && owner.writing_parts_.contains(std::this_thread::get_id()))
    return VK_FALSE;
  if (owner.messages_.size() < max_messages)
    owner.messages_.emplace_back(data->pMessage);
  return VK_FALSE;
}

} // namespace troupe::vulkan

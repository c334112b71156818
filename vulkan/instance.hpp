// The Vulkan instance of a process's engine: finds the GPUs, and collects what the validation layer says.
//
// Thread-safe after construction. Devices keep their instance alive.
#pragma once

#include "vulkan/snapshot.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

namespace troupe::vulkan {

struct instance_options {
  /// Loads the validation layer with synchronization validation: each message is kept, see `messages`. For tests.
  bool validation = false;
};

/// A GPU that the loader lists.
struct listed_gpu {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  gpu_snapshot snapshot;
};

/// See the top of this file.
class instance {
public:
  /// Throws `errc::device_failed` if there is no Vulkan loader, no driver, or no validation layer when it is asked for.
  explicit instance(const instance_options& options = {});
  ~instance();
  instance(const instance&) = delete;
  instance& operator=(const instance&) = delete;

  VkInstance get() const { return instance_; }

  /// Returns the GPUs in the order of their numbers (see `order_of`), those that cannot be used too.
  const std::vector<listed_gpu>& gpus() const { return gpus_; }

  /// Returns whether the validation layer is loaded.
  bool validates() const { return messenger_ != VK_NULL_HANDLE; }
  /// Returns what the validation layer has said so far.
  std::vector<std::string> messages() const;

  /// While one lives, this thread records launches that write other elements of a range than those before in the same
  /// wave: parts of one tensor's rows. The validation layer knows ranges only and takes them for writes of the same;
  /// what it says of writes after writes is not kept.
  class writing_parts {
  public:
    explicit writing_parts(const instance& owner);
    ~writing_parts();
    writing_parts(const writing_parts&) = delete;
    writing_parts& operator=(const writing_parts&) = delete;

  private:
    const instance& owner_;
  };

private:
  static VKAPI_ATTR VkBool32 VKAPI_CALL keep_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                     VkDebugUtilsMessageTypeFlagsEXT types,
                                                     const VkDebugUtilsMessengerCallbackDataEXT* data, void* self);
  void create(bool validation);
  void list_gpus();

  VkInstance instance_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  std::vector<listed_gpu> gpus_;
  mutable std::mutex mutex_;
  std::vector<std::string> messages_;
  mutable std::set<std::thread::id> writing_parts_; // the threads that are
};

} // namespace troupe::vulkan

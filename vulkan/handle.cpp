#include "vulkan/handle.hpp"

namespace troupe::vulkan {

void check(VkResult result, const char* call) {
  if (result >= VK_SUCCESS)
    return;
  if (result == VK_ERROR_DEVICE_LOST)
    fail(errc::device_lost, "{}: the GPU is lost (a driver fault or a reset)", call);
  if (result == VK_ERROR_OUT_OF_DEVICE_MEMORY || result == VK_ERROR_OUT_OF_HOST_MEMORY ||
      result == VK_ERROR_OUT_OF_POOL_MEMORY)
    fail(errc::out_of_memory, "{}: the driver has no {} memory left", call,
         result == VK_ERROR_OUT_OF_HOST_MEMORY ? "host" : "device");
  fail(errc::device_failed, "{} failed with VkResult {}", call, static_cast<int>(result));
}

} // namespace troupe::vulkan

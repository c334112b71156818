// Holds a GPU up, so that a test knows that work is in flight.
#pragma once

#include "vulkan/device_context.hpp"

namespace troupe::test {

/// Holds up submissions to the queue for work, from its construction on until `open`.
class gate {
public:
  explicit gate(vulkan::device_context& context) : context_(context) {
    const VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO, nullptr,
                                         VK_SEMAPHORE_TYPE_TIMELINE, 0};
    const VkSemaphoreCreateInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &type, 0};
    VkSemaphore made = VK_NULL_HANDLE;
    vulkan::check(vkCreateSemaphore(context.get(), &info, nullptr, &made), "vkCreateSemaphore");
    opened_ = {context.get(), made};
    constexpr uint64_t value = 1;
    constexpr VkPipelineStageFlags stage = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    VkTimelineSemaphoreSubmitInfo values{VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO};
    values.waitSemaphoreValueCount = 1;
    values.pWaitSemaphoreValues = &value;
    VkSubmitInfo wait{VK_STRUCTURE_TYPE_SUBMIT_INFO, &values};
    wait.waitSemaphoreCount = 1;
    wait.pWaitSemaphores = &made;
    wait.pWaitDstStageMask = &stage;
    vulkan::check(vkQueueSubmit(context.queue(), 1, &wait, VK_NULL_HANDLE), "vkQueueSubmit");
  }

  void open() {
    const VkSemaphoreSignalInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, nullptr, opened_.get(), 1};
    vulkan::check(vkSignalSemaphore(context_.get(), &info), "vkSignalSemaphore");
  }

private:
  vulkan::device_context& context_;
  vulkan::semaphore_handle opened_;
};

} // namespace troupe::test

#include "vulkan/copy_kernel.hpp"

#include <algorithm>

namespace troupe::vulkan {
namespace {

constexpr uint32_t copies_each = 8, buffers_each = 2 * copies_each; // of a dispatch
constexpr VkDeviceSize word_bytes = 16;

const pipeline_key& key() {
  static const pipeline_key copy{.shader = "copy_ranges.w128", .constants = {}, .buffers = buffers_each};
  return copy;
}

/// Groups that share the longest of some copies: four words an invocation, but not more than fill a large GPU.
uint32_t groups_for(std::span<const direct_copy> copies) {
  constexpr VkDeviceSize group_bytes = 256 * 4 * word_bytes, most = 512;
  VkDeviceSize longest = 0;
  for (const direct_copy& each : copies)
    longest = std::max(longest, each.bytes);
  return static_cast<uint32_t>(std::clamp<VkDeviceSize>((longest + group_bytes - 1) / group_bytes, 1, most));
}

/// Names the ends of copies; places of a dispatch that are left over get those of the first.
void describe(VkDevice device, VkDescriptorSet set, std::span<const direct_copy> copies) {
  std::array<VkDescriptorBufferInfo, buffers_each> buffers{};
  for (uint32_t i = 0; i < copies_each; ++i) {
    const direct_copy& each = copies[i < copies.size() ? i : 0];
    buffers[2 * i] = {each.from, each.from_offset, each.bytes};
    buffers[2 * i + 1] = {each.to, each.to_offset, each.bytes};
  }
  // One write goes on over the bindings that follow, since all are alike.
  VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, nullptr, set, 1, 0, buffers_each};
  write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
  write.pBufferInfo = buffers.data();
  vkUpdateDescriptorSets(device, 1, &write, 0, nullptr);
}

} // namespace

bool copy_kernel::takes(const direct_copy& copy) const {
  const gpu_snapshot& facts = context_.facts();
  const auto aligned = [&](VkDeviceSize offset) {
    return offset % static_cast<VkDeviceSize>(facts.storage_alignment) == 0;
  };
  return copy.inside && copy.bytes % word_bytes == 0 && aligned(copy.from_offset) && aligned(copy.to_offset) &&
         copy.bytes <= static_cast<VkDeviceSize>(facts.max_storage_range) && facts.max_storage_buffers >= buffers_each;
}

pipeline copy_kernel::prepared() {
  if (held_.empty())
    held_ = kernels_.prepare(std::span(&key(), 1));
  return kernels_.find(key());
}

descriptor_pool_handle copy_kernel::record(VkCommandBuffer commands, std::span<const direct_copy> copies) {
  const pipeline p = prepared();
  const auto sets = static_cast<uint32_t>((copies.size() + copies_each - 1) / copies_each);
  descriptor_pool_handle pool = make_descriptor_pool(context_, sets, sets * buffers_each);
  vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, p.handle);
  for (size_t first = 0; first < copies.size(); first += copies_each) {
    const auto some = copies.subspan(first, std::min<size_t>(copies_each, copies.size() - first));
    const VkDescriptorSet set = allocate_set(context_, pool, p.set_layout);
    describe(context_.get(), set, some);
    vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, p.layout, 0, 1, &set, 0, nullptr);
    vkCmdDispatch(commands, groups_for(some), static_cast<uint32_t>(some.size()), 1);
  }
  return pool;
}

} // namespace troupe::vulkan

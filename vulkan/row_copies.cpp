#include "vulkan/row_copies.hpp"

#include "vulkan/commands.hpp"
#include "vulkan/dynamic_calls.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace troupe::vulkan {
namespace {

constexpr size_t copies_a_dispatch = shader::copy_rows_each;

/// What a submission uses until it is complete.
struct submitted_copies {
  command_pool_handle pool;
  dispatched_copies dispatched;
  std::vector<std::shared_ptr<const allocation>> held;
  VkCommandBuffer commands = VK_NULL_HANDLE;
};

} // namespace

const pipeline_key& row_copier::key(bool widens) {
  static const pipeline_key copy{.shader = "copy_rows.w128", .constants = {}, .buffers = 2 * copies_a_dispatch},
      widen{.shader = "copy_rows.f16_f32", .constants = {}, .buffers = 2 * copies_a_dispatch};
  return widens ? widen : copy;
}

void row_copier::submit(row_moves& moves, timeline& queue) {
  constexpr VkAccessFlags any_access = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT,
                          own = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_UNIFORM_READ_BIT;
  if (moves.copies.empty())
    return;
  auto r = std::make_shared<submitted_copies>();
  r->held = moves.held;
  r->pool = make_command_pool(context_);
  r->commands = make_commands(context_, r->pool);
  begin(r->commands, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT);
  troupe::vulkan::record(r->commands, {VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT, any_access,
                                       VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, own});
  r->dispatched = record(r->commands, moves.copies);
  troupe::vulkan::record(r->commands, {VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT,
                                       VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, any_access});
  end(r->commands);
  queue.submit(std::span(&r->commands, 1), [r](VkResult) {}); // the next wait sees a failure
  for (const std::function<void()>& each : std::exchange(moves.then, {}))
    each();
}

bool row_copier::takes(const VkDescriptorBufferInfo& range) const {
  const gpu_snapshot& facts = context_.facts();
  return range.range % row_word_bytes == 0 && range.offset % static_cast<VkDeviceSize>(facts.storage_alignment) == 0 &&
         range.range <= static_cast<VkDeviceSize>(facts.max_storage_range) && is_available();
}

dispatched_copies row_copier::record(VkCommandBuffer commands, std::span<const row_copy> copies) {
  if (held_.empty())
    held_ = kernels_.prepare(std::span(&key(), 1));
  const pipeline p = kernels_.find(key());
  const size_t sets = (copies.size() + copies_a_dispatch - 1) / copies_a_dispatch;
  dispatched_copies r{
      make_descriptor_pool(context_, static_cast<uint32_t>(sets), static_cast<uint32_t>(sets * 2 * copies_a_dispatch)),
      parameters_.allocate(static_cast<int64_t>(sets) * param_block_bytes)};
  vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, p.handle);
  for (size_t set = 0; set < sets; ++set) {
    const auto some =
        copies.subspan(set * copies_a_dispatch, std::min(copies_a_dispatch, copies.size() - set * copies_a_dispatch));
    const int64_t at = static_cast<int64_t>(set) * param_block_bytes;
    std::vector<row_steps> steps;
    std::array<VkDescriptorBufferInfo, 1 + 2 * copies_a_dispatch> buffers{};
    buffers[0] = {r.parameters.buffer(), static_cast<VkDeviceSize>(r.parameters.offset() + at), param_block_bytes};
    int64_t longest = 0;
    for (size_t i = 0; i < copies_a_dispatch; ++i) {
      const row_copy& copy = some[i < some.size() ? i : 0];
      buffers[1 + 2 * i] = copy.from;
      buffers[2 + 2 * i] = copy.to;
      if (i < some.size())
        steps.push_back(copy.steps);
      longest = std::max(longest, copy.steps.words());
    }
    const std::vector<uint32_t> words = row_copy_words(steps);
    std::memcpy(r.parameters.mapped() + at, words.data(), words.size() * sizeof(uint32_t));
    const VkDescriptorSet own = allocate_set(context_, r.descriptors, p.set_layout);
    describe_set(context_, own, buffers);
    vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, p.layout, 0, 1, &own, 0, nullptr);
    vkCmdDispatch(commands, row_copy_groups(longest), static_cast<uint32_t>(some.size()), 1);
  }
  r.parameters.flush(0, r.parameters.bytes());
  return r;
}

} // namespace troupe::vulkan

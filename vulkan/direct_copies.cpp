#include "vulkan/direct_copies.hpp"

namespace troupe::vulkan {
namespace {

constexpr VkAccessFlags any_access = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT;

/// One copy between a block and the arena (or a weight that is an output).
struct copy {
  host_imports::place host;
  VkBuffer device = VK_NULL_HANDLE;
  VkDeviceSize offset = 0, bytes = 0;
};

copy copy_of(const installed_transfer& t, const tensor& bytes, const arena_slot& slot, host_imports& imports) {
  const auto [buffer, offset] = resolve(t.place, slot);
  return {imports.place_of(bytes), buffer, offset, static_cast<VkDeviceSize>(t.bytes())};
}

/// Whether the recorded copies are these; remembers these.
bool same_as_recorded(const std::vector<copy>& copies, std::vector<std::pair<uint64_t, VkDeviceSize>>& recorded) {
  std::vector<std::pair<uint64_t, VkDeviceSize>> wanted;
  for (const copy& each : copies)
    wanted.emplace_back(each.host.block, each.host.offset);
  const bool same = wanted == recorded;
  recorded = std::move(wanted);
  return same;
}

void record_in(VkCommandBuffer commands, const std::vector<copy>& copies) {
  begin(commands, 0);
  record(commands, {VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT, any_access,
                    VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT});
  for (const copy& each : copies) {
    const VkBufferCopy region{each.host.offset, each.offset, each.bytes};
    vkCmdCopyBuffer(commands, each.host.buffer, each.device, 1, &region);
  }
  record(commands, {VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                    any_access});
  end(commands);
}

void record_out(VkCommandBuffer commands, const std::vector<copy>& copies) {
  begin(commands, 0);
  record(commands, {VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, any_access, VK_PIPELINE_STAGE_TRANSFER_BIT,
                    VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT});
  for (const copy& each : copies) {
    const VkBufferCopy region{each.offset, each.host.offset, each.bytes};
    vkCmdCopyBuffer(commands, each.device, each.host.buffer, 1, &region);
  }
  record(commands, {VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT, VK_PIPELINE_STAGE_HOST_BIT,
                    VK_ACCESS_HOST_READ_BIT});
  end(commands);
}

} // namespace

std::vector<VkCommandBuffer> prepare_copies(recorded_chunk& r, const installed_chunk& c, const arena_slot& slot,
                                            const std::vector<tensor>& uploads, host_imports& imports,
                                            direct_tensors& kept) {
  std::vector<copy> in, out;
  for (size_t i = 0; i < c.uploads.size(); ++i)
    if (c.uploads[i].is_direct()) {
      kept.uploads.push_back(imports.in_block(uploads[i]));
      in.push_back(copy_of(c.uploads[i], kept.uploads.back(), slot, imports));
    }
  kept.downloads.resize(c.downloads.size());
  for (size_t i = 0; i < c.downloads.size(); ++i)
    if (c.downloads[i].is_direct()) {
      kept.downloads[i] = imports.make(c.downloads[i].type, c.downloads[i].dims);
      out.push_back(copy_of(c.downloads[i], kept.downloads[i], slot, imports));
    }
  if (!same_as_recorded(in, r.recorded_in))
    record_in(r.copies_in, in);
  if (!same_as_recorded(out, r.recorded_out))
    record_out(r.copies_out, out);
  std::vector<VkCommandBuffer> commands;
  if (!in.empty())
    commands.push_back(r.copies_in);
  commands.push_back(r.commands);
  if (!out.empty())
    commands.push_back(r.copies_out);
  return commands;
}

} // namespace troupe::vulkan

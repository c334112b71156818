#include "vulkan/direct_copies.hpp"

namespace troupe::vulkan {
namespace {

constexpr VkAccessFlags any_access = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT;

/// Adds the copy of a direct transfer; empty tensors need none.
void add_copy(const installed_transfer& t, const tensor& bytes, const arena_slot& slot, host_imports& imports,
              std::vector<direct_copy>& copies) {
  if (bytes.bytes() == 0)
    return;
  const host_imports::place host = imports.place_of(bytes);
  const auto [buffer, offset] = resolve(t.place, slot);
  copies.push_back({host.block, host.buffer, buffer, host.offset, offset, static_cast<VkDeviceSize>(bytes.bytes())});
}

void record_in(VkCommandBuffer commands, const std::vector<direct_copy>& copies) {
  begin(commands, 0);
  record(commands, {VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT, any_access,
                    VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT});
  for (const direct_copy& each : copies) {
    const VkBufferCopy region{each.host_offset, each.device_offset, each.bytes};
    vkCmdCopyBuffer(commands, each.host, each.device, 1, &region);
  }
  record(commands, {VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                    any_access});
  end(commands);
}

void record_out(VkCommandBuffer commands, const std::vector<direct_copy>& copies) {
  begin(commands, 0);
  record(commands, {VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, any_access, VK_PIPELINE_STAGE_TRANSFER_BIT,
                    VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT});
  for (const direct_copy& each : copies) {
    const VkBufferCopy region{each.device_offset, each.host_offset, each.bytes};
    vkCmdCopyBuffer(commands, each.device, each.host, 1, &region);
  }
  record(commands, {VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT, VK_PIPELINE_STAGE_HOST_BIT,
                    VK_ACCESS_HOST_READ_BIT});
  end(commands);
}

} // namespace

std::vector<VkCommandBuffer> prepare_copies(recorded_chunk& r, const installed_chunk& c, const bound_plan& bound,
                                            const arena_slot& slot, const std::vector<tensor>& uploads,
                                            host_imports& imports, direct_tensors& kept) {
  std::vector<direct_copy> in, out;
  for (size_t i = 0; i < c.uploads.size(); ++i)
    if (c.uploads[i].is_direct()) {
      kept.uploads.push_back(imports.in_block(uploads[i]));
      add_copy(c.uploads[i], kept.uploads.back(), slot, imports, in);
    }
  kept.downloads.resize(c.downloads.size());
  for (size_t i = 0; i < c.downloads.size(); ++i)
    if (c.downloads[i].is_direct()) {
      kept.downloads[i] = imports.make(c.downloads[i].type, bound.dims[c.downloads[i].value]);
      add_copy(c.downloads[i], kept.downloads[i], slot, imports, out);
    }
  std::vector<VkCommandBuffer> commands{r.commands};
  if (!in.empty()) {
    if (in != r.recorded_in)
      record_in(r.copies_in, in);
    commands.insert(commands.begin(), r.copies_in);
    r.recorded_in = std::move(in);
  }
  if (!out.empty()) {
    if (out != r.recorded_out)
      record_out(r.copies_out, out);
    commands.push_back(r.copies_out);
    r.recorded_out = std::move(out);
  }
  return commands;
}

} // namespace troupe::vulkan

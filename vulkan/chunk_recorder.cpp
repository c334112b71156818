#include "vulkan/chunk_recorder.hpp"

#include <algorithm>
#include <utility>

namespace troupe::vulkan {
namespace {

constexpr uint32_t copy_timestamp_count = 4;
constexpr VkAccessFlags shader_access = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;

class recorder {
public:
  recorder(device_context& context, const pipelines& kernels, const installed_chunk& c, const arena_slot& slot,
           row_copier& to_peers, std::span<const value_place> caches, recording how)
      : context_(context), kernels_(kernels), chunk_(c), slot_(slot), to_peers_(to_peers), caches_(caches),
        timed_(how == recording::timed), narrowed_(how == recording::narrowed) {}

  void record_into(recorded_chunk& out) {
    make_descriptors(out);
    make_timestamps(out);
    begin(out.commands, 0);
    if (!context_.facts().host_query_reset)
      vkCmdResetQueryPool(out.commands, out.timestamps.get(), 0, out.timestamp_count);
    // Earlier submissions may still use the arena, and the host may have written to it, and to parameters.
    record(out.commands, {VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT,
                          VK_ACCESS_MEMORY_WRITE_BIT | VK_ACCESS_HOST_WRITE_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                          VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT});
    stamp(out);
    record_uploads(out);
    if (timed_)
      stamp(out);
    record_launches(out);
    record_downloads(out);
    stamp(out);
    end(out.commands);
  }

private:
  void make_descriptors(recorded_chunk& out) {
    uint32_t buffers = 0;
    for (const installed_launch& l : chunk_.launches)
      buffers += l.key.buffers;
    const auto sets = std::max<uint32_t>(static_cast<uint32_t>(chunk_.launches.size()), 1);
    out.descriptors = make_descriptor_pool(context_, sets, std::max(buffers, 1u));
  }

  void make_timestamps(recorded_chunk& out) {
    out.timestamp_count = 2 + (timed_ ? static_cast<uint32_t>(chunk_.launches.size()) + 1 : 0);
    out.timestamps = make_queries(out.timestamp_count);
    out.timed = timed_;
    if (context_.facts().host_query_reset)
      out.copy_timestamps = make_queries(copy_timestamp_count);
  }

  query_pool_handle make_queries(uint32_t count) {
    const VkQueryPoolCreateInfo info{
        VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO, nullptr, 0, VK_QUERY_TYPE_TIMESTAMP, count, 0};
    VkQueryPool pool = VK_NULL_HANDLE;
    check(vkCreateQueryPool(context_.get(), &info, nullptr, &pool), "vkCreateQueryPool");
    return {context_.get(), pool};
  }

  void stamp(recorded_chunk& out) {
    vkCmdWriteTimestamp(out.commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, out.timestamps.get(), stamps_++);
  }

  void record_uploads(recorded_chunk& out) {
    bool copies = false;
    for (const installed_transfer& t : chunk_.uploads) {
      const bool narrowed = narrowed_ && t.narrowed;
      if (!out.upload_staging || t.is_direct() || (narrowed ? t.narrowed_used_staged : t.used_staged))
        continue;
      copies = true;
      const bound_range& place = narrowed ? *t.narrowed : t.place;
      const auto [buffer, offset] = resolve(place, slot_);
      copy(out.commands, out.upload_staging.buffer(), static_cast<VkDeviceSize>(out.upload_staging.offset() + t.staged),
           buffer, offset, place);
    }
    if (copies)
      record(out.commands, {VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT,
                            VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
                            shader_access | VK_ACCESS_TRANSFER_READ_BIT});
  }

  static void copy(VkCommandBuffer commands, VkBuffer from, VkDeviceSize from_offset, VkBuffer to,
                   VkDeviceSize to_offset, const bound_range& place) {
    // All that the staging memory has room for: a binding's own bytes may be fewer.
    const VkBufferCopy region{from_offset, to_offset, static_cast<VkDeviceSize>(place.bytes)};
    if (region.size > 0)
      vkCmdCopyBuffer(commands, from, to, 1, &region);
  }

  void record_launches(recorded_chunk& out) {
    bool first = true, barrier = false;
    for (const installed_launch& l : chunk_.launches) {
      barrier |= l.barrier_before; // one that is left out leaves it to the next
      if (narrowed_ && l.narrows)
        continue;
      if (std::exchange(barrier, false) && !first)
        record(out.commands, {VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT,
                              VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, shader_access});
      first = false;
      dispatch(out, l);
      if (timed_)
        stamp(out);
    }
  }

  void dispatch(recorded_chunk& out, const installed_launch& l) {
    const pipeline p = kernels_.find(l.key);
    if (p.handle != bound_) {
      vkCmdBindPipeline(out.commands, VK_PIPELINE_BIND_POINT_COMPUTE, p.handle);
      bound_ = p.handle;
    }
    const VkDescriptorSet set = describe_buffers(out, l, p);
    vkCmdBindDescriptorSets(out.commands, VK_PIPELINE_BIND_POINT_COMPUTE, p.layout, 0, 1, &set, 0, nullptr);
    std::optional<instance::writing_parts> parts;
    if (l.writes_part)
      parts.emplace(context_.owner());
    if (l.groups_at < 0)
      vkCmdDispatch(out.commands, l.groups[0], l.groups[1], l.groups[2]);
    else
      vkCmdDispatchIndirect(out.commands, slot_.parameters.buffer(),
                            static_cast<VkDeviceSize>(slot_.parameters.offset() + l.groups_at));
  }

  VkDescriptorSet describe_buffers(recorded_chunk& out, const installed_launch& l, const pipeline& p) {
    const VkDescriptorSet set = allocate_set(context_, out.descriptors, p.set_layout);
    std::vector<VkDescriptorBufferInfo> buffers;
    const auto add = [&](const bound_range& r) {
      if (r.place == bound_range::where::cache) {
        const value_place& cache = caches_[r.cache]; // has what the run needs, which may be less than the capacities
        const auto offset = static_cast<VkDeviceSize>(r.offset);
        buffers.push_back(
            {cache.buffer, cache.offset + offset, std::min(static_cast<VkDeviceSize>(r.bytes), cache.bytes - offset)});
        return;
      }
      const auto [buffer, offset] = place_in(out, r);
      buffers.push_back({buffer, offset, static_cast<VkDeviceSize>(r.bytes)});
    };
    add(l.params);
    std::for_each(l.buffers.begin(), l.buffers.end(), add);
    describe_set(context_, set, buffers);
    return set;
  }

  /// The buffer and offset of what a launch uses, in staging memory too.
  std::pair<VkBuffer, VkDeviceSize> place_in(const recorded_chunk& out, const bound_range& r) const {
    if (narrowed_ && r.narrowed_at >= 0)
      return {out.upload_staging.buffer(), static_cast<VkDeviceSize>(out.upload_staging.offset() + r.narrowed_at)};
    return resolve(r, slot_, out);
  }

  void record_downloads(recorded_chunk& out) {
    const auto is_copied = [&](const installed_transfer& t) {
      return !t.is_direct() && !t.used_staged && (t.exchanged || out.download_staging);
    };
    if (std::any_of(chunk_.downloads.begin(), chunk_.downloads.end(), is_copied)) {
      record(out.commands, {VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT,
                            VK_PIPELINE_STAGE_TRANSFER_BIT | VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                            VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_SHADER_READ_BIT});
      std::vector<row_copy> by_kernel;
      for (const installed_transfer& t : chunk_.downloads) {
        if (!is_copied(t))
          continue;
        const auto [buffer, offset] = resolve(t.place, slot_);
        const auto [to, to_offset] = resolve(staged_place(t), slot_, out);
        const auto bytes = static_cast<VkDeviceSize>(t.place.bytes);
        const VkDescriptorBufferInfo made{buffer, offset, bytes}, wanted{to, to_offset, bytes};
        if (t.exchanged && bytes > 0 && to_peers_.takes(made) && to_peers_.takes(wanted))
          by_kernel.push_back({one_row(t.place.bytes), made, wanted});
        else
          copy(out.commands, buffer, offset, to, to_offset, t.place);
      }
      if (!by_kernel.empty())
        out.to_peers = to_peers_.record(out.commands, by_kernel);
    }
    record(out.commands, {VK_PIPELINE_STAGE_TRANSFER_BIT | VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                          VK_ACCESS_TRANSFER_WRITE_BIT | VK_ACCESS_SHADER_WRITE_BIT, VK_PIPELINE_STAGE_HOST_BIT,
                          VK_ACCESS_HOST_READ_BIT});
  }

  static bound_range staged_place(const installed_transfer& t) {
    return {.place = t.exchanged ? bound_range::where::exchanged : bound_range::where::downloads, .offset = t.staged};
  }

  device_context& context_;
  const pipelines& kernels_;
  const installed_chunk& chunk_;
  const arena_slot& slot_;
  row_copier& to_peers_;
  const std::span<const value_place> caches_;
  const bool timed_, narrowed_;
  VkPipeline bound_ = VK_NULL_HANDLE;
  uint32_t stamps_ = 0;
};

/// Values that are in mapped memory need no staging.
bool all_mapped(const std::vector<installed_transfer>& transfers, const arena_slot& slot) {
  return std::all_of(transfers.begin(), transfers.end(),
                     [&](const installed_transfer& t) { return memory_of(t.place, slot).mapped() != nullptr; });
}

host_place place_in(const allocation& staging, const installed_transfer& t, const arena_slot& slot) {
  if (staging)
    return {&staging, t.staged};
  return {&memory_of(t.place, slot), t.place.offset};
}

} // namespace

void reset_queries(const device_context& context, const recorded_chunk& chunk) {
  if (!context.facts().host_query_reset)
    return; // `record_chunk` has the GPU do it
  vkResetQueryPool(context.get(), chunk.timestamps.get(), 0, chunk.timestamp_count);
  if (chunk.copy_timestamps)
    vkResetQueryPool(context.get(), chunk.copy_timestamps.get(), 0, copy_timestamp_count);
}

const allocation& memory_of(const bound_range& r, const arena_slot& slot) {
  switch (r.place) {
    case bound_range::where::arena: return *slot.arena;
    case bound_range::where::scratch: return *slot.scratch;
    case bound_range::where::parameters: return slot.parameters;
    case bound_range::where::counters: return slot.counters;
    case bound_range::where::uploads:
    case bound_range::where::downloads:
    case bound_range::where::exchanged:
    case bound_range::where::cache:
    case bound_range::where::fixed: break;
  }
  return *r.fixed;
}

std::pair<VkBuffer, VkDeviceSize> resolve(const bound_range& r, const arena_slot& slot) {
  const allocation& memory = memory_of(r, slot);
  return {memory.buffer(), static_cast<VkDeviceSize>(memory.offset() + r.offset)};
}

std::pair<VkBuffer, VkDeviceSize> resolve(const bound_range& r, const arena_slot& slot, const recorded_chunk& chunk) {
  if (r.place == bound_range::where::exchanged)
    return {chunk.exchanged.buffer, chunk.exchanged.offset + static_cast<VkDeviceSize>(r.offset)};
  if (r.place != bound_range::where::uploads && r.place != bound_range::where::downloads)
    return resolve(r, slot);
  const allocation& staging = r.place == bound_range::where::uploads ? chunk.upload_staging : chunk.download_staging;
  return {staging.buffer(), static_cast<VkDeviceSize>(staging.offset() + r.offset)};
}

recorded_chunk record_chunk(device_context& context, const pipelines& kernels, const installed_chunk& c,
                            const arena_slot& slot, const staging_tools& staging, const recording_options& options,
                            recording how, std::span<const value_place> caches) {
  recorded_chunk out;
  out.pool = make_command_pool(context, VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT);
  if (context.has(lane::copies_in))
    out.copy_pool = make_command_pool(context, VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT, lane::copies_in);
  out.commands = make_commands(context, out.pool);
  if (c.upload_bytes > 0 && !(options.unified && c.first))
    out.upload_staging = staging.uploads.allocate(c.upload_bytes);
  if (c.download_bytes > 0 && !(options.unified && c.last && all_mapped(c.downloads, slot)))
    out.download_staging = staging.downloads.allocate(c.download_bytes);
  if (c.exchanged_bytes > 0)
    out.exchanged = staging.exchanged.target(dtype::uint8, {c.exchanged_bytes});
  recorder(context, kernels, c, slot, staging.to_peers, caches, how).record_into(out);
  return out;
}

host_place upload_place(const recorded_chunk& r, const installed_transfer& t, const arena_slot& slot) {
  return place_in(r.upload_staging, t, slot);
}

host_place download_place(const recorded_chunk& r, const installed_transfer& t, const arena_slot& slot) {
  return place_in(r.download_staging, t, slot);
}

} // namespace troupe::vulkan

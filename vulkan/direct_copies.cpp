#include "vulkan/direct_copies.hpp"

#include "base/round_up.hpp"

#include <algorithm>

namespace troupe::vulkan {
namespace {

constexpr VkAccessFlags any_access = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT;

using buffer_place = std::pair<VkBuffer, VkDeviceSize>;

/// A copy from where a run's value is to `to`, which is memory of the GPU's own or for staging. Place: a `host_end`, or
/// a `value_place`.
template <class Place>
direct_copy copy_from(const Place& from, const buffer_place& to, int64_t bytes, bool staged) {
  constexpr bool resident = std::is_same_v<Place, value_place>;
  const auto size = static_cast<VkDeviceSize>(bytes);
  return {from.id, resident, resident && !staged, from.buffer, to.first, from.offset, to.second, size};
}

template <class Place>
direct_copy copy_to(const Place& to, const buffer_place& from, int64_t bytes) {
  constexpr bool resident = std::is_same_v<Place, value_place>;
  return {to.id, resident, resident, from.first, to.buffer, from.second, to.offset, static_cast<VkDeviceSize>(bytes)};
}

buffer_place buffer_of(const host_place& place) {
  return {place.memory->buffer(), static_cast<VkDeviceSize>(place.memory->offset() + place.offset)};
}

/// Where the chunk's commands expect an upload.
buffer_place upload_target(const recorded_chunk& r, const installed_transfer& t, const arena_slot& slot) {
  if (t.is_direct())
    return resolve(t.place, slot);
  return buffer_of(upload_place(r, t, slot));
}

/// Where the chunk's commands leave a download.
buffer_place made_at(const recorded_chunk& r, const installed_transfer& t, const arena_slot& slot) {
  if (!t.used_staged)
    return resolve(t.place, slot);
  return buffer_of(download_place(r, t, slot));
}

/// The pieces into which an upload is cut, the first of them split between both ends: the GPU waits for the
/// first, the host for the last. Each costs a submission: sixteen were slower than four. None signals a semaphore or
/// has a barrier to the next, with which each took the GPU 12 µs.
constexpr int64_t piece_count = 4;
/// Bytes of the smallest upload for which that pays.
constexpr int64_t least_bytes_in_pieces = int64_t{8} << 20;

/// Copies of uploads: those that can be made at once, and those whose bytes have to be fetched first, with the number
/// of `run_values::uploads`.
struct upload_copies {
  std::vector<direct_copy> ready;
  std::vector<std::pair<direct_copy, size_t>> unfetched;
};

/// Where a value is, or will be when the peer's work is done that the run then waits for.
host_end promised_source(const tensor& host, const arrival_ref& when, const copy_tools& tools, run_values& values) {
  if (std::optional<host_end> end = tools.imports.source_in_block(host)) {
    tools.set.add_wait(when, values.peers);
    return std::move(*end);
  }
  peers::wait(when); // the host has to copy the bytes
  return tools.imports.source(host);
}

upload_copies uploads_of(const recorded_chunk& r, const installed_chunk& c, const bound_plan& bound,
                         const arena_slot& slot, const copy_tools& tools, run_values& values) {
  const chunk_work& work = values.work;
  upload_copies found;
  for (size_t i = 0; i < c.uploads.size(); ++i) {
    const installed_transfer& t = c.uploads[i];
    if (t.in_place)
      continue;
    const int64_t bytes = t.bytes(bound);
    if (bytes == 0)
      continue;
    if (const device_tensor& resident = tools.own.find(*work.uploads[i])) {
      found.ready.push_back(
          copy_from(tools.own.place_of(resident, values.before), upload_target(r, t, slot), bytes, !t.is_direct()));
    } else if (t.is_direct()) {
      if (const arrival_ref& when = work.uploads[i]->promised_for()) {
        const host_end& end =
            values.uploads.emplace_back(promised_source(work.uploads[i]->host(), when, tools, values));
        found.ready.push_back(copy_from(end, resolve(t.place, slot), bytes, false));
        found.ready.back().by_kernel = true;
        continue;
      }
      const bool large = bytes >= least_bytes_in_pieces && !tools.poison && !work.timed;
      const tensor& host = work.uploads[i]->host();
      host_end& end =
          values.uploads.emplace_back(large ? tools.imports.unfetched_source(host) : tools.imports.source(host));
      const direct_copy copy = copy_from(end, resolve(t.place, slot), bytes, false);
      if (end.is_fetched_later())
        found.unfetched.emplace_back(copy, values.uploads.size() - 1);
      else
        found.ready.push_back(copy);
    }
  }
  return found;
}

/// Takes a copy apart, between whole pages of it.
std::vector<direct_copy> pieces_of(const direct_copy& whole) {
  constexpr int64_t page = 4096;
  const int64_t each = round_up(ceil_div(static_cast<int64_t>(whole.bytes), piece_count), 2 * page);
  std::vector<direct_copy> pieces;
  for (VkDeviceSize begin = 0; begin < whole.bytes; begin += pieces.back().bytes) {
    const auto most = static_cast<VkDeviceSize>(begin == 0 ? each / 2 : each);
    direct_copy& piece = pieces.emplace_back(whole);
    piece.from_offset += begin;
    piece.to_offset += begin;
    piece.bytes = std::min(most, whole.bytes - begin);
  }
  return pieces;
}

std::vector<direct_copy> downloads_of(const recorded_chunk& r, const installed_chunk& c, const bound_plan& bound,
                                      const arena_slot& slot, const copy_tools& tools, run_values& values) {
  const chunk_work& work = values.work;
  std::vector<direct_copy> copies;
  values.downloads.resize(c.downloads.size());
  for (size_t i = 0; i < c.downloads.size(); ++i) {
    const installed_transfer& t = c.downloads[i];
    if (t.in_place)
      continue;
    const int64_t bytes = t.bytes(bound);
    const moved_value& made = *work.downloads[i];
    if (t.is_direct() && made.goes_to_host()) {
      values.downloads[i] = tools.imports.target(t.type, bound.dims[t.value]);
      if (bytes > 0)
        copies.push_back(copy_to(values.downloads[i], resolve(t.place, slot), bytes));
    }
    if (!made.stays())
      continue;
    values.kept.resize(c.downloads.size());
    values.kept[i] = tools.own.make(t.type, bound.dims[t.value]);
    if (bytes > 0)
      copies.push_back(copy_to(tools.own.place_of(values.kept[i], values.before), made_at(r, t, slot), bytes));
  }
  return copies;
}

/// Returns by download what the run promises to peers: all that these read, or nothing, if some of it cannot be.
std::vector<bool> promised_of(const recorded_chunk& r, const installed_chunk& c, const bound_plan& bound,
                              const copy_tools& tools, const run_values& values) {
  if (!tools.set.available() || tools.set.own()->is_lost())
    return {};
  std::vector<bool> promised(c.downloads.size());
  int64_t bytes = 0;
  for (size_t i = 0; i < c.downloads.size(); ++i) {
    const installed_transfer& t = c.downloads[i];
    const moved_value& made = *values.work.downloads[i];
    if (!made.may_be_promised())
      continue;
    const bool goes_straight = t.exchanged ? r.exchanged.target().defined()
                                           : t.is_direct() && !t.in_place && values.downloads[i].target().defined();
    bytes += t.bytes(bound);
    if (!made.goes_to_host() || !goes_straight || bytes > most_promised_bytes)
      return {};
    promised[i] = true;
  }
  return bytes > 0 ? promised : std::vector<bool>();
}

/// Bytes that copies move to or from the host's memory.
int64_t host_bytes(const std::vector<direct_copy>& copies) {
  VkDeviceSize sum = 0;
  for (const direct_copy& each : copies)
    sum += each.resident ? 0 : each.bytes;
  return static_cast<int64_t>(sum);
}

/// What copies in a lane are made of: copy commands, and in the lane for work, whose queue computes, a kernel.
struct copy_ways {
  row_copier* inside = nullptr;
  VkPipelineStageFlags stages = VK_PIPELINE_STAGE_TRANSFER_BIT;
  VkAccessFlags reads = VK_ACCESS_TRANSFER_READ_BIT, writes = VK_ACCESS_TRANSFER_WRITE_BIT;
};

copy_ways ways_of(lane on, row_copier& inside) {
  if (on != lane::work)
    return {};
  return {&inside, VK_PIPELINE_STAGE_TRANSFER_BIT | VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
          VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_SHADER_READ_BIT,
          VK_ACCESS_TRANSFER_WRITE_BIT | VK_ACCESS_SHADER_WRITE_BIT};
}

void record_copies(recorded_copies& r, const std::vector<direct_copy>& copies, const copy_ways& ways) {
  std::vector<row_copy> taken;
  for (const direct_copy& each : copies) {
    const VkDescriptorBufferInfo from{each.from, each.from_offset, each.bytes}, to{each.to, each.to_offset, each.bytes};
    if (ways.inside && each.by_kernel && ways.inside->takes(from) && ways.inside->takes(to)) {
      taken.push_back({one_row(static_cast<int64_t>(each.bytes)), from, to});
      continue;
    }
    const VkBufferCopy region{each.from_offset, each.to_offset, each.bytes};
    vkCmdCopyBuffer(r.commands, each.from, each.to, 1, &region);
  }
  r.dispatched = taken.empty() ? dispatched_copies{} : ways.inside->record(r.commands, taken);
}

constexpr uint32_t end_of_copies_out = 3; // see recorded_chunk::copy_timestamps

/// Puts a timestamp after all earlier commands, if the chunk is timed or it is the run's last.
void stamp(const recorded_chunk& r, VkCommandBuffer commands, uint32_t index) {
  if (r.copy_timestamps && (r.timed || index == end_of_copies_out))
    vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, r.copy_timestamps.get(), index);
}

barrier barrier_before_copies(const copy_ways& ways) {
  return {VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT, any_access, ways.stages,
          ways.reads | ways.writes};
}

/// A piece of what a run copies in; a barrier comes before the first and after the last, which is recorded by
/// `record_in`.
void record_piece(recorded_copies& own, const direct_copy& piece, const copy_ways& ways, bool first) {
  begin(own.commands, 0);
  if (first)
    record(own.commands, barrier_before_copies(ways));
  record_copies(own, {piece}, ways);
  end(own.commands);
}

void record_in(const recorded_chunk& r, recorded_copies& own, const std::vector<direct_copy>& copies,
               const copy_ways& ways, const allocation* poisoned) {
  const VkCommandBuffer commands = own.commands;
  begin(commands, 0);
  record(commands, barrier_before_copies(ways));
  if (poisoned) {
    vkCmdFillBuffer(commands, poisoned->buffer(), static_cast<VkDeviceSize>(poisoned->offset()),
                    static_cast<VkDeviceSize>(poisoned->bytes()), UINT32_MAX);
    record(commands, {VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT, ways.stages, ways.writes});
  }
  stamp(r, commands, 0);
  record_copies(own, copies, ways);
  if (!ways.inside) // else the chunk's own commands begin with one
    record(commands, {ways.stages, ways.writes, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, any_access});
  stamp(r, commands, 1);
  end(commands);
}

void record_out(const recorded_chunk& r, recorded_copies& own, const std::vector<direct_copy>& copies,
                const copy_ways& ways) {
  const VkCommandBuffer commands = own.commands;
  begin(commands, 0);
  record(commands, {VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, any_access, ways.stages, ways.reads | ways.writes});
  stamp(r, commands, 2);
  record_copies(own, copies, ways);
  record(commands, {ways.stages, ways.writes, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT});
  stamp(r, commands, end_of_copies_out);
  end(commands);
}

/// Records copies with `record_them`, unless they are what is recorded.
template <class F>
VkCommandBuffer keep_recorded(recorded_copies& r, std::vector<direct_copy> copies, F&& record_them) {
  if (copies != r.recorded) {
    r.recorded.reset(); // if recording fails, what was recorded is gone
    try {
      record_them(r, copies);
    } catch (...) { // it may have begun
      vkResetCommandBuffer(r.commands, 0);
      throw;
    }
    r.recorded = std::move(copies);
  }
  return r.commands;
}

/// The command buffers of a run's copies, recorded where they are not yet.
class copy_recorder {
public:
  copy_recorder(recorded_chunk& r, const copy_tools& tools, const copy_lanes& lanes, const allocation* poisoned)
      : r_(r), tools_(tools), lanes_(lanes), poisoned_(poisoned) {}

  VkCommandBuffer copies_in(std::vector<direct_copy> copies) {
    recorded_copies& own = with_commands(at(r_.copies_in, *lanes_.in), *lanes_.in);
    return keep_recorded(own, std::move(copies), [&](recorded_copies& to, const auto& recorded) {
      record_in(r_, to, recorded, ways_of(*lanes_.in, tools_.inside), poisoned_);
    });
  }

  /// Piece `i` of an upload.
  VkCommandBuffer piece_in(size_t i, const direct_copy& piece) {
    std::vector<recorded_copies>& pieces = at(r_.pieces, *lanes_.in);
    pieces.resize(std::max(pieces.size(), i + 1));
    return keep_recorded(with_commands(pieces[i], *lanes_.in), {piece}, [&](recorded_copies& to, const auto&) {
      record_piece(to, piece, ways_of(*lanes_.in, tools_.inside), i == 0);
    });
  }

  VkCommandBuffer copies_out(std::vector<direct_copy> copies) {
    recorded_copies& own = with_commands(at(r_.copies_out, *lanes_.out), *lanes_.out);
    return keep_recorded(own, std::move(copies), [&](recorded_copies& to, const auto& recorded) {
      record_out(r_, to, recorded, ways_of(*lanes_.out, tools_.inside));
    });
  }

private:
  template <class T>
  static T& at(std::array<T, 2>& by_lane, lane on) {
    return by_lane[on != lane::work];
  }

  recorded_copies& with_commands(recorded_copies& copies, lane on) {
    if (copies.commands == VK_NULL_HANDLE)
      copies.commands = make_commands(tools_.context, on != lane::work ? r_.copy_pool : r_.pool);
    return copies;
  }

  recorded_chunk& r_;
  const copy_tools& tools_;
  const copy_lanes lanes_;
  const allocation* const poisoned_;
};

/// Returns the timestamp that a run ends with, unless it resets it first: until then it would be the last run's.
end_stamp end_of(const device_context& context, const recorded_chunk& r, const copy_lanes& lanes) {
  if (!context.facts().host_query_reset)
    return {};
  return lanes.out ? end_stamp{r.copy_timestamps.get(), end_of_copies_out}
                   : end_stamp{r.timestamps.get(), r.timestamp_count - 1};
}

} // namespace

copy_lanes choose_lanes(const copy_needs& needs, const device_context& context, const meanwhile& busy) {
  const auto choose = [&](bool any, int64_t bytes, lane own, bool work) -> std::optional<lane> {
    if (!any)
      return std::nullopt;
    return context.has(own) && work && bytes >= copies_beside_bytes ? own : lane::work;
  };
  // What made a value that stays is ordered in the lane for work only.
  const bool in_order = needs.reads_residents || needs.reads_promised;
  return {choose(needs.in, in_order ? 0 : needs.bytes_in, lane::copies_in, busy.in),
          choose(needs.out, needs.promises ? 0 : needs.bytes_out, lane::copies_out, busy.out)};
}

chunk_commands prepare_copies(recorded_chunk& r, const installed_chunk& c, const bound_plan& bound,
                              const arena_slot& slot, const copy_tools& tools, run_values& values) {
  upload_copies uploads = uploads_of(r, c, bound, slot, tools, values);
  std::vector<direct_copy>& in = uploads.ready;
  std::vector<direct_copy> pieces;
  std::vector<direct_copy> out = downloads_of(r, c, bound, slot, tools, values);
  values.promised = promised_of(r, c, bound, tools, values);
  chunk_commands commands{.work = r.commands};
  for (const auto& [whole, upload] : uploads.unfetched)
    for (const direct_copy& piece : pieces_of(whole)) {
      commands.pieces.push_back({upload, static_cast<int64_t>(piece.from_offset - whole.from_offset + piece.bytes)});
      pieces.push_back(piece);
    }
  const allocation* poisoned = tools.poison && c.first && *slot.arena ? slot.arena : nullptr;
  const auto is_resident = [](const direct_copy& each) { return each.resident; };
  values.lanes = choose_lanes({.in = !in.empty() || !pieces.empty() || poisoned,
                               .out = !out.empty(),
                               .bytes_in = host_bytes(in) + host_bytes(pieces),
                               .bytes_out = host_bytes(out),
                               .reads_residents = std::any_of(in.begin(), in.end(), is_resident),
                               .reads_promised = !values.peers.awaited.empty(),
                               .promises = !values.promised.empty()},
                              tools.context, tools.busy);
  copy_recorder recorder(r, tools, values.lanes, poisoned);
  for (size_t i = 0; i + 1 < pieces.size(); ++i)
    commands.pieces[i].commands = recorder.piece_in(i, pieces[i]);
  if (!pieces.empty())
    in.push_back(pieces.back());
  if (values.lanes.in)
    commands.copies_in = recorder.copies_in(std::move(in));
  if (values.lanes.out)
    commands.copies_out = recorder.copies_out(std::move(out));
  commands.end = end_of(tools.context, r, values.lanes);
  return commands;
}

} // namespace troupe::vulkan

#include "vulkan/chunk_times.hpp"

#include <algorithm>
#include <functional>
#include <unordered_map>

namespace troupe::vulkan {
namespace {

/// A part of a chunk in which values were moved.
struct move_span {
  device_timing::work kind;
  bool direct; // the values that are copied straight, or those that are staged
  int64_t begin_ns, end_ns;
  uint32_t queue = 0;
};

/// Shares a span's time out among its transfers, by their bytes.
void add_transfers(const bound_plan& bound, const std::vector<installed_transfer>& transfers, const move_span& span,
                   std::vector<device_timing>& timings) {
  int64_t all = 0, done = 0;
  const auto moves = [&](const installed_transfer& t) { return t.is_direct() == span.direct && !t.in_place; };
  for (const installed_transfer& t : transfers)
    all += moves(t) ? t.bytes(bound) : 0;
  const auto at = [&](int64_t bytes) {
    const double part = static_cast<double>(bytes) / static_cast<double>(std::max<int64_t>(all, 1));
    return span.begin_ns + static_cast<int64_t>(static_cast<double>(span.end_ns - span.begin_ns) * part);
  };
  for (const installed_transfer& t : transfers) {
    if (!moves(t))
      continue;
    const int64_t bytes = t.bytes(bound);
    timings.push_back({.kind = span.kind,
                       .id = t.value,
                       .queue = span.queue,
                       .begin_ns = at(done),
                       .end_ns = at(done + bytes),
                       .bytes = bytes});
    done += bytes;
  }
}

std::vector<uint64_t> read_ticks(const device_context& context, const query_pool_handle& pool, uint32_t first,
                                 uint32_t count) {
  std::vector<uint64_t> ticks(count);
  check(vkGetQueryPoolResults(context.get(), pool.get(), first, count, ticks.size() * sizeof(uint64_t), ticks.data(),
                              sizeof(uint64_t), VK_QUERY_RESULT_64_BIT),
        "vkGetQueryPoolResults");
  return ticks;
}

/// Shares the time of a launch of several nodes, the last of `timings`, out among them.
void share(const installed_launch& l, std::vector<device_timing>& timings) {
  const device_timing all = timings.back();
  const auto count = static_cast<int64_t>(l.others.size()) + 1;
  const auto at = [&](int64_t i) { return all.begin_ns + (all.end_ns - all.begin_ns) * i / count; };
  for (int64_t i = 1; i < count; ++i) {
    timings.push_back(all);
    timings.back().id = l.others[static_cast<size_t>(i - 1)];
    timings.back().begin_ns = at(i);
    timings.back().end_ns = at(i + 1);
  }
  timings[timings.size() - static_cast<size_t>(count)].end_ns = at(1);
}

void add_nodes(const installed_chunk& c, const std::function<int64_t(size_t)>& at,
               std::vector<device_timing>& timings) {
  std::unordered_map<node_id, size_t> timing_of;
  for (size_t i = 0; i < c.launches.size(); ++i) {
    const installed_launch& l = c.launches[i];
    const auto [entry, is_new] = timing_of.try_emplace(l.call, timings.size());
    if (is_new)
      timings.push_back({.id = l.call, .begin_ns = at(i + 1), .end_ns = at(i + 1), .kernel = l.kernel});
    // Launches of other nodes may be between two of this one: count its own time only.
    timings[entry->second].end_ns += at(i + 2) - at(i + 1);
    if (!l.others.empty())
      share(l, timings);
  }
}

} // namespace

gpu_clock::gpu_clock(const device_context& context)
    : device_(context.get()), period_(context.facts().timestamp_period) {
  const uint32_t bits = context.facts().queues.at(context.family()).timestamp_bits;
  mask_ = bits >= 64 ? UINT64_MAX : (uint64_t{1} << bits) - 1;
  if (context.has_calibrated_timestamps())
    calibrated_ = reinterpret_cast<PFN_vkGetCalibratedTimestampsEXT>(
        vkGetDeviceProcAddr(context.get(), "vkGetCalibratedTimestampsEXT"));
}

int64_t gpu_clock::duration(uint64_t from, uint64_t to) const {
  return static_cast<int64_t>(static_cast<double>((to - from) & mask_) * period_);
}

gpu_clock::anchor gpu_clock::now(uint64_t last_tick) const {
  if (calibrated_) {
    const VkCalibratedTimestampInfoEXT wanted[] = {
        {VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT, nullptr, VK_TIME_DOMAIN_DEVICE_EXT},
        {VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT, nullptr, VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT}};
    uint64_t values[2] = {}, deviation = 0;
    if (calibrated_(device_, 2, wanted, values, &deviation) == VK_SUCCESS)
      return {values[0] & mask_, static_cast<int64_t>(values[1])};
  }
  return {last_tick, now_ns()};
}

int64_t gpu_clock::to_host(const anchor& a, uint64_t tick) const {
  const bool later = ((tick - a.tick) & mask_) <= mask_ / 2;
  return later ? a.ns + duration(a.tick, tick) : a.ns - duration(tick, a.tick);
}

void read_times(const device_context& context, const gpu_clock& clock, const bound_plan& bound,
                const installed_chunk& c, const recorded_chunk& r, const run_values& values, chunk_result& result) {
  using work = device_timing::work;
  const std::vector<uint64_t> ticks = read_ticks(context, r.timestamps, 0, r.timestamp_count);
  result.busy_ns = clock.duration(ticks.front(), ticks.back());
  if (!values.work.timed)
    return;
  const gpu_clock::anchor anchor = clock.now(ticks.back());
  const auto at = [&](size_t i) { return clock.to_host(anchor, ticks[i]); };
  const auto add_copies = [&](const std::vector<installed_transfer>& moved, work kind, std::optional<lane> on,
                              uint32_t first) {
    if (!on || !r.copy_timestamps)
      return;
    const std::vector<uint64_t> ends = read_ticks(context, r.copy_timestamps, first, 2);
    add_transfers(
        bound, moved,
        {kind, true, clock.to_host(anchor, ends[0]), clock.to_host(anchor, ends[1]), static_cast<uint32_t>(*on)},
        result.timings);
  };
  const size_t last = c.launches.size() + 1;
  add_copies(c.uploads, work::upload, values.lanes.in, 0);
  add_transfers(bound, c.uploads, {work::upload, false, at(0), at(1)}, result.timings);
  add_nodes(c, at, result.timings);
  add_transfers(bound, c.downloads, {work::download, false, at(last), at(last + 1)}, result.timings);
  add_copies(c.downloads, work::download, values.lanes.out, 2);
}

} // namespace troupe::vulkan

#include "vulkan/chunk_times.hpp"

#include <algorithm>
#include <unordered_map>

namespace troupe::vulkan {
namespace {

/// Shares the time between two ticks out among transfers, by their bytes.
void add_transfers(const bound_plan& bound, const std::vector<installed_transfer>& transfers, device_timing::work kind,
                   int64_t begin_ns, int64_t end_ns, std::vector<device_timing>& timings) {
  int64_t all = 0, done = 0;
  for (const installed_transfer& t : transfers)
    all += t.bytes(bound);
  const auto at = [&](int64_t bytes) {
    return begin_ns + static_cast<int64_t>(static_cast<double>(end_ns - begin_ns) * static_cast<double>(bytes) /
                                           static_cast<double>(std::max<int64_t>(all, 1)));
  };
  for (const installed_transfer& t : transfers) {
    const int64_t bytes = t.bytes(bound);
    timings.push_back({.kind = kind, .id = t.value, .begin_ns = at(done), .end_ns = at(done + bytes), .bytes = bytes});
    done += bytes;
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
  // The tick lies before the anchor: chunks are complete when they are read.
  return a.ns - duration(tick, a.tick);
}

void read_times(const device_context& context, const gpu_clock& clock, const bound_plan& bound,
                const installed_chunk& c, const recorded_chunk& r, bool timed, chunk_result& result) {
  std::vector<uint64_t> ticks(r.timestamp_count);
  check(vkGetQueryPoolResults(context.get(), r.timestamps.get(), 0, r.timestamp_count, ticks.size() * sizeof(uint64_t),
                              ticks.data(), sizeof(uint64_t), VK_QUERY_RESULT_64_BIT),
        "vkGetQueryPoolResults");
  result.busy_ns = clock.duration(ticks.front(), ticks.back());
  if (!timed)
    return;
  const gpu_clock::anchor anchor = clock.now(ticks.back());
  const auto at = [&](size_t i) { return clock.to_host(anchor, ticks[i]); };
  add_transfers(bound, c.uploads, device_timing::work::upload, at(0), at(1), result.timings);
  std::unordered_map<node_id, size_t> timing_of;
  for (size_t i = 0; i < c.launches.size(); ++i) {
    const installed_launch& l = c.launches[i];
    const auto [entry, is_new] = timing_of.try_emplace(l.call, result.timings.size());
    if (is_new)
      result.timings.push_back({.id = l.call, .begin_ns = at(i + 1), .end_ns = at(i + 1), .kernel = l.kernel});
    // Launches of other nodes may lie between two of this one: count its own time only.
    result.timings[entry->second].end_ns += at(i + 2) - at(i + 1);
  }
  add_transfers(bound, c.downloads, device_timing::work::download, at(c.launches.size() + 1), at(c.launches.size() + 2),
                result.timings);
}

} // namespace troupe::vulkan

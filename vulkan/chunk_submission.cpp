#include "vulkan/chunk_submission.hpp"

namespace troupe::vulkan {
namespace {

/// Below, waiting from queue to queue (some 10 µs) costs more than the overlap saves.
constexpr int64_t aside_bytes = int64_t{1} << 20;

} // namespace

copy_lanes choose_lanes(const chunk_commands& commands, bool has_copy_lane, bool busy) {
  const auto choose = [&](VkCommandBuffer copies, int64_t bytes) -> std::optional<lane> {
    if (copies == VK_NULL_HANDLE)
      return std::nullopt;
    return has_copy_lane && busy && bytes >= aside_bytes ? lane::copies : lane::work;
  };
  // What made a value that stays is ordered in the lane for work only.
  return {choose(commands.copies_in, commands.reads_residents ? 0 : commands.bytes_in),
          choose(commands.copies_out, commands.bytes_out)};
}

void submit_chunk(timeline& queues, const chunk_commands& commands, const copy_lanes& lanes, lane_history& last,
                  completion done) {
  std::vector<VkCommandBuffer> work;
  if (lanes.in == lane::copies)
    last.copies = queues.submit(std::span(&commands.copies_in, 1), nullptr, lane::copies, last.work);
  else if (lanes.in)
    work.push_back(commands.copies_in);
  work.push_back(commands.work);
  if (lanes.out == lane::work)
    work.push_back(commands.copies_out);
  if (lanes.out != lane::copies) {
    last.work = queues.submit(work, std::move(done), lane::work, last.copies);
    return;
  }
  last.work = queues.submit(work, nullptr, lane::work, last.copies);
  last.copies = queues.submit(std::span(&commands.copies_out, 1), std::move(done), lane::copies, last.work);
}

} // namespace troupe::vulkan

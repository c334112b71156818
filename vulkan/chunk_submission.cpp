#include "vulkan/chunk_submission.hpp"

namespace troupe::vulkan {

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

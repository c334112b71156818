#include "vulkan/chunk_submission.hpp"

namespace troupe::vulkan {

void submit_chunk(timeline& queues, const chunk_commands& commands, const copy_lanes& lanes, lane_history& last,
                  const completion& done) {
  std::vector<VkCommandBuffer> work;
  if (lanes.in == lane::copies_in)
    last.in = queues.submit(std::span(&commands.copies_in, 1), nullptr, lane::copies_in, {last.work, last.out});
  else if (lanes.in)
    work.push_back(commands.copies_in);
  work.push_back(commands.work);
  if (lanes.out == lane::work)
    work.push_back(commands.copies_out);
  const bool out_beside = lanes.out == lane::copies_out;
  last.work = queues.submit(work, out_beside ? nullptr : done, lane::work, {last.in, last.out});
  if (out_beside)
    last.out = queues.submit(std::span(&commands.copies_out, 1), done, lane::copies_out, {last.work});
}

} // namespace troupe::vulkan

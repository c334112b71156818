#include "vulkan/chunk_submission.hpp"

namespace troupe::vulkan {
namespace {

/// What copies into a slot wait for in other lanes than theirs, before a chunk of its own is in the history.
std::array<submission, 2> before_copies_in(lane on, const lane_history& slot) {
  if (on == lane::work)
    return {slot.out[1], {}};
  return {slot.work[1], slot.out[2]};
}

constexpr std::array<submission, 2> before_nothing{}; // what was submitted before in the lane has waited

/// Fetches what goes in pieces, and submits the copies of all but the last as soon as their bytes are there.
void submit_pieces(timeline& queues, const chunk_commands& commands, run_values& values, const lane_history& slot) {
  const auto first = commands.pieces.begin(), end = commands.pieces.end();
  auto next = first;
  while (next != end)
    values.uploads.at(next->upload).fetch([&, upload = next->upload](int64_t fetched) {
      for (; next != end && next->upload == upload && next->end <= fetched; ++next) {
        if (next->commands == VK_NULL_HANDLE)
          continue;
        const auto [work, out] = next == first ? before_copies_in(*values.lanes.in, slot) : before_nothing;
        queues.submit_part(std::span(&next->commands, 1), *values.lanes.in, {work, out});
      }
    });
}

} // namespace

void submit_chunk(timeline& queues, const chunk_commands& commands, run_values& values, lane_history& slot,
                  const completion& done) {
  submit_pieces(queues, commands, values, slot);
  const copy_lanes& lanes = values.lanes;
  submission in;
  std::vector<VkCommandBuffer> own;
  if (lanes.in == lane::copies_in) {
    const auto [first, second] = before_copies_in(*lanes.in, slot);
    in = queues.submit(std::span(&commands.copies_in, 1), nullptr, lane::copies_in, {first, second});
  } else if (lanes.in) {
    own.push_back(commands.copies_in);
  }
  own.push_back(commands.work);
  if (lanes.out == lane::work)
    own.push_back(commands.copies_out);
  const bool out_beside = lanes.out == lane::copies_out;
  const submission work = queues.submit(own, out_beside ? nullptr : done, lane::work, {in, slot.out[1]},
                                        out_beside ? end_stamp() : commands.end, values.peers);
  slot.work = {work, slot.work[0]};
  slot.out = {submission{}, slot.out[0], slot.out[1]};
  if (out_beside)
    slot.out[0] = queues.submit(std::span(&commands.copies_out, 1), done, lane::copies_out, {work}, commands.end);
}

} // namespace troupe::vulkan

#include "vulkan/chunk_submission.hpp"

namespace troupe::vulkan {

void submit_pieces(timeline& queues, const chunk_commands& commands, run_values& values, const lane_history& slot) {
  const bool beside = values.lanes.in == lane::copies_in;
  const submission work = beside ? slot.work[1] : submission{}, out = slot.out[beside ? 2 : 1];
  for (size_t i = 0; i < commands.pieces.size(); ++i) {
    const upload_piece& piece = commands.pieces[i];
    values.uploads.at(piece.upload).fill(piece.begin, piece.end);
    if (i < commands.piece_copies.size())
      queues.submit(std::span(&commands.piece_copies[i], 1), nullptr, *values.lanes.in, {work, out});
  }
}

void submit_chunk(timeline& queues, const chunk_commands& commands, const copy_lanes& lanes, lane_history& slot,
                  const completion& done) {
  const auto [work_before, work_two_before] = slot.work;
  const auto [out_before, out_two_before, out_three_before] = slot.out;
  submission in;
  std::vector<VkCommandBuffer> own;
  if (lanes.in == lane::copies_in)
    in =
        queues.submit(std::span(&commands.copies_in, 1), nullptr, lane::copies_in, {work_two_before, out_three_before});
  else if (lanes.in)
    own.push_back(commands.copies_in);
  own.push_back(commands.work);
  if (lanes.out == lane::work)
    own.push_back(commands.copies_out);
  const bool out_beside = lanes.out == lane::copies_out;
  const submission work = queues.submit(own, out_beside ? nullptr : done, lane::work, {in, out_two_before});
  slot.work = {work, work_before};
  slot.out = {submission{}, out_before, out_two_before};
  if (out_beside)
    slot.out[0] = queues.submit(std::span(&commands.copies_out, 1), done, lane::copies_out, {work});
}

} // namespace troupe::vulkan

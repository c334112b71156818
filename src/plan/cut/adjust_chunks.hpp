// Chunk boundaries by predicted time, which rests on measured times if the devices' profiles have some.
//
// Chunks are grown without looking at times (chunks.hpp): as long as possible, ended if a value leaves for another
// device. Two changes may pay:
//   - cut: a GPU that copies beside work reads back what a chunk has made, and gets what its end needs, while it
//     computes. It costs submissions.
//   - join: a chunk and the next one of its device. It saves a submission, and makes a chunk that needs the first one's
//     values wait.
// A change stays if the whole plan is predicted to be faster with it.
#pragma once

#include "plan/plan.hpp"

namespace troupe {

/// Which chunk each node is in; nodes in the order of the chunks.
struct chunk_adjustment {
  std::vector<node_id> order;
  std::vector<uint32_t> chunk_of; // by position in `order`
  std::string remark;             // for people: what was changed, and what it gains
};

/// Returns better boundaries for a plan with these dims, by value; nullopt if the grown ones are as good. Needs the
/// plan's chunks and their waves.
std::optional<chunk_adjustment> adjust_chunks(const plan& p, std::span<const shape> dims);

} // namespace troupe

#include "plan/cut/ready_set.hpp"

namespace troupe {

ready_set::ready_set(const plan& p, completion_mode mode) : plan_(p), mode_(mode) {
  missing_.resize(p.chunks.size());
  states_.resize(p.chunks.size(), state::waiting);
}

void ready_set::start(uint32_t segment, std::vector<chunk_id>& ready) {
  expects(segment < plan_.segment_count, "ready_set::start: no such segment");
  expects(remaining_ == 0, "ready_set::start: the segment before has not finished");
  const chunk_id begin = plan_.segment_begin[segment], end = plan_.segment_begin[segment + 1];
  remaining_ = end - begin;
  for (chunk_id c = begin; c < end; ++c) {
    missing_[c] = plan_.chunks[c].initial_dependency_count;
    states_[c] = state::waiting;
    if (missing_[c] == 0) {
      states_[c] = state::ready;
      ready.push_back(c);
    }
  }
}

void ready_set::advance(chunk_id chunk, state from, state to) {
  expects(chunk < states_.size() && states_[chunk] == from, "ready_set: a chunk is sent or completed out of order");
  states_[chunk] = to;
}

void ready_set::release(chunk_id chunk, bool same_device, std::vector<chunk_id>& ready) {
  const auto& chunks = plan_.chunks;
  for (chunk_id next : chunks[chunk].dependents) {
    if ((chunks[next].device == chunks[chunk].device) != same_device)
      continue;
    if (--missing_[next] == 0) {
      advance(next, state::waiting, state::ready);
      ready.push_back(next);
    }
  }
}

void ready_set::sent(chunk_id chunk, std::vector<chunk_id>& ready) {
  advance(chunk, state::ready, state::sent);
  if (mode_ == completion_mode::device)
    release(chunk, true, ready);
}

void ready_set::completed(chunk_id chunk, std::vector<chunk_id>& ready) {
  advance(chunk, state::sent, state::complete);
  --remaining_;
  release(chunk, false, ready);
  if (mode_ == completion_mode::host)
    release(chunk, true, ready);
}

} // namespace troupe

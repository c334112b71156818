#include "plan/cut/ready_set.hpp"

#include "plan/cut/transfers.hpp"

#include <algorithm>

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

ready_set::reader ready_set::reader_of(chunk_id chunk, chunk_id next) const {
  if (plan_.chunks[chunk].device == plan_.chunks[next].device)
    return reader::own;
  return is_peer_edge(plan_, chunk, next) ? reader::peer : reader::other;
}

void ready_set::release(chunk_id chunk, reader which, std::vector<chunk_id>& ready) {
  for (chunk_id next : plan_.chunks[chunk].dependents)
    if (reader_of(chunk, next) == which && --missing_[next] == 0) {
      advance(next, state::waiting, state::ready);
      ready.push_back(next);
    }
}

void ready_set::sent(chunk_id chunk, std::vector<chunk_id>& ready, bool peers_wait) {
  const bool device_waits = mode_ == completion_mode::device;
  advance(chunk, state::ready, device_waits && peers_wait ? state::sent_to_peers : state::sent);
  if (device_waits)
    release(chunk, reader::own, ready);
  if (device_waits && peers_wait)
    release(chunk, reader::peer, ready);
}

void ready_set::completed(chunk_id chunk, std::vector<chunk_id>& ready) {
  const bool peers_wait = chunk < states_.size() && states_[chunk] == state::sent_to_peers;
  advance(chunk, peers_wait ? state::sent_to_peers : state::sent, state::complete);
  --remaining_;
  release(chunk, reader::other, ready);
  if (!peers_wait)
    release(chunk, reader::peer, ready);
  if (mode_ == completion_mode::host)
    release(chunk, reader::own, ready);
}

bool ready_set::awaits_peers(chunk_id chunk) const {
  return std::ranges::any_of(plan_.chunks[chunk].predecessors, [&](chunk_id before) {
    return states_[before] != state::complete && plan_.chunks[before].device != plan_.chunks[chunk].device;
  });
}

bool ready_set::awaits_others(chunk_id chunk) const {
  const std::vector<chunk_id>& before = plan_.chunks[chunk].predecessors;
  return std::any_of(before.begin(), before.end(), [&](chunk_id b) { return states_[b] != state::complete; });
}

} // namespace troupe

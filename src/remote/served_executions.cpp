#include "remote/served_executions.hpp"

#include "base/error.hpp"

#include <fmt/format.h>

namespace troupe::remote {
namespace {

/// A session has fewer executions than this on a worker that run, or that have failed and are not ended.
constexpr size_t max_places = size_t{1} << 16;

} // namespace

served_executions::order::order(bound_plan_ptr b, device_index d, uint32_t s)
    : bound(std::move(b)), self(d), slot(s), ready(*bound->source) {
  ready.start(bound->segment, made_ready);
  pass_others();
}

void served_executions::order::pass_others() {
  const std::vector<chunk>& chunks = bound->source->chunks;
  for (size_t i = 0; i < made_ready.size(); ++i) { // grows meanwhile
    const chunk_id other = made_ready[i];
    if (chunks[other].device == self)
      continue;
    ready.sent(other, made_ready);
    ready.completed(other, made_ready);
  }
  made_ready.clear();
}

served_executions::stop_flag served_executions::begin(const place& at, const bound_plan_ptr& bound, device_index self,
                                                      chunk_id chunk, uint32_t slot) {
  place_state& p = add(at);
  const stop_flag& stop = executions_.at(at.execution).stop;
  if (!stop->load()) {
    check_order(at, p, bound, self, slot);
    if (!p.running->ready.is_ready(chunk))
      fail(errc::invalid_input, "chunk {} of execution {} is not to run now", chunk, at.execution);
    p.running->ready.sent(chunk, p.running->made_ready);
    p.running->pass_others();
  }
  ++p.unfinished;
  return stop;
}

served_executions::place_state& served_executions::add(const place& at) {
  const auto [found, is_new] = places_.try_emplace(at);
  if (is_new)
    ++executions_[at.execution].places;
  if (places_.size() > max_places)
    fail(errc::invalid_input, "more than {} executions have not been ended", max_places);
  return found->second;
}

/// Begins a segment, if none runs, or makes sure that it is the one that does.
void served_executions::check_order(const place& at, place_state& p, const bound_plan_ptr& bound, device_index self,
                                    uint32_t slot) {
  if (p.running) {
    if (p.running->bound != bound || p.running->self != self || p.running->slot != slot)
      fail(errc::invalid_input, "execution {} has not ended in its bound plan and slot", at.execution);
    return;
  }
  const size_t chunks = bound->source->chunks.size();
  if (chunks > most_chunks_ - chunks_)
    fail(errc::invalid_input, "executions of more than {} chunks are to run at a time", most_chunks_);
  const auto [owner, is_free] = slots_.try_emplace({at.device, bound->layout->id, slot}, at.execution);
  if (!is_free)
    fail(errc::invalid_input, "execution {} is given slot {}, which execution {} has", at.execution, slot,
         owner->second);
  p.running = std::make_unique<order>(bound, self, slot);
  chunks_ += chunks;
}

bool served_executions::finish(const place& at, chunk_id chunk, bool ok) {
  const auto found = places_.find(at);
  expects(found != places_.end() && found->second.unfinished > 0, "a chunk has ended that had not begun");
  place_state& p = found->second;
  --p.unfinished;
  if (ok && p.running) {
    p.running->ready.completed(chunk, p.running->made_ready);
    p.running->pass_others();
  }
  const bool is_stopped = executions_.at(at.execution).stop->load();
  const bool has_failed = !ok && !is_stopped;
  if (p.unfinished == 0 && p.running && (is_stopped || p.running->ready.finished()))
    leave_slot(at, p);
  if (!p.running && !is_stopped)
    forget(found);
  return has_failed;
}

bool served_executions::stop(uint64_t execution) {
  const auto found = executions_.find(execution);
  if (found == executions_.end() || found->second.stop->exchange(true))
    return false;
  for (auto at = places_.lower_bound({execution, 0}); at != places_.end() && at->first.execution == execution; ++at)
    if (at->second.unfinished == 0 && at->second.running)
      leave_slot(at->first, at->second);
  return true;
}

bool served_executions::end(const place& at) {
  const auto found = places_.find(at);
  if (found == places_.end())
    return false;
  if (found->second.unfinished > 0)
    fail(errc::invalid_input, "execution {} is ended, but {} chunks of it have not", at.execution,
         found->second.unfinished);
  if (found->second.running)
    leave_slot(at, found->second);
  forget(found);
  return true;
}

void served_executions::stop_all() {
  std::vector<uint64_t> all;
  for (const auto& [execution, e] : executions_)
    all.push_back(execution);
  for (const uint64_t execution : all)
    stop(execution);
}

std::vector<served_executions::place> served_executions::take_idle() {
  std::vector<place> idle;
  for (const auto& [at, p] : places_)
    if (p.unfinished == 0)
      idle.push_back(at);
  for (const place& at : idle)
    end(at);
  return idle;
}

void served_executions::leave_slot(const place& at, place_state& p) {
  slots_.erase({at.device, p.running->bound->layout->id, p.running->slot});
  chunks_ -= p.running->bound->source->chunks.size();
  p.running = nullptr;
}

void served_executions::forget(std::map<place, place_state>::iterator found) {
  const auto e = executions_.find(found->first.execution);
  if (--e->second.places == 0)
    executions_.erase(e);
  places_.erase(found);
}

} // namespace troupe::remote

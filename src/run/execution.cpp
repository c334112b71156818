#include "run/execution.hpp"

#include <algorithm>

namespace troupe {
namespace {

execution_id next_id() {
  static std::atomic<execution_id> last{0};
  return ++last;
}

} // namespace

execution::execution(run_request_ptr request, prepared_run prepared, completion_mode mode,
                     std::optional<chunk_place> purpose)
    : id_(next_id()), request_(std::move(request)), prepared_(std::move(prepared)), purpose_(purpose),
      ready_(source(), mode), values_(*planned(), mode == completion_mode::device),
      costs_(*planned(), request_->options.trace), in_flight_(source()) {}

execution::execution(run_request_ptr request, prepared_run prepared, completion_mode mode)
    : execution(std::move(request), std::move(prepared), mode, std::nullopt) {
  values_.give(*request_);
  values_.keep(*request_);
}

execution::execution(prepared_run prepared, std::shared_ptr<const std::vector<carried_pair>> pairs,
                     completion_mode mode)
    : execution(
          std::make_shared<run_request>(named_tensors(), run_options(), carried_values{.pairs = std::move(pairs)}),
          std::move(prepared), mode, std::nullopt) {
  values_.keep(*request_);
}

execution::execution(run_request_ptr request, prepared_run prepared, completion_mode mode, const chunk_place& purpose,
                     std::vector<tensor> inputs)
    : execution(std::move(request), std::move(prepared), mode, purpose) {
  values_.give(std::move(inputs));
}

void execution::start(bound_plan_ptr bound, uint32_t slot) {
  bound_ = std::move(bound);
  slot_ = slot;
  costs_.begin(*bound_->layout);
  values_.start(*bound_);
  ready_.start(bound_->segment, ready_chunks_);
}

std::optional<chunk_work> execution::take(bool peers_wait) {
  if (next_ == ready_chunks_.size()) {
    ready_chunks_.clear();
    next_ = 0;
    return std::nullopt;
  }
  const chunk_id id = ready_chunks_[next_++];
  const chunk& c = source().chunks[id];
  chunk_work work{
      .bound_plan = bound_->id, .chunk = id, .execution = id_, .slot = slot_, .timed = costs_.traced(), .stop = stop_};
  costs_.sent(id);
  work.uploads = values_.uploads_of(c);
  work.downloads = values_.downloads_of(c);
  ready_.sent(id, ready_chunks_, peers_wait && values_.let_peers_wait(c, *bound_));
  in_flight_.add(id); // whatever throws above, it is not sent
  return work;
}

void execution::give_inputs(run_request_ptr request, uint32_t slot, std::vector<device_batch>& works) {
  request_ = std::move(request);
  slot_ = slot;
  values_.give(*request_);
  for (auto& [device, chunks] : works)
    for (chunk_work& work : chunks.works) {
      work.slot = slot_;
      values_.give(source().chunks[work.chunk], work);
    }
}

void execution::look_ahead(const chunk_begun& begun) {
  if (in_flight_.contains(begun.chunk) && !values_.has_handed_on())
    values_.look_ahead(source().chunks[begun.chunk], begun.made, *bound_);
}

void execution::complete(chunk_id id, chunk_result& result) {
  // A chunk that it depends on, perhaps a peer's, has not ended. If the peer is lost, this result is wrong, and only
  // the peer's answer tells that.
  if (ready_.awaits_others(id)) {
    early_.emplace(id, std::move(result));
    return;
  }
  count_as_complete(id, result);
  const auto is_next = [this](const auto& ended) { return !ready_.awaits_others(ended.first); };
  for (auto next = std::ranges::find_if(early_, is_next); next != early_.end();
       next = std::ranges::find_if(early_, is_next)) {
    auto ended = early_.extract(next);
    count_as_complete(ended.key(), ended.mapped());
  }
}

void execution::count_as_complete(chunk_id id, chunk_result& result) {
  values_.complete(source().chunks[id], *bound_, prepared_.symbols);
  costs_.ended(id, result);
  ready_.completed(id, ready_chunks_);
}

std::string describe_chunk(const plan& source, chunk_id chunk) {
  const std::vector<node_id>& ids = source.chunks[chunk].nodes;
  const auto name = [&](node_id n) { return describe(source.program->nodes[n]); };
  std::string text = fmt::format("chunk {}", chunk);
  if (ids.size() == 1)
    text += fmt::format(" ({})", name(ids[0]));
  else if (!ids.empty())
    text += fmt::format(" ({} nodes, {} to {})", ids.size(), name(ids.front()), name(ids.back()));
  return text;
}

} // namespace troupe

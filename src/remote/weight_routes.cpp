#include "remote/weight_routes.hpp"

#include <algorithm>

namespace troupe::remote {
namespace {

template <class Answers>
void perform(const Answers& later) {
  for (const auto& [tell, source] : later)
    tell(source);
}

} // namespace

weight_routes::worker_id weight_routes::join(std::string address, teller tell) {
  const std::lock_guard lock(mutex_);
  workers_[++last_] = {std::move(address), std::move(tell), {}};
  return last_;
}

void weight_routes::leave(worker_id w) {
  answers later;
  {
    const std::lock_guard lock(mutex_);
    if (workers_.erase(w) == 0)
      return;
    for (auto& [id, other] : workers_)
      other.avoided.erase(w);
    for (auto& [content, s] : weights_) {
      s.keys.erase(w);
      s.transfers.erase(w); // those from it fail by themselves
      std::erase(s.waiting, w);
      route(content, s, later);
    }
  }
  perform(later);
}

void weight_routes::open(const hash128& content) {
  const std::lock_guard lock(mutex_);
  ++weights_[content].opened;
}

void weight_routes::close(const hash128& content) {
  answers later;
  {
    const std::lock_guard lock(mutex_);
    const auto found = weights_.find(content);
    if (found == weights_.end() || --found->second.opened > 0)
      return;
    for (worker_id w : found->second.waiting) // it hears that there is none any more
      give(content, found->second, this_process, w, later);
    weights_.erase(found);
  }
  perform(later);
}

void weight_routes::want(worker_id w, const want_weight& wish) {
  answers later;
  {
    const std::lock_guard lock(mutex_);
    const auto self = workers_.find(w);
    if (self == workers_.end())
      return;
    const auto found = weights_.find(wish.content);
    if (found == weights_.end()) {
      later.push_back({self->second.tell, {.content = wish.content}});
    } else {
      weight_state& s = found->second;
      take_fault(s, w, wish.fault);
      if (wish.fault != weight_fault::none)
        give(wish.content, s, this_process, w, later);
      else if (std::find(s.waiting.begin(), s.waiting.end(), w) == s.waiting.end())
        s.waiting.push_back(w);
      route(wish.content, s, later);
    }
  }
  perform(later);
}

/// Ends the transfer that a worker had before it asked.
void weight_routes::take_fault(weight_state& s, worker_id w, weight_fault fault) {
  const auto ended = s.transfers.extract(w);
  if (ended.empty() || !workers_.contains(ended.mapped()))
    return;
  if (fault == weight_fault::refused)
    s.keys.erase(ended.mapped());
  else if (fault == weight_fault::useless)
    workers_.at(w).avoided.insert(ended.mapped());
}

void weight_routes::have(worker_id w, const have_weights& those) {
  answers later;
  {
    const std::lock_guard lock(mutex_);
    if (!workers_.contains(w))
      return;
    for (const offered_weight& offered : those.weights) {
      const auto found = weights_.find(offered.content);
      if (found == weights_.end())
        continue;
      weight_state& s = found->second;
      s.keys[w] = offered.key;
      s.transfers.erase(w);
      std::erase(s.waiting, w);
      route(offered.content, s, later);
    }
  }
  perform(later);
}

void weight_routes::give_up(worker_id w, const hash128& content) {
  answers later;
  {
    const std::lock_guard lock(mutex_);
    const auto found = weights_.find(content);
    if (found == weights_.end())
      return;
    found->second.transfers.erase(w);
    std::erase(found->second.waiting, w);
    route(content, found->second, later);
  }
  perform(later);
}

/// Tells those who wait for a weight where it is, if there is a source for them now.
void weight_routes::route(const hash128& content, weight_state& s, answers& later) const {
  std::vector<worker_id> still;
  for (worker_id w : std::exchange(s.waiting, {}))
    if (const auto source = source_for(s, w))
      give(content, s, *source, w, later);
    else
      still.push_back(w);
  s.waiting = std::move(still);
}

/// Returns nothing as long as a transfer is going on whose end brings a source.
std::optional<weight_routes::worker_id> weight_routes::source_for(const weight_state& s, worker_id w) const {
  const auto is_useful = [&](worker_id other) { return other != w && !workers_.at(w).avoided.contains(other); };
  bool is_coming = std::any_of(s.transfers.begin(), s.transfers.end(),
                               [&](const auto& transfer) { return is_useful(transfer.first); });
  for (const auto& [holder, key] : s.keys)
    if (is_useful(holder)) {
      const auto reads_it = [id = holder](const auto& transfer) { return transfer.second == id; };
      if (std::none_of(s.transfers.begin(), s.transfers.end(), reads_it))
        return holder;
      is_coming = true;
    }
  return is_coming ? std::nullopt : std::optional(this_process);
}

void weight_routes::give(const hash128& content, weight_state& s, worker_id from, worker_id to, answers& later) const {
  s.transfers[to] = from;
  weight_source told{.content = content};
  if (from != this_process) {
    told.peer = workers_.at(from).address;
    told.key = s.keys.at(from);
  }
  later.emplace_back(workers_.at(to).tell, std::move(told));
}

} // namespace troupe::remote

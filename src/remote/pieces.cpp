#include "remote/pieces.hpp"

#include <algorithm>
#include <cstring>

namespace troupe::remote {

void piece_source::offer(const hash128& key, tensor bytes) {
  expects(bytes.defined() && bytes.type() != dtype::string, "only bytes can be pulled");
  const std::lock_guard lock(mutex_);
  entry& e = entries_[key];
  e.bytes = std::move(bytes);
  ++e.offers;
}

bool piece_source::offer_new(const hash128& key, tensor bytes) {
  expects(bytes.defined() && bytes.type() != dtype::string, "only bytes can be pulled");
  const std::lock_guard lock(mutex_);
  return entries_.try_emplace(key, entry{std::move(bytes), 1}).second;
}

void piece_source::withdraw(const hash128& key) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  if (found != entries_.end() && --found->second.offers == 0)
    entries_.erase(found);
}

tensor piece_source::find(const hash128& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  return found == entries_.end() ? tensor() : found->second.bytes;
}

size_t piece_source::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

piece piece_source::answer(const piece_request& wanted) const {
  tensor bytes = find(wanted.key);
  const int64_t total = bytes.defined() ? bytes.bytes() : 0;
  // The numbers are the other end's: sums of them could overflow.
  const bool inside = wanted.offset >= 0 && wanted.bytes > 0 && wanted.bytes <= largest_piece &&
                      wanted.offset <= total && wanted.bytes <= total - wanted.offset;
  if (!inside)
    return {.request = wanted.request, .gone = true, .bytes = {}, .owner = {}};
  const auto part = std::span(bytes.data<std::byte>() + wanted.offset, static_cast<size_t>(wanted.bytes));
  return {.request = wanted.request, .gone = false, .bytes = part, .owner = std::move(bytes)};
}

piece_puller::piece_puller(sender send, clock now) : send_(std::move(send)), now_(std::move(now)) {}

piece_puller::~piece_puller() {
  close("the link has been given up");
}

piece_puller::pull_id piece_puller::pull(const hash128& key, tensor destination, done on_done, progress on_progress) {
  expects(destination.defined() && destination.type() != dtype::string, "only bytes can be pulled");
  auto made = std::make_shared<pull_state>();
  made->key = key;
  made->total = destination.bytes();
  made->destination = std::move(destination);
  made->on_done = std::move(on_done);
  made->on_progress = std::move(on_progress);
  calls later;
  std::unique_lock lock(mutex_);
  const pull_id id = ++last_pull_;
  if (closed_ || made->total == 0) {
    later.ended.emplace_back(std::move(made), closed_.value_or(failure{}));
  } else {
    pulls_.emplace(id, std::move(made));
    unasked_.push_back(id);
    ask(later);
  }
  lock.unlock();
  perform(later);
  return id;
}

/// Asks for pieces of each pull in turns while the link has room.
void piece_puller::ask(calls& later) {
  while (!unasked_.empty()) {
    const pull_id id = unasked_.front();
    const auto found = pulls_.find(id);
    if (found == pulls_.end()) {
      unasked_.pop_front();
      continue;
    }
    pull_state& p = *found->second;
    const int64_t bytes = std::min(rate_.piece_bytes(), p.total - p.asked);
    const bool room = outstanding_.size() < piece_window && outstanding_bytes_ + bytes <= rate_.room();
    if (!room && !outstanding_.empty())
      return;
    const uint64_t request = ++last_request_;
    outstanding_.emplace(request, outstanding{id, p.asked, bytes, rate_.ask(now_())});
    outstanding_bytes_ += bytes;
    later.requests.push_back({request, p.key, p.asked, bytes});
    p.asked += bytes;
    unasked_.pop_front();
    if (p.asked < p.total)
      unasked_.push_back(id);
  }
}

void piece_puller::on_piece(const piece& came) {
  calls later;
  std::unique_lock lock(mutex_);
  const auto found = outstanding_.find(came.request);
  if (found == outstanding_.end())
    return;
  const outstanding part = found->second;
  outstanding_.erase(found);
  outstanding_bytes_ -= part.bytes;
  if (!came.gone)
    rate_.receive(part.asked, static_cast<int64_t>(came.bytes.size()), !unasked_.empty(), now_());
  ask(later); // before the copy, so that the link does not wait for it
  lock.unlock();
  perform(later);
  later = {};
  lock.lock();
  const auto waiting = pulls_.find(part.pull);
  if (waiting == pulls_.end())
    return;
  const pull_ptr p = waiting->second;
  const bool more = received(lock, came, part, later);
  const int64_t have = p->came;
  lock.unlock();
  if (more && p->on_progress)
    p->on_progress(have, p->total);
  perform(later);
}

/// Copies a piece to its place, without the lock; returns whether its pull has come further, and ends it if that is
/// over.
bool piece_puller::received(std::unique_lock<std::mutex>& lock, const piece& came, const outstanding& part,
                            calls& later) {
  const pull_ptr p = pulls_.at(part.pull);
  if (came.gone) {
    end(lock, part.pull, {errc::device_failed, "the other host does not have the tensor any more"}, later);
    return false;
  }
  if (came.bytes.size() != static_cast<size_t>(part.bytes)) {
    end(lock, part.pull,
        {errc::device_failed,
         fmt::format("the other host sent {} bytes of a tensor instead of {}", came.bytes.size(), part.bytes)},
        later);
    return false;
  }
  ++p->writers;
  lock.unlock();
  std::memcpy(p->destination.mutable_data<std::byte>() + part.offset, came.bytes.data(), came.bytes.size());
  lock.lock();
  --p->writers;
  written_.notify_all();
  if (!pulls_.contains(part.pull)) // cancelled meanwhile
    return false;
  p->came += part.bytes;
  if (p->came == p->total)
    end(lock, part.pull, {}, later);
  return true;
}

/// Takes a pull out; afterwards its destination is not written any more.
void piece_puller::end(std::unique_lock<std::mutex>& lock, pull_id id, failure why, calls& later) {
  const auto found = pulls_.find(id);
  if (found == pulls_.end())
    return;
  const pull_ptr p = found->second;
  pulls_.erase(found);
  written_.wait(lock, [&] { return p->writers == 0; });
  later.ended.emplace_back(p, std::move(why));
}

void piece_puller::cancel(pull_id id) {
  calls later;
  std::unique_lock lock(mutex_);
  end(lock, id, {errc::cancelled, "the transfer was cancelled"}, later);
  lock.unlock();
  perform(later);
}

void piece_puller::close(const std::string& why) {
  calls later;
  std::unique_lock lock(mutex_);
  if (!closed_)
    closed_ = failure{errc::device_lost, why.empty() ? "the link has ended" : why};
  while (!pulls_.empty())
    end(lock, pulls_.begin()->first, *closed_, later);
  lock.unlock();
  perform(later);
}

void piece_puller::perform(const calls& later) {
  for (const piece_request& each : later.requests)
    send_(each);
  for (const auto& [p, why] : later.ended)
    p->on_done(why);
}

double piece_puller::bytes_per_second() const {
  const std::lock_guard lock(mutex_);
  return rate_.bytes_per_second();
}

int64_t piece_puller::piece_bytes() const {
  const std::lock_guard lock(mutex_);
  return rate_.piece_bytes();
}

} // namespace troupe::remote

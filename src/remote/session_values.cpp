#include "remote/session_values.hpp"

namespace troupe::remote {

value_ref session_values::find(const hash128& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end())
    fail(errc::invalid_input, "a value that is not kept here is asked for");
  return found->second.value;
}

sent_value session_values::keep(const wanted_value& wanted, const value_ref& made, int64_t room, held_memory held) {
  sent_value value{.from = origin::kept, .type = made->type(), .dims = made->dims(), .key = wanted.key};
  const tensor blob = made->has_host() ? to_blob(made->host()) : tensor();
  value.size = blob.defined() ? blob.bytes() : 0;
  if (blob.defined() && wanted.send)
    value.from = value.size <= std::min(message_bytes, room) ? origin::message : origin::sender;
  if (value.from == origin::message)
    value.bytes.assign(blob.data<uint8_t>(), blob.data<uint8_t>() + blob.bytes());
  // A short value for the session's process alone is nothing to keep: nothing asks for it again.
  if (value.from != origin::message || wanted.home != destination::host) {
    if (!held)
      held = line_->room().hold(blob.defined() ? blob.bytes() : bytes_of(made->type(), volume(made->dims())));
    add(wanted.key, made, blob, std::move(held));
  }
  return value;
}

std::vector<sent_value> session_values::keep_all(std::span<const wanted_value> wanted,
                                                 std::span<const value_ref> made) {
  std::vector<sent_value> values;
  int64_t room = inline_bytes;
  try {
    for (size_t i = 0; i < wanted.size(); ++i) {
      values.push_back(keep(wanted[i], made[i], room));
      room -= static_cast<int64_t>(values.back().bytes.size());
    }
  } catch (...) {
    for (const sent_value& value : values)
      forget(value.key);
    throw;
  }
  return values;
}

void session_values::add(const hash128& key, value_ref value, const tensor& blob, held_memory held) {
  const std::lock_guard lock(mutex_);
  if (ended_)
    return;
  line_->budget().check_kept(entries_.size());
  const auto [entry, is_new] = entries_.try_emplace(key);
  // The key may be one that another session has told this one: its value stays what it is.
  if (is_new && blob.defined())
    entry->second.is_offered = shared_->offers.offer_new(key, blob);
  if (!is_new || (blob.defined() && !entry->second.is_offered)) {
    if (is_new)
      entries_.erase(entry);
    fail(errc::invalid_input, "a value is to be kept under a key that another value has");
  }
  entry->second.value = std::move(value);
  entry->second.held = std::move(held);
}

void session_values::forget(const hash128& key) {
  kept_entry gone; // goes when the lock is free
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.extract(key);
    if (found.empty())
      return;
    gone = std::move(found.mapped());
  }
  if (gone.is_offered)
    shared_->offers.withdraw(key);
}

void session_values::end() {
  decltype(entries_) all;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    all.swap(entries_);
  }
  for (const auto& [key, entry] : all)
    if (entry.is_offered)
      shared_->offers.withdraw(key);
}

} // namespace troupe::remote

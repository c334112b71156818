#include "remote/conversation.hpp"

#include "remote/weakly.hpp"

namespace troupe::remote {

/// A chunk that the host has been sent.
struct sent_chunk {
  chunk_work work; // keeps what it reads
  bound_plan_ptr bound;
  std::vector<wanted_value> wanted;         // by download
  std::vector<hash128> offered;             // to be withdrawn after it
  int64_t sent_ns = 0, room = inline_bytes; // the room is for short values in its message
  chunk_done done;
  // When the host has answered:
  chunk_result result;
  size_t missing = 0; // downloads that are still being pulled
  bool answered = false;
};

namespace {

/// The longest that a caller waits for counters: they are for people.
constexpr std::chrono::seconds stats_timeout(5);

/// A value in the memory of a device of another host.
class remote_resident final : public resident {
public:
  remote_resident(std::shared_ptr<const kept_value> where, const device_info& device)
      : resident(where->type(), where->dims(), device.name, device.incarnation), where_(std::move(where)) {}

  const kept_value& where() const { return *where_; }

private:
  const std::shared_ptr<const kept_value> where_;
};

/// Drops timings of nodes and values that the program does not have: a hostile host may name any.
void drop_unknown(std::vector<device_timing>& timings, const graph& program) {
  std::erase_if(timings, [&](const device_timing& t) {
    const size_t count = t.kind == device_timing::work::node ? program.nodes.size() : program.values.size();
    return t.id < 0 || static_cast<size_t>(t.id) >= count;
  });
}

} // namespace

void conversation::begin() {
  host_->news().listen(index_, {.on_chunk = weakly(weak_from_this(), &conversation::on_chunk),
                                .on_installed = weakly(weak_from_this(), &conversation::on_installed),
                                .on_progress = weakly(weak_from_this(), &conversation::on_loading)});
  host_->on_end(weakly(weak_from_this(), &conversation::on_end));
}

void conversation::install(const bound_plan_ptr& bound, device_index self) {
  const offered_plan offered = host_->offer(bound->source);
  {
    const std::lock_guard lock(mutex_);
    installing_[bound->id]; // before the install is sent: its answer may come at once
  }
  host_->send(remote::install{.device = index_,
                              .plan = offered.id,
                              .encoded = offered.encoded,
                              .bound_plan = bound->id,
                              .binding = wire::encode_binding(*bound),
                              .self = self});
  std::unique_lock lock(mutex_);
  installed_.wait(lock, [&] { return ended_ || installing_.at(bound->id); });
  const failure why = ended_ ? *ended_ : *installing_.at(bound->id);
  installing_.erase(bound->id);
  if (why.failed())
    fail(why.code, "{}", why.message);
  bound_[bound->id] = bound;
}

void conversation::retire(uint64_t bound_plan) {
  {
    const std::lock_guard lock(mutex_);
    bound_.erase(bound_plan);
  }
  host_->send(remote::retire{index_, bound_plan});
}

void conversation::submit(chunk_work work, chunk_done done) {
  const auto chunk = std::make_shared<sent_chunk>();
  chunk->work = std::move(work);
  chunk->done = std::move(done);
  chunk->sent_ns = now_ns();
  if (chunk->work.stop && chunk->work.stop->load())
    return chunk->done({.code = errc::cancelled, .message = "the run was cancelled"});
  // All of it is there before the link's thread can find it among `chunks_`.
  frame order;
  failure why = capture([&] { order = encode(describe(*chunk)); });
  std::optional<failure> ended;
  {
    const std::lock_guard lock(mutex_);
    ended = ended_;
    if (!ended) {
      chunk->bound = bound_.at(chunk->work.bound_plan); // the device's actor sends no others
      chunk->answered = why.failed();
      chunk->result = {.code = why.code, .message = why.message};
      host_->count_chunk(true);
      chunks_.push_back(chunk);
    }
  }
  if (ended || why.failed())
    for (const hash128& key : chunk->offered)
      host_->offers().offers().withdraw(key);
  if (ended)
    chunk->done({.code = ended->code, .message = ended->message});
  else if (why.failed())
    report(); // in its turn
  else
    host_->send_encoded(std::move(order));
}

run_chunk conversation::describe(sent_chunk& chunk) {
  const chunk_work& work = chunk.work;
  run_chunk order{.device = index_,
                  .bound_plan = work.bound_plan,
                  .chunk = work.chunk,
                  .execution = work.execution,
                  .slot = work.slot,
                  .timed = work.timed};
  for (const value_ref& value : work.uploads)
    order.uploads.push_back(describe_upload(*value, chunk));
  for (const value_ref& value : work.downloads)
    order.downloads.push_back({.key = new_key(),
                               .home = !value->stays()         ? destination::host
                                       : value->goes_to_host() ? destination::both
                                                               : destination::device,
                               .send = value->comes_here()});
  chunk.wanted = order.downloads;
  return order;
}

sent_value conversation::describe_upload(const moved_value& value, sent_chunk& chunk) {
  if (const device_tensor& own = value.resident_on(info_.name, info_.incarnation))
    if (const auto* there = dynamic_cast<const remote_resident*>(own.get()))
      return there->where().describe_for(*host_);
  if (const auto* kept = dynamic_cast<const kept_value*>(value.away().get()))
    return kept->describe_for(*host_);
  sent_value sent = remote::describe(value.host(), new_key(), host_->offers().offers(), chunk.room);
  chunk.room -= static_cast<int64_t>(sent.bytes.size());
  if (sent.from == origin::sender)
    chunk.offered.push_back(sent.key);
  return sent;
}

void conversation::on_chunk(chunk_made made) {
  sent_chunk_ptr chunk;
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(chunks_.begin(), chunks_.end(), [&](const sent_chunk_ptr& c) {
      return !c->answered && c->missing == 0 && c->work.execution == made.execution && c->work.chunk == made.chunk;
    });
    if (found == chunks_.end())
      return; // an answer to nothing
    chunk = *found;
    chunk->missing = 1; // until all downloads are looked at
  }
  for (const hash128& key : chunk->offered)
    host_->offers().offers().withdraw(key);
  drop_unknown(made.result.timings, *chunk->bound->source->program);
  const int64_t answered_ns = now_ns();
  const auto exchange = sample_of(made.result.timings, chunk->sent_ns, answered_ns);
  align_clocks(made.result.timings, host_->meter().clock_ahead_ns(exchange), chunk->sent_ns, answered_ns);
  chunk->result = std::move(made.result);
  if (chunk->result.ok() && made.downloads.size() != chunk->wanted.size())
    chunk->result = {.code = errc::device_failed,
                     .message = fmt::format("host '{}' made {} values of {}", host_->name(), made.downloads.size(),
                                            chunk->wanted.size())};
  else if (chunk->result.ok())
    take_downloads(chunk, std::move(made.downloads));
  else
    return report_failure(chunk);
  {
    const std::lock_guard lock(mutex_);
    chunk->answered = --chunk->missing == 0;
  }
  report();
}

/// The values of earlier chunks may still be on their way. Meanwhile other devices of the host drop the rest of the
/// execution and say so, and the session takes the first failure that it hears of for the cause.
void conversation::report_failure(const sent_chunk_ptr& chunk) {
  {
    const std::lock_guard lock(mutex_);
    std::erase(chunks_, chunk);
  }
  end(*chunk);
}

void conversation::take_downloads(const sent_chunk_ptr& chunk, std::vector<sent_value> values) {
  const plan& p = *chunk->bound->source;
  const std::vector<value_id>& ids = p.chunks[chunk->work.chunk].downloads;
  for (size_t i = 0; i < values.size(); ++i) {
    sent_value& value = values[i];
    {
      const std::lock_guard lock(mutex_);
      ++chunk->missing;
    }
    const bool is_bound = p.segment_of_value[ids[i]] <= chunk->bound->segment;
    const expected_value expected{p.program->values[ids[i]].type, is_bound ? &chunk->bound->dims[ids[i]] : nullptr};
    sent_value kept{.from = origin::kept, .type = value.type, .dims = value.dims, .size = value.size};
    if (value.from == origin::message && chunk->wanted[i].send && !chunk->work.downloads[i]->stays())
      kept.from = origin::message; // all of it: the host keeps nothing
    if (value.from == origin::kept || !chunk->wanted[i].send) {
      failure lie = capture([&] { checked_size(kept, expected); });
      if (lie.failed())
        lie = {errc::device_failed, fmt::format("host '{}' keeps another value: {}", host_->name(), lie.message)};
      else if (chunk->wanted[i].send && chunk->work.downloads[i]->goes_to_host())
        lie = {errc::device_failed, fmt::format("host '{}' keeps a value that it was to send", host_->name())};
      took(chunk, i, kept, {}, lie);
      continue;
    }
    take(std::move(value), expected, host_->values(),
         [self = shared_from_this(), chunk, i, kept](tensor host, const failure& why) {
           self->took(chunk, i, kept, std::move(host), why);
           self->report();
         });
  }
}

void conversation::took(const sent_chunk_ptr& chunk, size_t i, const sent_value& kept, tensor host,
                        const failure& why) {
  moved_value& value = *chunk->work.downloads[i];
  if (kept.from == origin::kept) {
    // Even if the value is of no use here: its end tells the host not to keep it.
    const auto where = std::make_shared<kept_value>(host_, chunk->wanted[i].key, kept.type, kept.dims, kept.size);
    if (!why.failed())
      value.fill_away(where, std::move(host),
                      value.stays() ? std::make_shared<remote_resident>(where, info_) : nullptr);
  } else if (!why.failed())
    value.fill(std::move(host));
  const std::lock_guard lock(mutex_);
  if (why.failed() && chunk->result.ok())
    chunk->result = {.code = why.code, .message = why.message};
  chunk->answered = --chunk->missing == 0;
}

void conversation::report() {
  const std::lock_guard order(reporting_);
  for (;;) {
    sent_chunk_ptr chunk;
    {
      const std::lock_guard lock(mutex_);
      if (chunks_.empty() || !chunks_.front()->answered)
        return;
      chunk = std::move(chunks_.front());
      chunks_.pop_front();
    }
    end(*chunk);
  }
}

void conversation::end(sent_chunk& chunk) {
  host_->count_chunk(false);
  chunk.work.uploads.clear();
  chunk.done(std::move(chunk.result));
}

void conversation::on_installed(installed answer) {
  const std::lock_guard lock(mutex_);
  const auto found = installing_.find(answer.bound_plan);
  if (found == installing_.end() || std::exchange(found->second, std::move(answer.why)))
    fail(errc::invalid_input, "bound plan {} is said to be installed when nothing waits for it", answer.bound_plan);
  installed_.notify_all();
}

void conversation::on_loading() {
  std::unique_lock lock(mutex_);
  const std::function<void()> tell = tell_progress_;
  lock.unlock();
  tell();
}

void conversation::on_end(const std::string& why) {
  std::vector<hash128> offered;
  {
    const std::lock_guard lock(mutex_);
    ended_ = failure{errc::device_lost, why};
    for (const sent_chunk_ptr& chunk : chunks_) {
      if (!chunk->answered) {
        offered.insert(offered.end(), chunk->offered.begin(), chunk->offered.end());
        chunk->result = {.code = errc::device_lost, .message = why};
      }
      // What is still being pulled fails by itself, since the puller is closed.
      chunk->answered = chunk->answered || chunk->missing == 0;
    }
    installed_.notify_all();
  }
  for (const hash128& key : offered)
    host_->offers().offers().withdraw(key);
  report();
}

void conversation::fetch(const device_tensor& value, const fetch_done& done) {
  const auto* there = dynamic_cast<const remote_resident*>(value.get());
  expects(there != nullptr, "a remote device was asked for a value that is not its own");
  const auto taken = [value, done, host = host_](fetched* told, const failure& why) {
    if (!told)
      return done({.code = why.code, .message = why.message});
    if (told->why.failed())
      return done({.code = told->why.code, .message = told->why.message});
    const hash128 key = told->value.key;
    const bool is_pulled = told->value.from == origin::sender;
    take(std::move(told->value), {value->type(), &value->dims()}, host->values(),
         [=](tensor taken, const failure& failed) {
           if (is_pulled)
             host->send(release{{key}}); // it was kept for this pull alone
           done({.value = std::move(taken), .code = failed.code, .message = failed.message});
         });
  };
  host_->questions().ask(fetch_kept{.device = index_, .key = there->where().key()}, taken);
}

device_tensor conversation::put(const tensor& value) {
  const hash128 kept = new_key(), offered = new_key();
  sent_value sent = remote::describe(value, offered, host_->offers().offers());
  const int64_t sent_bytes = sent.size;
  auto answer = host_->questions().ask(put_value{.device = index_, .key = kept, .value = std::move(sent)});
  const failure failed = capture([&] {
    const was_put told = answer.get();
    if (told.why.failed())
      fail(told.why.code, "{}", told.why.message);
  });
  host_->offers().offers().withdraw(offered);
  if (failed.failed())
    fail(failed.code, "{}", failed.message);
  const auto where = std::make_shared<kept_value>(host_, kept, value.type(), value.dims(), sent_bytes);
  return std::make_shared<remote_resident>(where, info_);
}

device_stats conversation::stats() const {
  auto answer = host_->questions().ask(ask_stats{.device = index_});
  if (answer.wait_for(stats_timeout) != std::future_status::ready)
    fail(errc::timeout, "host '{}' does not answer", host_->name());
  return answer.get().stats;
}

} // namespace troupe::remote

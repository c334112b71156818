// A session whose messages a test sends itself, one by one, to a worker in this process: so it need not keep to the
// rules of sessions.
#pragma once

#include "support/far_device.hpp"

namespace troupe::test {

class spoken_session {
public:
  explicit spoken_session(far_host& host);
  ~spoken_session();
  spoken_session(const spoken_session&) = delete;
  spoken_session& operator=(const spoken_session&) = delete;

  void say(const remote::message& m);
  /// Returns the next message of a kind that has come, and passes over others; nothing if none comes in time or the
  /// link ends.
  template <class M>
  std::optional<M> hear(std::chrono::milliseconds patience = std::chrono::seconds(20)) {
    std::unique_lock lock(heard_->mutex);
    const auto end = std::chrono::steady_clock::now() + patience;
    for (;;) {
      for (; !heard_->messages.empty(); heard_->messages.pop_front())
        if (auto* found = std::get_if<M>(&heard_->messages.front())) {
          std::optional<M> m = std::move(*found);
          heard_->messages.pop_front();
          return m;
        }
      if (heard_->ended || heard_->changed.wait_until(lock, end) == std::cv_status::timeout)
        return std::nullopt;
    }
  }
  /// Returns whether the worker ends the link in time.
  bool await_end(std::chrono::milliseconds patience = std::chrono::seconds(20));
  bool has_ended() const;
  void close() { link_->close(); }

  /// The devices as the worker has named them.
  const std::vector<device_info>& devices() const { return devices_; }
  remote::outbox& offers() { return *offers_; }
  /// Pulls a kept value's bytes; empty if the worker does not give them.
  std::vector<uint8_t> pull(const hash128& key, int64_t bytes);

  /// The order that installs a bound plan, under its own id.
  remote::install install_order(const bound_plan_ptr& bound, device_index self, uint32_t device = 0);
  /// Installs it, and returns why that failed.
  failure install(const bound_plan_ptr& bound, device_index self, uint32_t device = 0);
  /// The order that runs a chunk; all elements of its uploads, which are float32, have one value. Keys of downloads are
  /// new.
  remote::run_chunk chunk_order(const bound_plan_ptr& bound, chunk_id chunk, uint64_t execution, float value = 1);

private:
  struct heard {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<remote::message> messages;
    bool ended = false;
  };

  const std::shared_ptr<heard> heard_ = std::make_shared<heard>();
  const std::shared_ptr<remote::outbox> offers_ = std::make_shared<remote::outbox>();
  remote::link_ptr link_;
  std::shared_ptr<remote::piece_puller> puller_;
  std::vector<device_info> devices_;
};

} // namespace troupe::test

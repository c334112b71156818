// A GPU at half its speed, whatever it is: each chunk ends twice as late as it would, and the next one begins after
// that.
#pragma once

#include "device/device.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace troupe::bench {

class half_speed final : public device {
public:
  explicit half_speed(std::unique_ptr<device> inner) : inner_(std::move(inner)), thread_([this] { work(); }) {}
  ~half_speed() override {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  const device_info& info() const override { return inner_->info(); }
  void install(bound_plan_ptr bound, device_index self) override { inner_->install(std::move(bound), self); }
  void retire(uint64_t bound_plan) override { inner_->retire(bound_plan); }
  void submit(chunk_work work, chunk_done done) override {
    const auto start = std::chrono::steady_clock::now();
    inner_->submit(std::move(work), [this, start, done = std::move(done)](chunk_result result) {
      const std::lock_guard lock(mutex_);
      ended_.push_back({start, std::chrono::steady_clock::now(), std::move(result), done});
      changed_.notify_all();
    });
  }
  void stop(execution_id execution) override { inner_->stop(execution); }
  void end(execution_id execution) override { inner_->end(execution); }
  void fetch(const device_tensor& value, const fetch_done& done) override { inner_->fetch(value, done); }
  device_tensor put(const tensor& value) override { return inner_->put(value); }
  device_stats stats() const override { return inner_->stats(); }

private:
  using time = std::chrono::steady_clock::time_point;
  struct ended_chunk {
    time submitted, ended;
    chunk_result result;
    chunk_done done;
  };

  void work() {
    std::unique_lock lock(mutex_);
    time inner_end{}, free_at{}; // when the device really ended the chunk before; when it seems to
    for (;;) {
      changed_.wait(lock, [this] { return closing_ || !ended_.empty(); });
      if (ended_.empty())
        return;
      ended_chunk c = std::move(ended_.front());
      ended_.pop_front();
      lock.unlock();
      const auto took = c.ended - std::max(c.submitted, inner_end);
      inner_end = c.ended;
      free_at = std::max(free_at, c.submitted) + 2 * took;
      std::this_thread::sleep_until(free_at);
      c.done(std::move(c.result));
      lock.lock();
    }
  }

  std::unique_ptr<device> inner_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<ended_chunk> ended_;
  bool closing_ = false;
  std::thread thread_; // last: uses all above
};

} // namespace troupe::bench

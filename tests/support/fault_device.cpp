#include "support/fault_device.hpp"

namespace troupe {

void hang_latch::wait() {
  std::unique_lock lock(mutex_);
  released_.wait(lock, [this] { return open_; });
}

void hang_latch::release() {
  const std::lock_guard lock(mutex_);
  open_ = true;
  released_.notify_all();
}

fault_device::fault_device(std::unique_ptr<device> inner, fault_script script)
    : inner_(std::move(inner)), script_(std::move(script)) {
  if (script_.delay.count() > 0)
    completer_ = std::thread([this] { run_delayed(); });
}

fault_device::~fault_device() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  if (completer_.joinable())
    completer_.join();
}

void fault_device::install(bound_plan_ptr bound, device_index self) {
  dead_ = dead_ || script_.die_at_install;
  if (dead_)
    fail(errc::device_lost, "the device died on order");
  inner_->install(std::move(bound), self);
}

void fault_device::submit(chunk_work work, chunk_done done) {
  const uint64_t index = submitted_++;
  if (index == script_.hang_at)
    script_.latch->wait();
  if (index >= script_.stall_at)
    return;
  if (completer_.joinable())
    done = [this, done = std::move(done)](chunk_result result) { complete_later(done, std::move(result)); };
  dead_ = dead_ || index >= script_.die_at;
  if (dead_)
    return done({.code = errc::device_lost, .message = "the device died on order"});
  if (index == script_.fail_at) {
    if (completer_.joinable())
      failed_ = work.execution;
    return done({.code = errc::device_failed, .message = "the chunk failed on order"});
  }
  if (work.execution == failed_) // sent before the answer: what it reads was never made
    return done({.code = errc::cancelled, .message = "dropped: an earlier chunk failed on order"});
  inner_->submit(std::move(work), std::move(done));
}

void fault_device::fetch(const device_tensor& value, const fetch_done& done) {
  if (script_.stall_fetches)
    return;
  if (dead_)
    return done({.code = errc::device_lost, .message = "the device died on order"});
  if (script_.fail_fetches)
    return done({.code = errc::out_of_memory, .message = "the copy failed on order"});
  inner_->fetch(value, done);
}

device_tensor fault_device::put(const tensor& value) {
  if (dead_)
    fail(errc::device_lost, "the device died on order");
  return inner_->put(value);
}

void fault_device::complete_later(chunk_done done, chunk_result result) {
  const std::lock_guard lock(mutex_);
  delayed_.push_back({clock::now() + script_.delay, std::move(done), std::move(result)});
  changed_.notify_all();
}

void fault_device::run_delayed() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return closing_ || !delayed_.empty(); });
    if (delayed_.empty())
      return;
    if (!closing_ && changed_.wait_until(lock, delayed_.front().due, [this] { return closing_; }))
      continue;
    delayed next = std::move(delayed_.front());
    delayed_.pop_front();
    lock.unlock();
    next.done(std::move(next.result));
    lock.lock();
  }
}

} // namespace troupe

#include "actors/completions.hpp"

#include "base/error.hpp"

#include <iostream>
#include <utility>

namespace troupe::actors {
namespace {

void tell(const char* what) {
  std::cerr << "troupe: a callback of session::run_async threw: " << what
            << " (ignored; later ones are not reported)\n";
}

} // namespace

void completions::expect() {
  const std::lock_guard lock(mutex_);
  if (closed_)
    fail(errc::cancelled, "the engine is closed");
  if (thread_ == std::thread::id())
    start_thread();
  ++expected_;
}

void completions::start_thread() {
  try {
    // Not joined: a callback may destroy the engine. `close` waits for what matters.
    std::thread worker([self = shared_from_this()] { self->work(); });
    thread_ = worker.get_id();
    worker.detach();
  } catch (const std::system_error& e) {
    fail(errc::out_of_memory, "no thread can be started for callbacks: {}", e.what());
  }
}

void completions::call_off() {
  const std::lock_guard lock(mutex_);
  --expected_;
  changed_.notify_all();
}

void completions::post(run_callback done, run_outcome outcome) {
  const std::lock_guard lock(mutex_);
  calls_.push_back({std::move(done), std::move(outcome)});
  changed_.notify_all();
}

void completions::close(bool wait) {
  std::unique_lock lock(mutex_);
  closed_ = true;
  changed_.notify_all();
  if (wait && thread_ != std::this_thread::get_id())
    changed_.wait(lock, [this] { return expected_ == 0; });
}

bool completions::is_this_thread() const {
  const std::lock_guard lock(mutex_);
  return thread_ == std::this_thread::get_id();
}

void completions::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return !calls_.empty() || (closed_ && expected_ == 0); });
    if (calls_.empty())
      return;
    call next = std::move(calls_.front());
    calls_.pop_front();
    lock.unlock();
    carry_out(std::move(next));
    lock.lock();
    --expected_;
    changed_.notify_all();
  }
}

void completions::carry_out(call c) {
  try {
    c.done(std::move(c.outcome));
  } catch (const std::exception& e) {
    if (!std::exchange(told_, true))
      tell(e.what());
  } catch (...) {
    if (!std::exchange(told_, true))
      tell("something that is not a std::exception");
  }
}

completion::completion(std::shared_ptr<completions> queue, run_callback done)
    : queue_(std::move(queue)), done_(std::move(done)) {
  queue_->expect();
}

completion::~completion() {
  if (queue_)
    queue_->call_off();
}

void completion::post(run_outcome outcome) {
  std::exchange(queue_, nullptr)->post(std::move(done_), std::move(outcome));
}

} // namespace troupe::actors

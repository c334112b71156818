// A choice that is made once, on a thread of its own, however many requests wait for it.
//
// The choice is made for the first request that asks, by what that request says. Others wait, each no longer than its
// own time limit and stop token allow. If the choice fails, the request that it was made for ends with the failure, and
// the choice is made anew for one of the others. If a request gives up, the choice goes on for those that come later.
// Thread-safe.
#pragma once

#include "troupe/error.hpp"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

namespace troupe::actors {

/// How long somebody waits.
struct patience {
  std::optional<std::chrono::steady_clock::time_point> until;
  std::stop_token stop = {};
};

/// See the top of this file. `Chosen` is copied for those who ask.
template <class Chosen>
class choice_once {
public:
  choice_once() = default;
  choice_once(const choice_once&) = delete;
  choice_once& operator=(const choice_once&) = delete;
  /// Returns what was chosen, made by `make` on the first call. Throws what `make` throws, `errc::timeout` and
  /// `errc::cancelled` as `limits` say. `make` must own all that it reads.
  Chosen get(std::function<Chosen()> make, const patience& limits);

  /// Has the choice made while the caller goes on, by what `maker` returns. Does nothing if one is there or being made,
  /// or has failed for another reason than its request (`errc::invalid_input`).
  template <class Maker>
  void begin_once(Maker&& maker) {
    const std::lock_guard lock(mutex_);
    if (!newest_ || newest_->request_was_wrong)
      begin(maker());
  }

  /// Returns what was chosen, if anything was.
  std::optional<Chosen> if_any() {
    const std::lock_guard lock(mutex_);
    return chosen_;
  }

private:
  struct attempt {
    bool ended = false;
    std::exception_ptr why; // it failed
    bool request_was_wrong = false;
  };

  void begin(std::function<Chosen()> make);

  std::mutex mutex_;
  std::condition_variable_any ended_;
  std::optional<Chosen> chosen_;
  std::shared_ptr<attempt> newest_; // null before the first
  std::jthread maker_;              // last: it ends before what it writes does
};

template <class Chosen>
void choice_once<Chosen>::begin(std::function<Chosen()> make) {
  newest_ = std::make_shared<attempt>();
  maker_ = std::jthread([this, mine = newest_, make = std::move(make)] {
    std::optional<Chosen> made;
    std::exception_ptr why;
    bool request_was_wrong = false;
    try {
      made = make();
    } catch (const error& e) {
      why = std::current_exception();
      request_was_wrong = e.code() == errc::invalid_input;
    } catch (...) {
      why = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    chosen_ = std::move(made);
    mine->why = why;
    mine->request_was_wrong = request_was_wrong;
    mine->ended = true;
    ended_.notify_all();
  });
}

template <class Chosen>
Chosen choice_once<Chosen>::get(std::function<Chosen()> make, const patience& limits) {
  std::unique_lock lock(mutex_);
  std::shared_ptr<attempt> mine;
  for (;;) {
    if (mine && mine->why)
      std::rethrow_exception(mine->why);
    if (chosen_)
      return *chosen_;
    if (limits.stop.stop_requested())
      throw error(errc::cancelled, "the run was cancelled before its strategy was chosen");
    if (limits.until && std::chrono::steady_clock::now() >= *limits.until)
      throw error(errc::timeout, "the time limit passed before the run's strategy was chosen");
    if (!newest_ || newest_->ended) {
      begin(make);
      mine = newest_;
    }
    const auto is_over = [awaited = newest_] { return awaited->ended; };
    if (limits.until)
      ended_.wait_until(lock, limits.stop, *limits.until, is_over);
    else
      ended_.wait(lock, limits.stop, is_over);
  }
}

} // namespace troupe::actors

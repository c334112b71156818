// A device that fails on order: decorates another device with a script of faults. For tests of the failure paths.
#pragma once

#include "device/device.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

namespace troupe {

/// Lets a `fault_device` that hangs in a call go on, so that a test can end its thread.
class hang_latch {
public:
  /// Blocks until `release`.
  void wait();
  void release();

private:
  std::mutex mutex_;
  std::condition_variable released_;
  bool open_ = false;
};

/// The faults, and when they come. Chunks are counted from 0 in the order in which they are submitted.
struct fault_script {
  static constexpr uint64_t never = UINT64_MAX;
  uint64_t fail_at = never;  // this chunk fails; the device lives on
  uint64_t stall_at = never; // this chunk and all later ones never complete
  uint64_t hang_at = never;  // `submit` of this chunk does not return before `latch` is released
  uint64_t die_at =
      never; // this chunk and all later ones end with errc::device_lost, as does what else is asked for then
  bool die_at_install = false;
  bool stall_fetches = false; // values that are fetched never come
  bool fail_fetches = false;  // they cannot be given back; the device lives on
  uint64_t knows_from =
      never; // of this chunk and all later ones it says that it knew their first value when it took them
  /// Above 0: chunks complete this much later, on another thread.
  std::chrono::microseconds delay{0};
  std::shared_ptr<hang_latch> latch; // needed if `hang_at` is set
};

class fault_device final : public device {
public:
  fault_device(std::unique_ptr<device> inner, fault_script script);
  /// Completes delayed chunks; stalled ones are never completed.
  ~fault_device() override;

  const device_info& info() const override { return inner_->info(); }
  void install(bound_plan_ptr bound, device_index self) override;
  void retire(uint64_t bound_plan) override { inner_->retire(bound_plan); }
  void stop(execution_id execution) override { inner_->stop(execution); }
  void end(execution_id execution) override { inner_->end(execution); }
  void submit(chunk_work work, chunk_done done) override;
  std::vector<uint32_t> take_made_ahead() override {
    return submitted_ > script_.knows_from ? std::vector<uint32_t>{0} : inner_->take_made_ahead();
  }
  void fetch(const device_tensor& value, const fetch_done& done) override;
  device_tensor put(const tensor& value) override;
  device_stats stats() const override { return inner_->stats(); }

private:
  using clock = std::chrono::steady_clock;
  struct delayed {
    clock::time_point due;
    chunk_done done;
    chunk_result result;
  };

  void complete_later(chunk_done done, chunk_result result);
  void run_delayed();

  std::unique_ptr<device> inner_;
  const fault_script script_;
  uint64_t submitted_ = 0;
  bool dead_ = false;
  std::optional<execution_id> failed_; // the execution of the chunk that failed, if its answer comes later

  std::mutex mutex_; // guards delayed_, closing_
  std::condition_variable changed_;
  std::deque<delayed> delayed_;
  bool closing_ = false;
  std::thread completer_; // runs only if there is a delay
};

} // namespace troupe

// What a session's process says to one device of another host, and what it hears: a `remote_device` is a door to this.
#pragma once

#include "device/device.hpp"
#include "remote/host_client.hpp"
#include "wire/plans.hpp"

#include <condition_variable>
#include <deque>

namespace troupe::remote {

struct sent_chunk; // that the host has been sent
using sent_chunk_ptr = std::shared_ptr<sent_chunk>;

/// What the host says comes on the link's thread, which may still speak when the device is gone: they share this.
class conversation : public std::enable_shared_from_this<conversation> {
public:
  conversation(std::shared_ptr<host_client> host, uint32_t index)
      : host_(std::move(host)), index_(index), info_(host_->devices().at(index)) {}

  void begin();
  void on_progress(std::function<void()> told) {
    const std::lock_guard lock(mutex_);
    tell_progress_ = std::move(told);
  }
  // As those of `device`.
  const device_info& info() const { return info_; }
  void install(const bound_plan_ptr& bound, device_index self);
  void retire(uint64_t bound_plan);
  void submit(chunk_work work, chunk_done done);
  void fetch(const device_tensor& value, const fetch_done& done);
  device_tensor put(const tensor& value);
  device_stats stats() const;
  host_client& host() const { return *host_; }
  uint32_t index() const { return index_; }

private:
  run_chunk describe(sent_chunk& chunk);
  sent_value describe_upload(const moved_value& value, sent_chunk& chunk);
  void on_chunk(chunk_made made);
  void on_installed(installed answer);
  void on_loading();
  void on_end(const std::string& why);
  void take_downloads(const sent_chunk_ptr& chunk, std::vector<sent_value> values);
  void took(const sent_chunk_ptr& chunk, size_t download, const sent_value& kept, tensor host, const failure& why);
  /// Ends all chunks that have been answered, in the order in which they were submitted.
  void report();
  void report_failure(const sent_chunk_ptr& chunk);
  /// Calls `done`.
  void end(sent_chunk& chunk);

  const std::shared_ptr<host_client> host_;
  const uint32_t index_;
  const device_info info_;
  mutable std::mutex mutex_;
  std::function<void()> tell_progress_ = [] {};
  std::condition_variable installed_;
  std::optional<failure> ended_;
  std::map<uint64_t, std::optional<failure>> installing_; // answers
  std::unordered_map<uint64_t, bound_plan_ptr> bound_;
  std::deque<sent_chunk_ptr> chunks_; // in the order in which they were submitted
  std::mutex reporting_;              // one thread reports at a time, so that the order is kept
};

} // namespace troupe::remote

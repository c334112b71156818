// A value of one attempt at a run on its way between chunks: what a transfer of the plan (`plan::transfers`) is while it is carried out.
//
// The execution makes one for each value that crosses, and chunks name it (`chunk_work`): the device that makes the value says
// where its bytes are, once; the devices that want it read them there. So whoever sends the chunks carries no bytes, only learns
// that they are there, and lets go of a value as soon as its last reader has been sent: the readers keep it.
//
// Thread-safety: a value is filled before the chunk that makes it is answered, and read by chunks that are sent after the answer: the
// messages order the two. What a device says too late, of an attempt that is over, fills a value that nobody reads: another
// attempt has values of its own.
#pragma once

#include "base/error.hpp"
#include "device/resident.hpp"

namespace troupe {

/// Where a chunk leaves a value that it makes.
enum class destination : uint8_t {
  host,
  device, // it stays, in memory of its own
  both,
};

class moved_value {
public:
  /// A value that a chunk will make.
  explicit moved_value(destination wanted = destination::host) : wanted_(wanted) {}
  /// A value that is there: in the host's memory, on a device, or both.
  explicit moved_value(tensor host, device_tensor resident = nullptr)
      : host_(std::move(host)), resident_(std::move(resident)) {}

  /// Where the device that makes it leaves it. Devices that compute in the host's memory leave all there.
  bool goes_to_host() const { return wanted_ != destination::device; }
  bool stays() const { return wanted_ != destination::host; }

  /// Says where the bytes are; once.
  void fill(tensor host, device_tensor resident = nullptr) {
    expects(!filled(), "a value was made twice");
    host_ = std::move(host);
    resident_ = std::move(resident);
  }
  bool filled() const { return host_.defined() || resident_; }

  // -- of a value that is filled
  dtype type() const { return host_.defined() ? host_.type() : resident_->type(); }
  const shape& dims() const { return host_.defined() ? host_.dims() : resident_->dims(); }
  /// Returns the value in the host's memory; throws `errc::internal` if it is not there.
  const tensor& host() const {
    expects(host_.defined(), "a value is wanted in the host's memory, where it is not");
    return host_;
  }
  /// Returns the value on a device; null if it is in the host's memory alone.
  const device_tensor& resident() const { return resident_; }
  /// The same for one device: null if it is not in that one's own memory.
  device_tensor resident_on(std::string_view device) const {
    return resident_ && resident_->device() == device ? resident_ : nullptr;
  }
  /// Returns whether a device can read it.
  bool reaches(std::string_view device) const { return host_.defined() || resident_on(device); }

private:
  const destination wanted_ = destination::host;
  tensor host_;
  device_tensor resident_;
};

using value_ref = std::shared_ptr<moved_value>;

} // namespace troupe

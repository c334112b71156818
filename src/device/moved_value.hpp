// A value of one attempt at a run on its way between chunks: what a transfer of the plan (`plan::transfers`) is while
// it is carried out.
//
// The execution makes one for each value that crosses, and chunks name it (`chunk_work`): the device that makes the
// value says where its bytes are, once; the devices that want it read them there. So the sender of the chunks carries
// no bytes, only learns that they are there, and lets go of a value as soon as its last reader has been sent: the
// readers keep it.
//
// A chunk on a peer (`are_peers`) may be sent before the value is there, after the chunk that makes it. Then the
// reader's device waits until the maker's has told of the value (`is_told`). That one may promise it: it says where the
// bytes will be when it has the work to make them, and when they are there (`arrival`).
//
// Thread-safety: a value is filled before the chunk that makes it is answered, and read by chunks that are sent after
// the answer: the messages order the two. Peers, which are sent earlier, ask `is_told`. What a device says too late, of
// an attempt that is over, fills a value that has no reader: another attempt has values of its own.
#pragma once

#include "base/error.hpp"
#include "device/resident.hpp"
#include "plan/device_info.hpp"

#include <atomic>

namespace troupe {

/// Where a chunk leaves a value that it makes.
enum class destination : uint8_t {
  host,   // in its host's memory: the session's process, or another host
  device, // it stays, in memory of its own
  both,
};

/// A value in the memory of another host: it goes from there to the hosts that want it, not through this process.
/// Devices of other hosts derive their own kinds; when the last reference is gone, it may be forgotten there.
class away_value {
public:
  away_value(dtype type, shape dims, std::string host) : type_(type), dims_(std::move(dims)), host_(std::move(host)) {}
  virtual ~away_value() = default;
  away_value(const away_value&) = delete;
  away_value& operator=(const away_value&) = delete;

  dtype type() const { return type_; }
  const shape& dims() const { return dims_; }
  /// Returns the name of the host that has it, as in `device_info::host`.
  const std::string& host() const { return host_; }

private:
  const dtype type_;
  const shape dims_;
  const std::string host_;
};

using away_value_ref = std::shared_ptr<const away_value>;

/// When the bytes of a promised value are there. Devices that make promises derive their own kind, which their peers
/// know.
class arrival {
public:
  arrival() = default;
  virtual ~arrival() = default;
  arrival(const arrival&) = delete;
  arrival& operator=(const arrival&) = delete;
};

using arrival_ref = std::shared_ptr<const arrival>;

class moved_value {
public:
  /// A value that a chunk will make; `comes_here`, `may_be_promised`: see below.
  explicit moved_value(destination wanted = destination::host, bool comes_here = true, bool may_be_promised = false)
      : wanted_(wanted), comes_here_(comes_here), may_be_promised_(may_be_promised) {}
  /// A value that is there: in the host's memory, on a device, or both.
  explicit moved_value(tensor host, device_tensor resident = nullptr)
      : told_(true), host_(std::move(host)), resident_(std::move(resident)) {}

  /// Where the device that makes it leaves it. Devices that compute in the host's memory leave all there.
  bool goes_to_host() const { return wanted_ != destination::device; }
  bool stays() const { return wanted_ != destination::host; }
  /// Whether its bytes are wanted in the memory of the session's process: for a device of it, control flow, or the
  /// caller. If not, devices of other hosts leave what goes to the host's memory in their own host's (`fill_away`);
  /// where it is read, it is asked for.
  bool comes_here() const { return comes_here_; }
  /// Whether a chunk on a peer reads it, which may have been sent before the value is there.
  bool may_be_promised() const { return may_be_promised_; }

  /// Says where the bytes are; once.
  void fill(tensor host, device_tensor resident = nullptr) { tell(std::move(host), std::move(resident)); }
  /// The same for a value of another host; `host`: its bytes, if they come here.
  void fill_away(away_value_ref away, tensor host = {}, device_tensor resident = nullptr) {
    away_ = std::move(away);
    tell(std::move(host), std::move(resident));
  }
  /// Says where the bytes will be, in the host's memory, before they are there; once, instead of `fill`.
  void promise(tensor host, arrival_ref when, device_tensor resident = nullptr) {
    arrival_ = std::move(when);
    tell(std::move(host), std::move(resident));
  }
  bool filled() const { return host_.defined() || resident_ || away_; }
  /// Returns whether one of these has been called, to any thread: what it said can be read from then on.
  bool is_told() const { return std::atomic_ref(told_).load(std::memory_order_acquire); }

  // -- of a value that is filled
  dtype type() const { return host_.defined() ? host_.type() : away_ ? away_->type() : resident_->type(); }
  const shape& dims() const { return host_.defined() ? host_.dims() : away_ ? away_->dims() : resident_->dims(); }
  /// Returns whether its bytes are in this process's memory.
  bool has_host() const { return host_.defined(); }
  /// Returns the value in the host's memory; throws `errc::internal` if it is not there.
  const tensor& host() const {
    expects(host_.defined(), "a value is wanted in the host's memory, where it is not");
    return host_;
  }
  /// Returns the value on a device; null if it is in the host's memory alone.
  const device_tensor& resident() const { return resident_; }
  /// The same for one device: null if it is not in that one's own memory.
  const device_tensor& resident_on(std::string_view device, uint64_t incarnation = 0) const {
    static const device_tensor none;
    return resident_ && resident_->device() == device && resident_->incarnation() == incarnation ? resident_ : none;
  }
  /// Returns the value on another host; null if it is not there, or no other host has been told of it.
  const away_value_ref& away() const { return away_; }
  /// Returns when the bytes are there of a value that was promised; null if it was not. Those that are sent when its
  /// chunk has ended need not ask.
  const arrival_ref& promised_for() const { return arrival_; }
  /// Returns whether a device can read it.
  bool reaches(const device_info& device) const {
    return host_.defined() || (away_ && is_remote(device)) || resident_on(device.name, device.incarnation);
  }

private:
  void tell(tensor host, device_tensor resident) {
    expects(!told_, "a value was made twice");
    host_ = std::move(host);
    resident_ = std::move(resident);
    std::atomic_ref(told_).store(true, std::memory_order_release);
  }

  const destination wanted_ = destination::host;
  const bool comes_here_ = true;
  const bool may_be_promised_ = false;
  mutable bool told_ = false; // through std::atomic_ref: values are moved into the vectors that hold them
  tensor host_;
  device_tensor resident_;
  away_value_ref away_;
  arrival_ref arrival_;
};

using value_ref = std::shared_ptr<moved_value>;

/// The most bytes that a chunk promises: what is larger is copied beside other work, and its time is hardly the host's.
inline constexpr int64_t most_promised_bytes = int64_t{4} << 20;

} // namespace troupe

// Devices in virtual time: the machine that `play` (plan/estimate/predict.hpp) plays, with links that transfers share.
//
// Devices of one processor take its lanes in turn: copies in, work, copies out; a chunk's large copies may go beside
// the work of its neighbours. What crosses the network comes before that and goes after it, a device's chunks one after
// the other. What a chunk may begin depends on the chunks before it on the processor alone, so each event looks at the
// first few.
#pragma once

#include "base/seeded_random.hpp"
#include "plan/estimate/lanes.hpp"
#include "sim/chunk_prices.hpp"

#include <deque>
#include <memory>

namespace troupe::sim {

/// When what happened to one chunk, in seconds.
struct chunk_times {
  uint64_t number = 0;                  // of the chunk, from 1 on
  seconds sent = 0;                     // it came to the device
  seconds come_begin = 0, come_end = 0; // what it reads came over the network; equal if nothing did
  seconds in_begin = 0, work_begin = 0, work_end = 0, out_begin = 0, end = 0;
  double busy_s = 0;  // what its work and its copies took, waiting aside
  uint64_t after = 0; // the chunk (by its number) that it waited for on its processor; 0: none
};

/// What a device did.
struct device_use {
  double work_s = 0, copy_s = 0; // both may go at once; the network aside
  double bytes_in = 0, bytes_out = 0;
  size_t chunks = 0;
};

/// See the top of this file. Not thread-safe.
class virtual_devices {
public:
  /// `noise`: the standard deviation of the logarithm of each chunk's work; 0: none.
  virtual_devices(event_queue& events, shared_links& links, double noise, uint64_t seed)
      : events_(events), links_(links), noise_(noise), random_(seed) {}

  /// Adds a device after the others. Those of one processor of a host share its lanes.
  void add(const device_info& device);

  /// Runs a chunk after those before it; calls `done` when it has ended, never if the device is lost before. `price`
  /// must live until then.
  using chunk_done = std::function<void(const chunk_times&)>;
  void run(size_t device, const chunk_price& price, chunk_done done);

  /// Has work that begins from now on take `pace` (above 0) times as long as chunks' prices say.
  void set_pace(size_t device, double pace) { devices_[device].pace = pace; }

  /// Forgets all that a device has to do, without a call.
  void lose(size_t device);

  /// Forgets what devices have done so far.
  void begin_to_count() {
    for (virtual_device& d : devices_)
      d.use = {};
  }
  const device_use& use(size_t device) const { return devices_[device].use; }
  /// Returns how many chunks a device has that have not ended.
  size_t waiting(size_t device) const { return devices_[device].waiting; }

private:
  enum class stage : uint8_t { waits, submits, copies_in, waits_for_work, works, waits_for_out, copies_out, ended };

  struct job {
    size_t device = 0;
    const chunk_price* price = nullptr;
    chunk_done done;
    stage at = stage::waits;
    bool beside_in = false, beside_out = false;
    seconds host_end = 0; // its inputs are copied by the host then
    bool is_here = false; // what it reads has crossed the network
    seconds ready = 0;    // for the work lane
    chunk_times times;
    std::optional<transfer_id> moving;

    bool has_copied_in() const { return at > stage::copies_in; }
    bool has_ended() const { return at == stage::ended; }
    /// Whether the next chunk may work.
    bool leaves_lane() const { return has_ended() || (beside_out && at > stage::works); }
  };
  using job_ptr = std::shared_ptr<job>;

  struct processor {
    std::deque<job_ptr> jobs; // in their order; the first has not ended
    processor_clock work;
    uint64_t last_number = 0; // of the job that was submitted last
  };
  struct virtual_device {
    device_info info;
    size_t on = 0;                     // processor
    lane_clock host;                   // its thread
    std::deque<job_ptr> coming, going; // over the network; the first one is on its way
    device_use use;
    size_t waiting = 0;
    double pace = 1;
    bool lost = false;
  };

  void look(size_t processor);
  /// Whether jobs of the queue do not keep job `i` from beginning its copies in.
  bool may_begin(const processor& p, size_t i) const;
  bool may_work(const processor& p, size_t i) const;
  /// Takes a job on as far as it gets now; returns whether it has got on.
  bool go_on(processor& p, size_t i);
  /// Takes over the network what is first in a device's queue, one way and the other.
  void receive(size_t device);
  void deliver(size_t device);
  void arrive(const job_ptr& j);
  void answer(const job_ptr& j);
  void begin_copies_in(const job_ptr& j);
  void submit(processor& p, const job_ptr& j);
  void work(const job_ptr& j);
  /// Carries the legs out from leg `i` on, one after the other; then calls `then`, unless the device is lost.
  void carry(const job_ptr& j, const std::vector<leg>& legs, size_t i, const std::function<void()>& then);
  void end(const job_ptr& j);
  double noise();

  event_queue& events_;
  shared_links& links_;
  const double noise_;
  seeded_random random_;
  std::vector<virtual_device> devices_;
  std::deque<processor> processors_;
  std::map<std::pair<std::string, std::string>, size_t> processor_of_; // by host and name
  uint64_t jobs_ = 0;
};

} // namespace troupe::sim

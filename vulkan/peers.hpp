// GPUs of a process that wait for each other's work without the host.
//
// Each GPU of a set (`device_info::peer_set`) has a timeline for the others, whose semaphore they import
// (VK_KHR_external_semaphore_fd). A chunk that makes values for peers signals its next value when it is complete; what
// it makes goes to blocks of the host's memory, which all of them import. It promises the values as soon as it knows
// where they will be (`moved_value::promise`): a peer's work that reads them waits for the timeline's value.
//
// - A chunk is sent after those whose values it reads, but may come to its device before these come to theirs. Then
//   the device's thread waits until they have been submitted (`peers::await`), or their run is stopped. It waits for
//   chunks that were sent before, so that threads never wait in a circle (run/chunk_batches.hpp).
// - So no work waits for what has not been submitted: waits of GPUs lead back in time, never in a circle, whatever the
//   order of chunks on the queues. A chunk that is cancelled, refused or never sent keeps no other from going on.
// - The lane for work alone signals, in the order of its submissions: values only grow. A value of a submission that
//   was refused is left out.
// - The own timelines of a GPU's lanes stay its own: that a chunk is complete is never told by what others can signal.
// - A GPU that is lost keeps no promise. Each that finds it lost says so first (`lose`), then has the host signal all
//   that was promised; its chunks that end after that count as lost. So values that a peer may have read too early are
//   of chunks that are not complete, and what the peer makes of them is not either (plan/cut/ready_set.hpp).
// - A semaphore lives, with the VkDevice that made it, until the last GPU that has imported it ends.
//
// Proven before: see peer_proof.hpp. Memory of another GPU is never imported.
#pragma once

#include "device/device.hpp"
#include "vulkan/timeline.hpp"

#include <map>

namespace troupe::vulkan {

class peer_import;

/// The timeline of a GPU for its peers. `lose` and `is_lost` are for any thread; `next`, `open` for the device's own.
class peer_timeline {
public:
  peer_timeline() = default;
  ~peer_timeline();
  peer_timeline(const peer_timeline&) = delete;
  peer_timeline& operator=(const peer_timeline&) = delete;

  /// Makes the semaphore; once. Throws `errc::device_failed` if the driver refuses.
  void open(std::shared_ptr<const device_context> context);

  /// Returns what the next submission is to signal.
  semaphore_value next() { return {semaphore_.get(), ++last_}; }

  /// The work has been submitted that signals this value; by the device's thread, in the order of the values.
  void submitted(uint64_t value) { submitted_ = value; }
  bool is_submitted(uint64_t value) const { return submitted_ >= value; }

  /// The chunk is complete that signals this value: nothing need wait for it. Called by the waiter, in the order of the
  /// values.
  void keep(uint64_t value) { kept_ = value; }
  bool is_kept(uint64_t value) const { return kept_ >= value; }

  /// Blocks until a value is signalled, by whatever.
  void wait(uint64_t value) const;

  /// The GPU is lost: has all promises signalled that it has not kept.
  void lose() noexcept;
  bool is_lost() const { return lost_; }

private:
  friend class peer_import;
  int export_semaphore() const;

  std::shared_ptr<const device_context> context_;
  semaphore_handle semaphore_; // ends before its device
  std::atomic<uint64_t> last_{0}, submitted_{0}, kept_{0};
  std::atomic<bool> lost_{false};
  mutable std::mutex mutex_;          // of the imports, and of exporting
  std::vector<peer_import*> imports_; // those that live
};

/// When a GPU keeps a promise.
class peer_arrival final : public arrival {
public:
  peer_arrival(std::shared_ptr<peer_timeline> maker, uint64_t value) : maker_(std::move(maker)), value_(value) {}

  const std::shared_ptr<peer_timeline>& maker() const { return maker_; }
  uint64_t value() const { return value_; }
  /// Whether work can wait for it, or need not.
  bool is_submitted() const { return maker_->is_submitted(value_) || maker_->is_lost(); }
  /// Whether the bytes are there, or never will be.
  bool is_over() const { return maker_->is_kept(value_) || maker_->is_lost(); }

private:
  const std::shared_ptr<peer_timeline> maker_;
  const uint64_t value_;
};

/// What one GPU knows of its set: its own timeline, and those of others that it has waited for. Used by the device's
/// thread, except where it says so.
class peers {
public:
  /// `own` null: the GPU is in no set. If the driver refuses to share its semaphore, it is in none either.
  peers(std::shared_ptr<const device_context> context, std::shared_ptr<peer_timeline> own);
  /// The GPU ends, when all of its work has: its promises are kept, or never will be.
  ~peers();

  bool available() const { return own_ != nullptr; }
  const std::shared_ptr<peer_timeline>& own() const { return own_; }

  /// Adds to `links` what work waits for that reads a value promised so. Where the timeline cannot be imported, blocks
  /// until the bytes are there.
  void add_wait(const arrival_ref& when, peer_links& links);
  /// Blocks until the bytes are there.
  static void wait(const arrival_ref& when);
  /// Blocks until the values that a chunk reads are there, or promised by work that has been submitted. Returns false
  /// if the run was stopped before.
  bool await(const chunk_work& work) const;

  /// Signals what lost peers have promised, once more: one that still works may have undone that. For any thread.
  void release_lost();

private:
  peer_import* import_of(const std::shared_ptr<peer_timeline>& maker);

  const std::shared_ptr<const device_context> context_;
  std::shared_ptr<peer_timeline> own_;
  std::mutex mutex_; // of the imports
  std::map<const peer_timeline*, std::unique_ptr<peer_import>> imports_;
};

} // namespace troupe::vulkan

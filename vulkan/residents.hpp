// Values that stay on a GPU between runs (device/resident.hpp): their memory, and their way to and from the host.
//
// A handle knows its value by a number, a place in a table of the device's where the memory is; a handle that ends, on
// any thread, leaves its number in a list that the device's thread works off (`reclaim`). So handles may outlive the
// device: then there is nothing left to free. A submission holds the handles that it uses, and all else that it needs,
// until it is complete, so that nothing comes back too early.
//
// Caches that grow in place lie with their positions first, in memory that has room for more (cache_rows.hpp): then the
// values of several steps are the same bytes, each as many of them as it has rows. Rows are written once: an append
// goes after a value in place if there is no longer value; else, and where no room is left, it gets memory of its own,
// to which the rows before are copied, and which the value before moves to. So no handle's elements ever change. What
// takes time of a step is done while the one before is on its way: caches that have grown in place are likely to grow
// by as much again, all together, so their next values are made then (`grow_ahead`).
//
// All but the handles is used by the device's thread alone.
#pragma once

#include "device/device.hpp"
#include "vulkan/chunk_recorder.hpp"
#include "vulkan/host_imports.hpp"

namespace troupe::vulkan {

/// What a run wants of a cache that may grow in place.
struct wanted_cache {
  const resident* past = nullptr;
  int64_t positions = 0; // with the new ones
};

/// Caches of a run that grow in place, one by one: the values that it makes, and where their rows are.
struct grown_caches {
  std::vector<device_tensor> values;
  std::vector<value_place> rows;
};

class residents {
public:
  /// The values are called those of device `name`. `imports` brings bytes to and from the host.
  residents(device_context& context, std::string name, memory_pool& memory, host_imports& imports, row_copier& rows);
  ~residents();

  /// Returns a value whose bytes are not there yet. Throws `errc::out_of_memory`.
  device_tensor make(dtype type, shape dims);

  /// Returns a chunk's value if it is on this device; else null: it is in the host's memory.
  const device_tensor& find(const moved_value& value) const { return value.resident_on(name_); }

  /// Returns where the elements of `value`, which has some, are in their usual order. Those of a cache that grows are
  /// copied to memory of their own: adds to `before` what must be done before. Throws `errc::invalid_argument` where it
  /// is not this device's.
  value_place place_of(const device_tensor& value, row_moves& before);

  /// Adds to `grown` a cache of `dims` that begins with the rows of `past`; the later rows are not there yet. It has
  /// memory for `room` positions at least if it is not in that of `past`, which then moves there too. Adds to `before`
  /// what must be done before, and throws, as `place_of` does.
  void extend(const device_tensor& past, const shape& dims, int64_t room, grown_caches& grown, row_moves& before);

  /// Returns the caches that a run wants if they have been made ahead, just these and in this order; else nullopt: they
  /// are to be extended. What a run wants is looked at only as far as it is given here, so values of other devices may
  /// be among it.
  std::optional<grown_caches> take_ahead(std::span<const wanted_cache> wanted);

  /// Makes what caches that have grown in place since the last call will be if they grow by as much again: for when the
  /// GPU is at work. Nothing is made if there is no room.
  void grow_ahead() noexcept;

  /// Copies a value to the host, or a host tensor to a new value, after everything submitted to `queue`. See `device`.
  void fetch(const device_tensor& value, timeline& queue, fetch_done done);
  device_tensor put(const tensor& value, timeline& queue);

  /// Frees the memory of values that no handle names any more.
  void reclaim();

  /// Bytes of values that handles name, with the room that their memory has.
  int64_t bytes() const;

private:
  class handle;
  struct returns;
  struct storage;
  struct host_copy;
  struct growth;
  struct next_cache;

  using handle_ptr = std::shared_ptr<const handle>;

  /// Makes a handle whose value has no memory until `places_` says which.
  handle_ptr make_handle(dtype type, shape dims);
  std::shared_ptr<storage> allocate(int64_t bytes, cache_order order);
  const std::shared_ptr<storage>& storage_of(const device_tensor& value) const;
  void move(const device_tensor& past, const std::shared_ptr<storage>& to, int64_t there);
  std::shared_ptr<host_copy> start_copy(const device_tensor& value, host_end host) const;
  static void submit(const host_copy& copy, const VkBufferCopy& region, VkBuffer from, VkBuffer to, timeline& queue,
                     completion done);

  device_context& context_;
  const std::string name_;
  memory_pool& memory_;
  host_imports& imports_;
  row_copier& rows_;
  std::shared_ptr<returns> returns_;
  std::vector<std::shared_ptr<storage>> places_; // by number of a value; null for those without bytes, and of no value
  std::vector<uint32_t> free_;                   // numbers of no value
  std::vector<growth> grown_;                    // since `grow_ahead`
  std::vector<std::vector<next_cache>> ahead_;   // of the latest runs, the newest last
  uint64_t last_ = 0;                            // number of memory
};

} // namespace troupe::vulkan

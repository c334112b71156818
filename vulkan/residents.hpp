// Values that stay on a GPU between runs (device/resident.hpp): their memory, and their way to and from the host.
//
// A handle knows its value by a number. The memory is in a table of the device's; a handle that ends, on any thread, leaves its
// number in a list that the device's thread works off (`reclaim`). So handles may outlive the device: then there is nothing left
// to free. A submission holds the handles that it uses, and all else that it needs, until it is complete, so that nothing comes back
// too early.
//
// All but the handles is used by the device's thread alone.
#pragma once

#include "device/device.hpp"
#include "vulkan/host_imports.hpp"
#include "vulkan/memory.hpp"
#include "vulkan/timeline.hpp"

namespace troupe::vulkan {

class residents {
public:
  /// The values are called those of device `name`. `imports` brings bytes to and from the host.
  residents(device_context& context, std::string name, memory_pool& memory, host_imports& imports);
  ~residents();

  /// Returns a value whose bytes are not there yet. Throws `errc::out_of_memory`.
  device_tensor make(dtype type, shape dims);

  /// Returns a chunk's value if it is on this device; else null: it is in the host's memory.
  device_tensor find(const moved_value& value) const { return value.resident_on(name_); }

  /// Where the bytes of a value are.
  struct place {
    uint64_t id = 0; // never used twice
    VkBuffer buffer = VK_NULL_HANDLE;
    VkDeviceSize offset = 0;
  };
  /// Returns where `value` is, which has bytes. Throws `errc::invalid_argument` where it is not this device's.
  place place_of(const device_tensor& value) const;

  /// Copies a value to the host, or a host tensor to a new value, after everything submitted to `queue`. See `device`.
  void fetch(const device_tensor& value, timeline& queue, fetch_done done);
  device_tensor put(const tensor& value, timeline& queue);

  /// Frees the memory of values that no handle names any more.
  void reclaim();

  /// Bytes of values that handles name.
  int64_t bytes() const;

private:
  class handle;
  struct returns;
  struct host_copy;

  std::shared_ptr<host_copy> start_copy(const device_tensor& value, host_end host) const;
  static void submit(const host_copy& copy, const VkBufferCopy& region, VkBuffer from, VkBuffer to, timeline& queue,
                     completion done);

  device_context& context_;
  const std::string name_;
  memory_pool& memory_;
  host_imports& imports_;
  std::shared_ptr<returns> returns_;
  std::map<uint64_t, allocation> places_; // by number
  uint64_t last_ = 0;
};

} // namespace troupe::vulkan

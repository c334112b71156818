// Values that stay where they were computed: handles to tensors in the memory of one device, outside of all arenas.
//
// A handle is immutable and may cross threads freely. When the last one is gone, on whatever thread, the memory is free: a device
// whose memory belongs to one thread reclaims it there, at its next call. Devices that compute in the host's memory have no kind
// of their own: the host tensor itself is behind the handle (`make_host_resident`).
//
// Loss: a value in a device's own memory is lost with the device. The handle stays; whoever uses it gets errc::device_lost,
// naming device and value. A value in the host's memory survives the device that made it.
#pragma once

#include "tensor/tensor.hpp"

#include <map>

namespace troupe {

/// A tensor that lies on a device (see the top of this file). Devices derive their own kinds.
class resident {
public:
  virtual ~resident() = default;
  resident(const resident&) = delete;
  resident& operator=(const resident&) = delete;

  dtype type() const { return type_; }
  const shape& dims() const { return dims_; }
  /// Returns the number of bytes.
  int64_t bytes() const { return bytes_of(type_, volume(dims_)); }
  /// Returns the name of the device where it is, e.g. "vulkan:0"; "host" where no device made it.
  const std::string& device() const { return device_; }
  /// Returns the tensor where it lies in the host's memory; undefined where only the device can read it.
  const tensor& host() const { return host_; }

protected:
  resident(dtype type, shape dims, std::string device)
      : type_(type), dims_(std::move(dims)), device_(std::move(device)) {}
  resident(tensor host, std::string device)
      : type_(host.type()), dims_(host.dims()), device_(std::move(device)), host_(std::move(host)) {}

private:
  dtype type_;
  shape dims_;
  std::string device_;
  tensor host_;
};

using device_tensor = std::shared_ptr<const resident>;
using named_device_tensors = std::map<std::string, device_tensor>;

/// Returns a handle to a tensor in the host's memory, as made by `device`. Nothing is copied.
device_tensor make_host_resident(tensor host, std::string device);

/// Returns a handle to a copy of a tensor, in the host's memory. Throws `errc::out_of_memory`.
device_tensor copy_to_host_resident(const tensor& host, std::string device);

} // namespace troupe

// One value over several devices: cut along an axis, each device holding a part, or stacked, each device holding a
// tensor of its own. Parts are handles (troupe/device.hpp): immutable, usable as inputs of runs, free when the last one
// is gone.
#pragma once

#include "troupe/engine.hpp"

namespace troupe {

/// See the top of this file. The engine is only needed while values are put and gathered.
class distributed_tensor {
public:
  /// Cuts `whole` along `axis` into parts as equal as they can be, one on each device, in the order of the names.
  /// Throws `errc::invalid_argument` if the axis does not exist or no device is named, and what `engine::put` throws.
  static distributed_tensor split(const engine& e, const tensor& whole, size_t axis,
                                  const std::vector<std::string>& devices);

  /// Puts tensors of one type and shape on devices, one each. Throws `errc::invalid_argument` if they differ, or their
  /// number is not that of the devices.
  static distributed_tensor stack(const engine& e, std::span<const tensor> each,
                                  const std::vector<std::string>& devices);

  /// Takes parts that runs have left on their devices (`run_result::kept`): those of a split along `axis`, in order.
  static distributed_tensor of_split(std::vector<device_tensor> parts, size_t axis);
  /// Likewise, of a stack.
  static distributed_tensor of_stack(std::vector<device_tensor> parts);

  /// Returns the number of parts.
  size_t size() const { return parts_.size(); }
  /// Returns part `i`, where it is. Throws `errc::invalid_argument` where there is none.
  const device_tensor& select(size_t i) const;
  /// Returns the dims of the whole; of a stack, the number of parts comes first.
  shape dims() const;
  /// Returns the whole on the host, parts in order. Throws what `engine::fetch` throws.
  tensor gather(const engine& e) const;

private:
  distributed_tensor(std::vector<device_tensor> parts, size_t axis, bool stacked);

  std::vector<device_tensor> parts_;
  size_t axis_;
  bool stacked_; // `axis_` is 0 then, and not an axis of the parts
};

} // namespace troupe

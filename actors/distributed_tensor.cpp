#include "actors/distributed_tensor.hpp"

#include "base/error.hpp"
#include "tensor/partition.hpp"

namespace troupe {
namespace {

std::vector<device_tensor> put_each(const engine& e, std::span<const tensor> tensors,
                                    const std::vector<std::string>& devices) {
  if (tensors.size() != devices.size())
    fail(errc::invalid_argument, "{} tensors for {} devices", tensors.size(), devices.size());
  std::vector<device_tensor> parts;
  for (size_t i = 0; i < tensors.size(); ++i)
    parts.push_back(e.put(tensors[i], devices[i]));
  return parts;
}

} // namespace

distributed_tensor::distributed_tensor(std::vector<device_tensor> parts, size_t axis, bool stacked)
    : parts_(std::move(parts)), axis_(axis), stacked_(stacked) {
  if (parts_.empty())
    fail(errc::invalid_argument, "a value over no devices");
  for (const device_tensor& part : parts_)
    if (!part)
      fail(errc::invalid_argument, "a part of a value over several devices is null");
  for (const device_tensor& part : parts_) {
    shape wanted = parts_[0]->dims(), found = part->dims();
    if (!stacked_ && axis_ < wanted.size() && found.size() == wanted.size())
      wanted[axis_] = found[axis_];
    if (part->type() != parts_[0]->type() || found != wanted || (!stacked_ && axis_ >= wanted.size()))
      fail(errc::invalid_argument, "{} {} and {} {} are no parts of one value {}", to_string(part->type()),
           to_string(found), to_string(parts_[0]->type()), to_string(parts_[0]->dims()),
           stacked_ ? std::string("stacked") : fmt::format("split along axis {}", axis_));
  }
}

distributed_tensor distributed_tensor::split(const engine& e, const tensor& whole, size_t axis,
                                             const std::vector<std::string>& devices) {
  if (devices.empty())
    fail(errc::invalid_argument, "a value over no devices");
  if (axis >= whole.dims().size())
    fail(errc::invalid_argument, "axis {} of a tensor of shape {}", axis, to_string(whole.dims()));
  const std::vector<tensor> parts = cut(whole, axis, equal_shares(whole.dims()[axis], devices.size()));
  return {put_each(e, parts, devices), axis, false};
}

distributed_tensor distributed_tensor::stack(const engine& e, std::span<const tensor> each,
                                             const std::vector<std::string>& devices) {
  return {put_each(e, each, devices), 0, true};
}

distributed_tensor distributed_tensor::of_split(std::vector<device_tensor> parts, size_t axis) {
  return {std::move(parts), axis, false};
}

distributed_tensor distributed_tensor::of_stack(std::vector<device_tensor> parts) {
  return {std::move(parts), 0, true};
}

const device_tensor& distributed_tensor::select(size_t i) const {
  if (i >= parts_.size())
    fail(errc::invalid_argument, "part {} of a value over {} devices", i, parts_.size());
  return parts_[i];
}

shape distributed_tensor::dims() const {
  shape dims = parts_[0]->dims();
  if (stacked_) {
    dims.insert(dims.begin(), static_cast<int64_t>(parts_.size()));
    return dims;
  }
  dims[axis_] = 0;
  for (const device_tensor& part : parts_)
    dims[axis_] += part->dims()[axis_];
  return dims;
}

tensor distributed_tensor::gather(const engine& e) const {
  std::vector<tensor> parts;
  for (const device_tensor& part : parts_) {
    tensor t = e.fetch(part);
    if (stacked_) {
      shape row = t.dims();
      row.insert(row.begin(), 1);
      t = t.reshaped(std::move(row));
    }
    parts.push_back(std::move(t));
  }
  return join(parts, axis_);
}

} // namespace troupe

#include "vulkan/device_weights.hpp"

#include "base/trim_heap.hpp"
#include "ops/evaluate.hpp"

namespace troupe::vulkan {

device_weights::handle device_weights::get(const weight& w, uploader& uploads) {
  if (handle h = held_.find(w.key))
    return h;
  tensor elements = materialise_for_device(w);
  const handle made = std::make_shared<const allocation>(memory_.allocate(elements.bytes()));
  uploads.upload({static_cast<const std::byte*>(elements.data()), static_cast<size_t>(elements.bytes())}, made);
  held_.add(w.key, made);
  if (w.step)
    drop(std::move(elements));
  return made;
}

void device_weights::drop(tensor computed) {
  dropped_bytes_ += computed.bytes();
  computed = {};
  if (dropped_bytes_ < 2 * uploader::piece_bytes)
    return;
  trim_heap();
  dropped_bytes_ = 0;
}

int64_t device_weights::bytes() const {
  int64_t sum = 0;
  held_.for_each([&](const allocation& a) { sum += a.bytes(); });
  return sum;
}

} // namespace troupe::vulkan

#include "vulkan/device_weights.hpp"

#include "base/trim_heap.hpp"
#include "ops/evaluate.hpp"

namespace troupe::vulkan {
namespace {

hash128 key_of(const weight& w, const weight_packing* packing) {
  hasher h;
  h.add(w.key);
  h.add(packing != nullptr);
  if (packing) {
    h.add(std::span<const int64_t>(packing->dims));
    h.add_bytes(packing->order.data(), packing->order.size() * sizeof(uint32_t));
    h.add(std::span<const int64_t>(packing->padded));
  }
  return h.digest();
}

} // namespace

device_weights::handle device_weights::get(const weight& w, const weight_packing* packing, uploader& uploads) {
  const hash128 key = key_of(w, packing);
  if (handle h = held_.find(key))
    return h;
  tensor elements = materialise(w);
  if (packing)
    elements = pack(elements, *packing);
  if (packing || w.step)
    release_mapped(w);
  const handle made = std::make_shared<const allocation>(memory_.allocate(elements.bytes()));
  uploads.upload({static_cast<const std::byte*>(elements.data()), static_cast<size_t>(elements.bytes())}, made);
  held_.add(key, made);
  if (packing || w.step)
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

#include "vulkan/chunk_results.hpp"

#include "base/parallel.hpp"

#include <cstring>

namespace troupe::vulkan {
namespace {

tensor read_staged(const installed_transfer& t, const bound_plan& bound, const recorded_chunk& r,
                   const arena_slot& slot, const tensor_maker& make) {
  tensor out = make(t.type, bound.dims[t.value]);
  if (out.bytes() == 0)
    return out;
  if (t.exchanged) {
    r.exchanged.read(t.staged, out.bytes(), out.mutable_data());
    return out;
  }
  const host_place place = download_place(r, t, slot);
  place.memory->invalidate(place.offset, out.bytes());
  parallel_copy(out.mutable_data(), place.memory->mapped() + place.offset, out.bytes());
  return out;
}

/// The tensor whose bytes download `i` will be.
tensor promised_tensor(const installed_transfer& t, const bound_plan& bound, const recorded_chunk& r,
                       const run_values& values, size_t i) {
  if (!t.exchanged)
    return values.downloads[i].target();
  const tensor whole = r.exchanged.target();
  return {t.type, bound.dims[t.value], std::make_shared<const tensor>(whole),
          static_cast<const std::byte*>(whole.data()) + t.staged};
}

} // namespace

void poison_results(const recorded_chunk& r) {
  if (tensor exchanged = r.exchanged.target(); exchanged.defined())
    std::memset(exchanged.mutable_data(), 0xFF, static_cast<size_t>(exchanged.bytes()));
  if (!r.download_staging)
    return;
  std::memset(r.download_staging.mapped(), 0xFF, static_cast<size_t>(r.download_staging.bytes()));
  r.download_staging.flush(0, r.download_staging.bytes());
}

void promise_values(const installed_chunk& c, const bound_plan& bound, const recorded_chunk& r,
                    const std::shared_ptr<peer_timeline>& own, run_values& values) {
  if (values.promised.empty())
    return;
  values.peers.signalled = own->next();
  const auto when = std::make_shared<const peer_arrival>(own, values.peers.signalled.value);
  for (uint32_t i = 0; i < values.promised.size(); ++i)
    if (values.promised[i])
      values.work.downloads[i]->promise(promised_tensor(c.downloads[i], bound, r, values, i), when,
                                        values.kept.empty() ? nullptr : values.kept[i]);
}

int64_t fill_downloads(const installed_chunk& c, const bound_plan& bound, const recorded_chunk& r,
                       const arena_slot& slot, const tensor_maker& make, run_values& values) {
  int64_t bytes = 0;
  for (size_t i = 0; i < c.downloads.size(); ++i) {
    const installed_transfer& t = c.downloads[i];
    if (t.in_place)
      continue;
    moved_value& made = *values.work.downloads[i];
    bytes += made.goes_to_host() ? t.bytes(bound) : 0;
    if (!values.promised.empty() && values.promised[i])
      continue;
    tensor host;
    if (made.goes_to_host())
      host = t.is_direct() ? values.downloads[i].take() : read_staged(t, bound, r, slot, make);
    made.fill(std::move(host), values.kept.empty() ? nullptr : std::move(values.kept[i]));
  }
  values.work.downloads.clear(); // their readers alone hold them when the chunk is answered
  return bytes;
}

void forget_stayed(const installed_chunk& c, const residents& own, const chunk_work& work,
                   std::vector<device_timing>& timings) {
  const auto forget = [&](device_timing::work kind, value_id v) {
    std::erase_if(timings, [&](const device_timing& t) { return t.kind == kind && t.id == v; });
  };
  for (size_t i = 0; work.timed && i < work.uploads.size(); ++i)
    if (own.find(*work.uploads[i]))
      forget(device_timing::work::upload, c.uploads[i].value);
  for (size_t i = 0; work.timed && i < work.downloads.size(); ++i)
    if (!work.downloads[i]->goes_to_host())
      forget(device_timing::work::download, c.downloads[i].value);
}

} // namespace troupe::vulkan

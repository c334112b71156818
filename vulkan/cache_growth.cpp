#include "vulkan/cache_growth.hpp"

#include <algorithm>

namespace troupe::vulkan {
namespace {

/// Whether the run leaves all caches in the device's memory, and there alone.
bool caches_stay(const installed_binding& binding, const chunk_work& work) {
  const auto stays = [&](const cache_append& a) {
    const moved_value& made = *work.downloads.at(a.download);
    return made.stays() && !made.goes_to_host();
  };
  return !binding.rooms.empty() && std::ranges::all_of(binding.layout->appends, stays);
}

} // namespace

std::optional<grown_caches> take_caches_ahead(residents& own, const installed_binding& binding,
                                              const chunk_work& work) {
  if (!caches_stay(binding, work))
    return std::nullopt;
  std::vector<wanted_cache> wanted;
  wanted.reserve(binding.rooms.size());
  for (size_t i = 0; i < binding.rooms.size(); ++i) {
    const value_ref& past = work.uploads.at(binding.layout->appends[i].upload);
    wanted.push_back({past->resident().get(), binding.rooms[i].positions});
  }
  return own.take_ahead(wanted);
}

bool grows_in_place(const residents& own, const installed_binding& binding, const chunk_work& work) {
  const auto is_here = [&](const cache_append& a) { return own.find(*work.uploads.at(a.upload)) != nullptr; };
  return caches_stay(binding, work) && std::ranges::all_of(binding.layout->appends, is_here);
}

grown_caches extend_caches(residents& own, const installed_binding& binding, run_values& values) {
  const bound_plan& bound = *binding.bound;
  grown_caches grown;
  for (size_t i = 0; i < binding.rooms.size(); ++i) {
    const cache_append& a = binding.layout->appends[i];
    const device_tensor& past = own.find(*values.work.uploads.at(a.upload));
    expects(past->dims() == bound.dims[a.past], "a cache's dims are not the planned ones");
    own.extend(past, bound.dims[a.present], binding.rooms[i].room, grown, values.before);
  }
  return grown;
}

std::vector<uint32_t> leave_caches(grown_caches caches, const installed_binding& binding, const chunk_work& work) {
  std::vector<uint32_t> downloads;
  downloads.reserve(caches.values.size());
  for (size_t i = 0; i < caches.values.size(); ++i) {
    const size_t at = downloads.emplace_back(static_cast<uint32_t>(binding.layout->appends[i].download));
    work.downloads[at]->fill({}, std::move(caches.values[i]));
  }
  return downloads;
}

} // namespace troupe::vulkan

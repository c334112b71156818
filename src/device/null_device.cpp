#include "device/null_device.hpp"

#include <algorithm>
#include <cstring>

namespace troupe {
namespace {

/// The dims of `v`, 1 where they depend on data that this device does not compute.
shape dims_of(const bound_plan& bound, value_id v) {
  if (bound.source->segment_of_value[v] <= bound.segment)
    return bound.dims[v];
  shape dims;
  for (const dim& d : *bound.source->program->values[v].dims)
    dims.push_back(d.is_constant() ? d.constant() : 1);
  return dims;
}

std::vector<tensor> zero_downloads(const bound_plan& bound, const chunk& c) {
  std::vector<tensor> downloads;
  for (value_id v : c.downloads) {
    tensor& t = downloads.emplace_back(bound.source->program->values[v].type, dims_of(bound, v));
    if (!holds_objects(t.type()) && t.bytes() > 0)
      std::memset(t.mutable_data(), 0, static_cast<size_t>(t.bytes()));
  }
  return downloads;
}

} // namespace

void null_device::install(bound_plan_ptr bound, device_index) {
  const uint64_t id = bound->id;
  plans_[id] = {std::move(bound), {}};
}

void null_device::retire(uint64_t bound_plan) {
  plans_.erase(bound_plan);
}

void null_device::submit(chunk_work work, chunk_done done) {
  const auto it = plans_.find(work.bound_plan);
  if (it == plans_.end())
    return done({.code = errc::internal, .message = "the chunk's plan is not installed"});
  installed& plan = it->second;
  const auto [entry, is_new] = plan.downloads.try_emplace(work.chunk);
  if (is_new)
    entry->second = zero_downloads(*plan.bound, plan.bound->source->chunks[work.chunk]);
  for (size_t i = 0; i < work.downloads.size(); ++i)
    work.downloads[i]->fill(entry->second.at(i));
  ++chunks_;
  done({});
}

device_stats null_device::stats() const {
  return {.chunks = chunks_, .installed_plans = static_cast<int64_t>(plans_.size())};
}

} // namespace troupe

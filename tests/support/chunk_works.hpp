// Chunks for devices that a test calls itself.
#pragma once

#include "device/device.hpp"

namespace troupe::test {

/// Returns the work of a chunk that reads `uploads`, with a value for each of its downloads.
inline chunk_work work_of(const bound_plan& bound, chunk_id id, std::vector<tensor> uploads) {
  chunk_work work{.bound_plan = bound.id, .chunk = id};
  for (tensor& t : uploads)
    work.uploads.push_back(std::make_shared<moved_value>(std::move(t)));
  for (size_t i = 0; i < bound.source->chunks.at(id).downloads.size(); ++i)
    work.downloads.push_back(std::make_shared<moved_value>());
  return work;
}

} // namespace troupe::test

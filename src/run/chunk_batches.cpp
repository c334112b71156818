#include "run/chunk_batches.hpp"

#include <algorithm>

namespace troupe {

void chunk_batches::add(device_index device, chunk_work work, bool waits) {
  if (waits)
    open_ = batches_.size();
  auto batch = std::ranges::lower_bound(batches_.begin() + static_cast<std::ptrdiff_t>(open_), batches_.end(), device,
                                        {}, &device_batch::first);
  if (batch == batches_.end() || batch->first != device)
    batch = batches_.emplace(batch, device, run_chunks());
  batch->second.works.push_back(std::move(work));
}

std::vector<device_batch> chunk_batches::take() {
  open_ = 0;
  return std::exchange(batches_, {});
}

} // namespace troupe

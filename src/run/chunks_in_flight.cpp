#include "run/chunks_in_flight.hpp"

#include <algorithm>

namespace troupe {

void chunks_in_flight::add(chunk_id chunk) {
  sent_[chunk] = true;
  ++counts_[plan_.chunks[chunk].device];
}

bool chunks_in_flight::end(chunk_id chunk) {
  if (!contains(chunk))
    return false;
  sent_[chunk] = false;
  --counts_[plan_.chunks[chunk].device];
  return true;
}

void chunks_in_flight::forget(device_index device) {
  for (chunk_id chunk = 0; chunk < sent_.size(); ++chunk)
    if (plan_.chunks[chunk].device == device)
      sent_[chunk] = false;
  counts_[device] = 0;
}

bool chunks_in_flight::empty() const {
  return std::ranges::all_of(counts_, [](uint32_t count) { return count == 0; });
}

bool chunks_in_flight::owes_answer(device_index device) const {
  const auto is_sent = [this](chunk_id chunk) { return sent_[chunk]; };
  for (chunk_id chunk = 0; chunk < sent_.size() && on_device(device); ++chunk)
    if (sent_[chunk] && plan_.chunks[chunk].device == device &&
        std::ranges::none_of(plan_.chunks[chunk].predecessors, is_sent))
      return true;
  return false;
}

} // namespace troupe

#include "vulkan/staged_values.hpp"

#include <limits>

namespace troupe::vulkan {
namespace {

constexpr chunk_id no_reader = std::numeric_limits<chunk_id>::max(), several = no_reader - 1;

} // namespace

staged_values::staged_values(const plan& p, device_index self)
    : plan_(p), reader_(p.program->values.size(), no_reader), leaving_(reader_.size(), 0) {
  for (chunk_id c = 0; c < p.chunks.size(); ++c) {
    if (p.chunks[c].device != self)
      continue;
    for (const node_id n : p.chunks[c].nodes)
      for (const value_id v : p.program->nodes[n].inputs)
        if (v != no_value && !is_view(p.program->nodes[n])) {
          chunk_id& reader = reader_[root(c, v)];
          reader = reader == no_reader || reader == c ? c : several;
        }
    for (const value_id v : p.chunks[c].downloads)
      ++leaving_[root(c, v)];
  }
}

bool staged_values::is_read_by_one(chunk_id c, value_id v) const {
  const value_id r = root(c, v);
  return reader_[r] == c && leaving_[r] == 0;
}

bool staged_values::is_only_made(chunk_id c, value_id v) const {
  const value_id r = root(c, v);
  const node_id maker = plan_.producer[r];
  return reader_[r] == no_reader && leaving_[r] == 1 && maker >= 0 && plan_.chunk_of_node[maker] == c;
}

} // namespace troupe::vulkan

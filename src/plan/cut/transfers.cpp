#include "plan/cut/transfers.hpp"

namespace troupe {
namespace {

/// An end of a transfer: a chunk's device, or the caller.
struct transfer_end {
  std::string_view host;
  bool host_memory = true;
};

transfer_end end_of(const plan& p, const std::optional<chunk_id>& chunk) {
  if (!chunk)
    return {};
  const device_info& device = p.devices[p.chunks[*chunk].device];
  return {device.host, device.host_memory};
}

transfer_route route_between(const transfer_end& from, const transfer_end& to) {
  if (from.host != to.host)
    return transfer_route::remote;
  return from.host_memory && to.host_memory ? transfer_route::direct : transfer_route::host_block;
}

} // namespace

std::string_view to_string(transfer_route route) {
  switch (route) {
    case transfer_route::direct: return "direct";
    case transfer_route::host_block: return "host_block";
    case transfer_route::remote: return "remote";
  }
  return "unknown";
}

std::vector<transfer> find_transfers(const plan& p) {
  std::vector<bool> wanted(p.program->values.size(), false); // by the caller, or for its shape
  for (value_id v : p.program->outputs)
    wanted[v] = true;
  for (const data_symbol& symbol : p.symbols)
    wanted[symbol.value] = true;
  std::vector<transfer> all;
  const auto add = [&](value_id v, std::optional<chunk_id> from, std::optional<chunk_id> to) {
    all.push_back({v, from, to, route_between(end_of(p, from), end_of(p, to))});
  };
  for (chunk_id id = 0; id < p.chunks.size(); ++id) {
    for (value_id v : p.chunks[id].uploads) {
      const node_id maker = p.producer[v];
      add(v, maker < 0 ? std::nullopt : std::optional(p.chunk_of_node[maker]), id);
    }
    for (value_id v : p.chunks[id].downloads)
      if (wanted[v])
        add(v, id, std::nullopt);
  }
  return all;
}

} // namespace troupe

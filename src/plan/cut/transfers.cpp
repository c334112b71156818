#include "plan/cut/transfers.hpp"

namespace troupe {
namespace {

/// An end of a transfer: a chunk's device, or the caller, which reads and writes the host's memory.
const device_info& end_of(const plan& p, const std::optional<chunk_id>& chunk) {
  static const device_info caller;
  return chunk ? p.devices[p.chunks[*chunk].device] : caller;
}

} // namespace

transfer_route route_of(const plan& p, const std::optional<chunk_id>& from, const std::optional<chunk_id>& to) {
  const device_info &maker = end_of(p, from), &reader = end_of(p, to);
  if (maker.host != reader.host)
    return transfer_route::remote;
  if (from && to && is_peer_edge(p, *from, *to))
    return transfer_route::peer;
  return maker.host_memory && reader.host_memory ? transfer_route::direct : transfer_route::host_block;
}

bool is_peer_edge(const plan& p, chunk_id from, chunk_id to) {
  const chunk &maker = p.chunks[from], &reader = p.chunks[to];
  return maker.device != reader.device && maker.segment == reader.segment &&
         are_peers(p.devices[maker.device], p.devices[reader.device]);
}

std::string_view to_string(transfer_route route) {
  switch (route) {
    case transfer_route::direct: return "direct";
    case transfer_route::host_block: return "host_block";
    case transfer_route::remote: return "remote";
    case transfer_route::peer: return "peer";
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
    all.push_back({v, from, to, route_of(p, from, to)});
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

#include "plan/print.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace troupe {
namespace {

using json = nlohmann::ordered_json;

std::string hex(const hash128& key) {
  return fmt::format("{:016x}{:016x}", key.high, key.low);
}

std::string dims_text(const plan& p, const bound_plan* bound, value_id v) {
  const value& info = p.program->values[v];
  if (bound && p.segment_of_value[v] <= bound->segment)
    return to_string(std::span<const int64_t>(bound->dims[v]));
  return info.dims ? to_string(std::span<const dim>(*info.dims)) : "[?]";
}

std::string value_text(const plan& p, const bound_plan* bound, value_id v) {
  const value& info = p.program->values[v];
  return fmt::format("{} {}{}", info.name, to_string(info.type), dims_text(p, bound, v));
}

void print_devices(std::string& out, const plan& p, const bound_plan* bound) {
  const auto at = std::back_inserter(out);
  for (device_index d = 0; d < p.devices.size(); ++d) {
    fmt::format_to(at, "device {}: {} ({} bytes), weights {} bytes", d, p.devices[d].name, p.devices[d].memory_bytes,
                   p.weight_bytes[d]);
    if (bound)
      fmt::format_to(at, ", arena {} bytes ({} without reuse), inputs and outputs {} bytes",
                     bound->memory[d].arena_bytes, bound->memory[d].bytes_without_reuse,
                     bound->memory[d].transfer_bytes);
    out += '\n';
  }
}

void print_values(std::string& out, const plan& p, const bound_plan* bound, const char* title,
                  const std::vector<value_id>& values) {
  for (value_id v : values)
    fmt::format_to(std::back_inserter(out), "  {} {}\n", title, value_text(p, bound, v));
}

void print_chunk(std::string& out, const plan& p, const bound_plan* bound, chunk_id id) {
  const chunk& c = p.chunks[id];
  fmt::format_to(std::back_inserter(out), "chunk {} on {}", id, p.devices[c.device].name);
  if (p.segment_count > 1)
    fmt::format_to(std::back_inserter(out), ", segment {}", c.segment);
  if (!c.predecessors.empty())
    fmt::format_to(std::back_inserter(out), ", after {}", fmt::join(c.predecessors, ", "));
  out += c.produces_outputs ? ", makes outputs\n" : "\n";
  print_values(out, p, bound, "upload  ", c.uploads);
  for (node_id n : c.nodes) {
    const node& call = p.program->nodes[n];
    fmt::format_to(std::back_inserter(out), "  run      {} →", describe(call));
    for (value_id v : call.outputs)
      if (v != no_value)
        fmt::format_to(std::back_inserter(out), " {}{}", value_text(p, bound, v),
                       p.storage[v] == v ? "" : fmt::format(" (view of {})", p.program->values[p.storage[v]].name));
    out += '\n';
  }
  print_values(out, p, bound, "download", c.downloads);
}

json names(const plan& p, const std::vector<value_id>& values) {
  json list = json::array();
  for (value_id v : values)
    list.push_back(p.program->values[v].name);
  return list;
}

json device_json(const plan& p, const bound_plan* bound, device_index d) {
  json j{{"name", p.devices[d].name},
         {"kind", std::string(to_string(p.devices[d].kind))},
         {"memory_bytes", p.devices[d].memory_bytes},
         {"weight_bytes", p.weight_bytes[d]}};
  if (bound) {
    j["arena_bytes"] = bound->memory[d].arena_bytes;
    j["arena_bytes_without_reuse"] = bound->memory[d].bytes_without_reuse;
    j["transfer_bytes"] = bound->memory[d].transfer_bytes;
  }
  return j;
}

json value_json(const plan& p, const bound_plan* bound, value_id v) {
  const value& info = p.program->values[v];
  json j{{"name", info.name}, {"type", std::string(to_string(info.type))}};
  if (bound && p.segment_of_value[v] <= bound->segment)
    j["dims"] = bound->dims[v];
  else
    j["dims"] = dims_text(p, nullptr, v);
  if (p.storage[v] != v)
    j["view_of"] = p.program->values[p.storage[v]].name;
  return j;
}

json chunk_json(const plan& p, const bound_plan* bound, chunk_id id) {
  const chunk& c = p.chunks[id];
  json nodes = json::array();
  for (node_id n : c.nodes) {
    const node& call = p.program->nodes[n];
    json outputs = json::array();
    for (value_id v : call.outputs)
      if (v != no_value)
        outputs.push_back(value_json(p, bound, v));
    nodes.push_back({{"name", call.name}, {"op", call.op_type}, {"domain", call.domain}, {"outputs", outputs}});
  }
  return {{"id", id},
          {"device", p.devices[c.device].name},
          {"segment", c.segment},
          {"predecessors", c.predecessors},
          {"uploads", names(p, c.uploads)},
          {"nodes", nodes},
          {"downloads", names(p, c.downloads)},
          {"produces_outputs", c.produces_outputs}};
}

} // namespace

std::string to_text(const plan& p, const bound_plan* bound) {
  std::string out = fmt::format("plan {}: {} nodes in {} chunks on {} devices, {} segments\n", hex(p.key),
                                p.program->nodes.size(), p.chunks.size(), p.devices.size(), p.segment_count);
  print_devices(out, p, bound);
  for (chunk_id id = 0; id < p.chunks.size(); ++id)
    print_chunk(out, p, bound, id);
  return out;
}

std::string to_json(const plan& p, const bound_plan* bound) {
  json j{{"key", hex(p.key)}, {"segments", p.segment_count}};
  j["devices"] = json::array();
  for (device_index d = 0; d < p.devices.size(); ++d)
    j["devices"].push_back(device_json(p, bound, d));
  j["chunks"] = json::array();
  for (chunk_id id = 0; id < p.chunks.size(); ++id)
    j["chunks"].push_back(chunk_json(p, bound, id));
  // Names come from the file and need not be UTF-8.
  return j.dump(2, ' ', false, json::error_handler_t::replace);
}

} // namespace troupe

#include "plan/print.hpp"

#include "graph/bodies.hpp"
#include "plan/gpu_support.hpp"
#include "plan/granularity.hpp"
#include "plan/policies.hpp"
#include "plan/predict.hpp"
#include "plan/waves.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <sstream>

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

/// Says by node why it is not on a GPU of the plan; empty where it is, or where a GPU could run it too.
std::vector<std::string> missing_on_gpus(const plan& p) {
  std::vector<std::string> reasons(p.program->nodes.size());
  if (std::none_of(p.devices.begin(), p.devices.end(), [](const device_info& d) { return d.gpu.has_value(); }))
    return reasons;
  gpu_support support(*p.program);
  for (size_t n = 0; n < reasons.size(); ++n) {
    gpu_obstacle found = gpu_obstacle::none;
    for (const device_info& d : p.devices) {
      if (!d.gpu || p.devices[p.placement[n]].gpu || has_body(p.program->nodes[n]))
        continue;
      found = support.obstacle(static_cast<node_id>(n), *d.gpu);
      if (found == gpu_obstacle::none)
        break;
    }
    if (found != gpu_obstacle::none)
      reasons[n] = describe(found, p.program->nodes[n]);
  }
  return reasons;
}

/// Counts nodes by device and reason, so that a large model's are one line each.
void print_missing(std::string& out, const plan& p, const std::vector<std::string>& missing) {
  std::map<std::pair<device_index, std::string_view>, size_t> counts;
  for (size_t n = 0; n < missing.size(); ++n)
    if (!missing[n].empty())
      ++counts[{p.placement[n], missing[n]}];
  for (const auto& [key, count] : counts)
    fmt::format_to(std::back_inserter(out), "not on a GPU: {} {} on {}: {}\n", count, count == 1 ? "node" : "nodes",
                   p.devices[key.first].name, key.second);
}

void print_devices(std::string& out, const plan& p, const bound_plan* bound) {
  const auto at = std::back_inserter(out);
  for (device_index d = 0; d < p.devices.size(); ++d) {
    if (p.devices[d].kind == device_kind::control)
      continue;
    fmt::format_to(at, "device {}: {} ({} bytes), weights {} bytes", d, p.devices[d].name, p.devices[d].memory_bytes,
                   p.weight_bytes[d]);
    if (bound)
      fmt::format_to(at, ", arena {} bytes ({} live at most, {} without reuse), inputs and outputs {} bytes",
                     bound->layout->memory[d].arena_bytes, bound->layout->memory[d].peak_bytes,
                     bound->layout->memory[d].bytes_without_reuse, bound->layout->memory[d].transfer_bytes);
    out += '\n';
  }
}

/// The policy, what it says about its choice, and how long a run should take.
void print_decisions(std::string& out, const plan& p, const bound_plan* bound) {
  const auto at = std::back_inserter(out);
  fmt::format_to(at, "policy {}", to_string(p.policy));
  if (bound && p.segment_count == 1)
    fmt::format_to(at, ", predicted {:.3f} ms", predict(p, bound->dims).makespan_s * 1e3);
  out += '\n';
  for (const std::string& remark : p.remarks)
    fmt::format_to(at, "note: {}\n", remark);
}

void print_values(std::string& out, const plan& p, const bound_plan* bound, const char* title,
                  const std::vector<value_id>& values) {
  for (value_id v : values)
    fmt::format_to(std::back_inserter(out), "  {} {}\n", title, value_text(p, bound, v));
}

void print_node(std::string& out, const plan& p, const bound_plan* bound, node_id n, const std::string& missing) {
  const node& call = p.program->nodes[n];
  fmt::format_to(std::back_inserter(out), "  run      {} →", describe(call));
  for (value_id v : call.outputs)
    if (v != no_value)
      fmt::format_to(std::back_inserter(out), " {}{}", value_text(p, bound, v),
                     p.storage[v] == v ? "" : fmt::format(" (view of {})", p.program->values[p.storage[v]].name));
  if (!missing.empty())
    fmt::format_to(std::back_inserter(out), " ({})", missing);
  out += '\n';
}

/// How the chunk is submitted, and whether another way would be worth it.
std::string submission_text(const plan& p, const chunk& c, const bound_plan& bound) {
  const submission_facts facts = facts_of(p, c, bound.dims);
  if (choose_granularity(facts) == granularity::fused)
    return "one submission";
  return fmt::format("one submission (wave by wave would hide {:.3f} ms of read-back)",
                     1e3 * std::min(facts.readback_s, facts.work_after_s));
}

void print_chunk(std::string& out, const plan& p, const bound_plan* bound, chunk_id id,
                 const std::vector<std::string>& missing) {
  const chunk& c = p.chunks[id];
  fmt::format_to(std::back_inserter(out), "chunk {} on {}, {} {}", id, p.devices[c.device].name, c.nodes.size(),
                 c.nodes.size() == 1 ? "node" : "nodes");
  if (!c.wave_begin.empty())
    fmt::format_to(std::back_inserter(out), ", {} waves ({} at most in one), {} barriers", c.wave_count(),
                   widest_wave(p, c), c.barrier_count());
  if (bound && bound->segment == c.segment && c.wave_count() > 1)
    fmt::format_to(std::back_inserter(out), ", {}", submission_text(p, c, *bound));
  if (p.segment_count > 1)
    fmt::format_to(std::back_inserter(out), ", segment {}", c.segment);
  if (!c.predecessors.empty())
    fmt::format_to(std::back_inserter(out), ", after {}", fmt::join(c.predecessors, ", "));
  out += c.produces_outputs ? ", makes outputs\n" : "\n";
  print_values(out, p, bound, "upload  ", c.uploads);
  for (uint32_t i = 0, wave = 0; i < c.nodes.size(); ++i) {
    if (wave < c.wave_count() && c.wave_begin[wave] == i)
      fmt::format_to(std::back_inserter(out), "  wave {}\n", wave++);
    print_node(out, p, bound, c.nodes[i], missing[c.nodes[i]]);
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
    j["arena_bytes"] = bound->layout->memory[d].arena_bytes;
    j["peak_bytes"] = bound->layout->memory[d].peak_bytes;
    j["arena_bytes_without_reuse"] = bound->layout->memory[d].bytes_without_reuse;
    j["transfer_bytes"] = bound->layout->memory[d].transfer_bytes;
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

json chunk_json(const plan& p, const bound_plan* bound, chunk_id id, const std::vector<std::string>& missing) {
  const chunk& c = p.chunks[id];
  json nodes = json::array();
  for (node_id n : c.nodes) {
    const node& call = p.program->nodes[n];
    json outputs = json::array();
    for (value_id v : call.outputs)
      if (v != no_value)
        outputs.push_back(value_json(p, bound, v));
    nodes.push_back({{"name", call.name}, {"op", call.op_type}, {"domain", call.domain}, {"outputs", outputs}});
    if (!missing[n].empty())
      nodes.back()["not_on_gpu"] = missing[n];
  }
  json j{{"id", id},
         {"device", p.devices[c.device].name},
         {"segment", c.segment},
         {"predecessors", c.predecessors},
         {"uploads", names(p, c.uploads)},
         {"nodes", nodes},
         {"downloads", names(p, c.downloads)},
         {"produces_outputs", c.produces_outputs}};
  if (!c.wave_begin.empty()) {
    j["wave_begin"] = c.wave_begin;
    j["widest_wave"] = widest_wave(p, c);
    j["barriers"] = c.barrier_count();
    if (bound && bound->segment == c.segment)
      j["best_granularity"] = std::string(to_string(choose_granularity(facts_of(p, c, bound->dims))));
  }
  return j;
}

/// Bodies are plans too; they stand behind the chunks, indented.
void print_bodies(std::string& out, const plan& p) {
  for (const planned_body& body : p.bodies) {
    fmt::format_to(std::back_inserter(out), "{}, body '{}'\n", describe(p.program->nodes[body.node]), body.name);
    std::istringstream lines(to_text(*body.compiled, nullptr));
    for (std::string line; std::getline(lines, line);)
      out += "  " + line + '\n';
  }
}

size_t count_real_devices(const plan& p) {
  return static_cast<size_t>(std::count_if(p.devices.begin(), p.devices.end(),
                                           [](const device_info& d) { return d.kind != device_kind::control; }));
}

json plan_json(const plan& p, const bound_plan* bound) {
  json j{{"key", hex(p.key)},
         {"segments", p.segment_count},
         {"policy", std::string(to_string(p.policy))},
         {"remarks", p.remarks}};
  if (bound && p.segment_count == 1)
    j["predicted_ms"] = predict(p, bound->dims).makespan_s * 1e3;
  j["devices"] = json::array();
  for (device_index d = 0; d < p.devices.size(); ++d)
    if (p.devices[d].kind != device_kind::control)
      j["devices"].push_back(device_json(p, bound, d));
  const std::vector<std::string> missing = missing_on_gpus(p);
  j["chunks"] = json::array();
  for (chunk_id id = 0; id < p.chunks.size(); ++id)
    j["chunks"].push_back(chunk_json(p, bound, id, missing));
  for (const planned_body& body : p.bodies)
    j["bodies"].push_back({{"node", p.program->nodes[body.node].name},
                           {"name", body.name},
                           {"plan", plan_json(*body.compiled, nullptr)}});
  return j;
}

} // namespace

std::string to_text(const plan& p, const bound_plan* bound) {
  std::string out = fmt::format("plan {}: {} nodes in {} chunks on {} devices, {} segments\n", hex(p.key),
                                p.program->nodes.size(), p.chunks.size(), count_real_devices(p), p.segment_count);
  print_decisions(out, p, bound);
  print_devices(out, p, bound);
  const std::vector<std::string> missing = missing_on_gpus(p);
  print_missing(out, p, missing);
  for (chunk_id id = 0; id < p.chunks.size(); ++id)
    print_chunk(out, p, bound, id, missing);
  print_bodies(out, p);
  return out;
}

std::string to_json(const plan& p, const bound_plan* bound) {
  // Names come from the file and need not be UTF-8.
  return plan_json(p, bound).dump(2, ' ', false, json::error_handler_t::replace);
}

} // namespace troupe

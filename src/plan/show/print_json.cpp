#include "base/printable.hpp"
#include "plan/cut/waves.hpp"
#include "plan/estimate/predict.hpp"
#include "plan/place/policy_library.hpp"
#include "plan/saved_plan.hpp"
#include "plan/show/explain.hpp"
#include "plan/show/print.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace troupe {
namespace {

using nlohmann::ordered_json; // members stay in the order in which they are written

class json_printer {
public:
  json_printer(const plan& p, const bound_plan* bound)
      : p_(p), bound_(bound), reasons_(placement_reasons(p)), growing_(growing_caches(p)) {}

  ordered_json run() const {
    ordered_json j{{"troupe_plan", saved_plan_version},
                   {"key", to_hex(p_.key)},
                   {"model", {{"name", p_.program->name}, {"structure", to_hex(p_.structure)}}},
                   {"policy", policy_name(p_.options)},
                   {"segments", p_.segment_count},
                   {"remarks", p_.remarks}};
    if (bound_ && p_.segment_count == 1)
      j["predicted_ms"] = predict(p_, bound_->dims).makespan_s * 1e3;
    if (p_.split)
      j["split"] = {{"along", p_.split->along}, {"devices", p_.split->team}, {"begin", p_.split->begin}};
    j["devices"] = ordered_json::array();
    for (device_index d = 0; d < p_.devices.size(); ++d)
      if (p_.devices[d].kind != device_kind::control)
        j["devices"].push_back(device_of(d));
    j["transfers"] = ordered_json::array();
    for (const transfer& t : p_.transfers)
      j["transfers"].push_back(transfer_of(t));
    j["chunks"] = ordered_json::array();
    for (chunk_id id = 0; id < p_.chunks.size(); ++id)
      j["chunks"].push_back(chunk_of(id));
    for (const planned_body& body : p_.bodies)
      j["bodies"].push_back({{"node", p_.program->nodes[body.node].name},
                             {"name", body.name},
                             {"plan", json_printer(*body.compiled, nullptr).run()}});
    return j;
  }

private:
  std::string name(value_id v) const { return printable(p_.program->values[v].name); }

  ordered_json names(const std::vector<value_id>& values) const {
    ordered_json list = ordered_json::array();
    for (value_id v : values)
      list.push_back(v == no_value ? "" : name(v));
    return list;
  }

  ordered_json device_of(device_index d) const {
    ordered_json j{{"name", p_.devices[d].name},
                   {"kind", std::string(to_string(p_.devices[d].kind))},
                   {"memory_bytes", p_.devices[d].memory_bytes},
                   {"nodes", std::count(p_.placement.begin(), p_.placement.end(), d)},
                   {"weight_bytes", p_.weight_bytes[d]}};
    if (bound_) {
      const device_memory& m = bound_->layout->memory[d];
      j["arena_bytes"] = m.arena_bytes;
      j["peak_bytes"] = m.peak_bytes;
      j["arena_bytes_without_reuse"] = m.bytes_without_reuse;
      j["transfer_bytes"] = m.transfer_bytes;
    }
    if (const device_info& device = p_.devices[d]; is_remote(device))
      j["host"] = device.host;
    return j;
  }

  ordered_json transfer_of(const transfer& t) const {
    ordered_json j{{"value", name(t.value)}, {"bytes", nullptr}, {"route", std::string(to_string(t.route))}};
    if (const auto bytes = bytes_in(p_, bound_, t.value))
      j["bytes"] = *bytes;
    if (const auto network_s = network_seconds(p_, bound_, t))
      j["network_ms"] = *network_s * 1e3;
    const auto end = [&](const char* side, const std::optional<chunk_id>& chunk) {
      j[side] = chunk ? ordered_json{{"device", p_.devices[p_.chunks[*chunk].device].name}, {"chunk", *chunk}}
                      : ordered_json(nullptr);
    };
    end("from", t.from);
    end("to", t.to);
    return j;
  }

  ordered_json value_of(value_id v) const {
    const value& info = p_.program->values[v];
    ordered_json j{{"name", info.name}, {"type", std::string(to_string(info.type))}};
    if (bound_ && p_.segment_of_value[v] <= bound_->segment)
      j["dims"] = bound_->dims[v];
    else
      j["dims"] = dims_text(p_, nullptr, v);
    if (p_.storage[v] != v)
      j[is_part(p_, v) ? "part_of" : "view_of"] = name(p_.storage[v]);
    return j;
  }

  ordered_json node_of(node_id n) const {
    const node& call = p_.program->nodes[n];
    ordered_json outputs = ordered_json::array();
    for (value_id v : call.outputs)
      if (v != no_value)
        outputs.push_back(value_of(v));
    ordered_json j{{"name", call.name},
                   {"op", call.op_type},
                   {"domain", call.domain},
                   {"inputs", names(call.inputs)},
                   {"outputs", std::move(outputs)},
                   {"because", reasons_[n].text}};
    if (p_.inserted[n])
      j["inserted"] = true;
    if (growing_[n])
      j["in_place_if_bound"] = true;
    return j;
  }

  ordered_json chunk_of(chunk_id id) const {
    const chunk& c = p_.chunks[id];
    ordered_json nodes = ordered_json::array();
    for (node_id n : c.nodes)
      nodes.push_back(node_of(n));
    ordered_json j{{"id", id},
                   {"device", p_.devices[c.device].name},
                   {"segment", c.segment},
                   {"predecessors", c.predecessors},
                   {"uploads", names(c.uploads)},
                   {"nodes", std::move(nodes)},
                   {"downloads", names(c.downloads)},
                   {"produces_outputs", c.produces_outputs}};
    if (!c.wave_begin.empty()) {
      j["wave_begin"] = c.wave_begin;
      j["widest_wave"] = widest_wave(p_, c);
      j["barriers"] = c.barrier_count();
    }
    return j;
  }

  const plan& p_;
  const bound_plan* bound_;
  const std::vector<placement_reason> reasons_;
  const std::vector<bool> growing_; // by node
};

} // namespace

std::string to_json(const plan& p, const bound_plan* bound) {
  // Values' names come from the file and need not be UTF-8.
  return json_printer(p, bound).run().dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

} // namespace troupe

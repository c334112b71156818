#include "base/json_reader.hpp"
#include "base/text_file.hpp"
#include "schedules/xml_elements.hpp"
#include "sim/cluster.hpp"
#include "sim/platform_file.hpp"

#include <fmt/ranges.h>

#include <cmath>
#include <set>

namespace troupe::sim {
namespace {

using json = nlohmann::json;

constexpr int cluster_version = 1;
constexpr int64_t max_cluster_bytes = 1 << 26;
constexpr double least_speed = 1, most_speed = 1e21, most_seconds = 100;

/// A whole number of `gpu_features` by name, or a flag.
struct feature {
  std::string_view name;
  uint32_t gpu_features::*number = nullptr;
  bool gpu_features::*flag = nullptr;
};
constexpr auto features = std::to_array<feature>({
    {"subgroup_size", &gpu_features::subgroup_size},
    {"max_group_size", &gpu_features::max_group_size},
    {"shared_bytes", &gpu_features::shared_bytes},
    {"float16", nullptr, &gpu_features::float16},
    {"int8", nullptr, &gpu_features::int8},
    {"int64", nullptr, &gpu_features::int64},
    {"float64", nullptr, &gpu_features::float64},
    {"subgroup_arithmetic", nullptr, &gpu_features::subgroup_arithmetic},
    {"subgroup_shuffle", nullptr, &gpu_features::subgroup_shuffle},
    {"cooperative_matrix", nullptr, &gpu_features::cooperative_matrix},
    {"strong_matrices", nullptr, &gpu_features::strong_matrices},
    {"group_matrices", nullptr, &gpu_features::group_matrices},
    {"integer_dot", nullptr, &gpu_features::integer_dot},
    {"byte_matrices", nullptr, &gpu_features::byte_matrices},
});

/// What most GPUs of today can do.
gpu_features usual_features(int32_t units) {
  gpu_features f;
  f.max_group_size = 1024;
  f.shared_bytes = 49152;
  f.max_binding_bytes = int64_t{1} << 32;
  f.float16 = f.int8 = f.int64 = f.float64 = f.subgroup_arithmetic = f.subgroup_shuffle = true;
  f.units = static_cast<uint32_t>(units);
  return f;
}

link_speed read_link(const json_reader& j) {
  j.allow({"bytes_per_s", "latency_s"});
  return {.bytes_per_s = j["bytes_per_s"].number(least_speed, most_speed),
          .latency_s = j.has("latency_s") ? j["latency_s"].number(0, most_seconds) : 0};
}

own_network read_own_network(const json_reader& j) {
  j.allow({"in_bytes_per_s", "out_bytes_per_s"});
  own_network n;
  if (j.has("in_bytes_per_s"))
    n.in_bytes_per_s = j["in_bytes_per_s"].number(least_speed, most_speed);
  if (j.has("out_bytes_per_s"))
    n.out_bytes_per_s = j["out_bytes_per_s"].number(least_speed, most_speed);
  return n;
}

json write_own_network(const own_network& n) {
  json j = json::object();
  if (std::isfinite(n.in_bytes_per_s))
    j["in_bytes_per_s"] = n.in_bytes_per_s;
  if (std::isfinite(n.out_bytes_per_s))
    j["out_bytes_per_s"] = n.out_bytes_per_s;
  return j;
}

json write_link(const link_speed& l) {
  return {{"bytes_per_s", l.bytes_per_s}, {"latency_s", l.latency_s}};
}

gpu_features read_features(const json_reader& j, gpu_features f) {
  std::string known;
  for (const auto& [name, unused] : j.raw().items()) {
    const auto found =
        std::find_if(features.begin(), features.end(), [&n = name](const feature& x) { return x.name == n; });
    if (name == "max_binding_bytes")
      f.max_binding_bytes = j["max_binding_bytes"].integer(1 << 16, INT64_MAX);
    else if (name == "binding_alignment")
      f.binding_alignment = j["binding_alignment"].integer(1, 1 << 16);
    else if (found == features.end())
      j.complain("there is no '{}'", printable(name));
    else if (found->flag)
      f.*found->flag = j[name.c_str()].flag();
    else
      f.*found->number = static_cast<uint32_t>(j[name.c_str()].integer(1, 1 << 20));
  }
  return f;
}

json write_features(const gpu_features& f) {
  json j{{"max_binding_bytes", f.max_binding_bytes}, {"binding_alignment", f.binding_alignment}};
  for (const feature& each : features)
    each.flag ? j[std::string(each.name)] = f.*each.flag : j[std::string(each.name)] = f.*each.number;
  return j;
}

device_kind read_kind(const json_reader& j) {
  const std::string text = j.text();
  for (const device_kind kind : {device_kind::cpu, device_kind::vulkan, device_kind::null, device_kind::slow})
    if (text == to_string(kind))
      return kind;
  j.complain("there is no kind '{}'; there are cpu, vulkan, null, slow", printable(text));
}

/// Returns what was measured of the device that one is said to be like.
const measured_profile& find_like(const json_reader& j, device_kind kind, std::span<const measured_profile> known) {
  const std::string text = j.text();
  std::string there;
  for (const measured_profile& m : known) {
    if (m.device.kind == to_string(kind) && m.device.description == text)
      return m;
    there += fmt::format("{}'{}' ({})", there.empty() ? "" : ", ", printable(m.device.description), m.device.kind);
  }
  j.complain("the profile file has no measured {} '{}'; it has {}", to_string(kind), printable(text),
             there.empty() ? "none: `troupe profile --calibrate` measures the devices here" : there);
}

device_profile read_speeds(const json_reader& j, device_profile profile) {
  if (!j.raw().is_object())
    j.complain("an object is needed, with the fields of a profile file's \"measured\"");
  measured_profile given;
  for (const auto& [name, value] : j.raw().items())
    given.values.emplace_back(name, j[name.c_str()].number(0, most_speed));
  try {
    return refine(std::move(profile), given);
  } catch (const error& e) {
    j.complain("{}", e.what());
  }
}

device_info read_device(const json_reader& j, std::span<const measured_profile> known) {
  j.allow({"name", "count", "kind", "description", "units", "memory_bytes", "like", "profile", "features", "processor",
           "fallback", "host_memory", "channels_last", "copies_beside_work"});
  device_info d;
  d.name = j["name"].text();
  if (d.name.empty() || d.name.size() > 200)
    j["name"].complain("a name of 1 to 200 characters is needed");
  d.kind = read_kind(j["kind"]);
  const bool is_gpu = d.kind == device_kind::vulkan;
  const auto flag = [&](const char* name, bool otherwise) { return j.has(name) ? j[name].flag() : otherwise; };
  d.units = static_cast<int32_t>(j.has("units") ? j["units"].integer(1, 1 << 20) : is_gpu ? 64 : 8);
  d.memory_bytes = j["memory_bytes"].integer(0, INT64_MAX / 2);
  d.host_memory = flag("host_memory", !is_gpu);
  d.fallback = flag("fallback", false);
  d.prefers_channels_last = flag("channels_last", is_gpu);
  d.copies_beside_work = flag("copies_beside_work", false);
  d.transfers = d.host_memory ? transfer_path::shared : transfer_path::imported;
  d.processor = j.has("processor") ? j["processor"].text() : "";
  if (is_gpu) {
    d.gpu = usual_features(d.units);
    if (j.has("features"))
      d.gpu = read_features(j["features"], *d.gpu);
  }
  d.profile = is_gpu ? typical_gpu(static_cast<uint32_t>(d.units), d.gpu->cooperative_matrix) : typical_cpu(d.units);
  if (j.has("like")) {
    d.description = j["like"].text();
    d.profile = refine(std::move(d.profile), find_like(j["like"], d.kind, known));
  }
  if (j.has("description"))
    d.description = j["description"].text();
  if (j.has("profile"))
    d.profile = read_speeds(j["profile"], std::move(d.profile));
  return d;
}

int64_t count_of(const json_reader& j) {
  return j.has("count") ? j["count"].integer(1, static_cast<int64_t>(max_cluster_devices)) : 1;
}

/// The i-th of several that are alike: "name", or if there are more "name:0", "name:1" …
std::string numbered(const std::string& name, int64_t i, int64_t count) {
  return count == 1 ? name : fmt::format("{}:{}", name, i);
}

void read_host(const json_reader& j, cluster& all, std::set<std::string>& hosts,
               std::span<const measured_profile> known) {
  j.allow({"name", "count", "link", "devices"});
  const std::string name = j.has("name") ? j["name"].text() : "";
  const int64_t count = count_of(j);
  if (name.empty() && (count > 1 || j.has("link")))
    j.complain("the host without a name is the session's own: there is one, and no link to it");
  link_speed in, out;
  if (!name.empty()) {
    const json_reader link = j["link"];
    const bool two_ways = link.has("in") || link.has("out");
    if (two_ways)
      link.allow({"in", "out"});
    in = read_link(two_ways ? link["in"] : link);
    out = read_link(two_ways ? link["out"] : link);
  }
  for (int64_t h = 0; h < count; ++h) {
    const std::string host = numbered(name, h, count);
    if (!hosts.insert(host).second)
      j.complain("there are two hosts '{}'", printable(host));
    for (const json_reader& each : j["devices"].list()) {
      const device_info model = read_device(each, known);
      for (int64_t i = 0, n = count_of(each); i < n; ++i) {
        if (all.devices.size() == max_cluster_devices)
          each.complain("there are more than {} devices", max_cluster_devices);
        device_info& d = all.devices.emplace_back(model);
        d.name = (host.empty() ? "" : host + "/") + numbered(model.name, i, n);
        d.host = host;
        d.network_in = in;
        d.network_out = out;
        const bool says_chunk = each.has("profile") && each["profile"].has("chunk_s");
        if (!says_chunk) // a round trip more than a device here: to send the chunk, and to hear of its end
          d.profile.chunk_s += in.latency_s + out.latency_s;
      }
    }
  }
}

std::vector<std::string> read_names(const json_reader& j, const char* name, const std::set<std::string>& known) {
  std::vector<std::string> names;
  if (!j.has(name))
    return names;
  for (const json_reader& each : j[name].list()) {
    names.push_back(each.text());
    if (!known.contains(names.back()))
      each.complain("there is no '{}' in this cluster", printable(names.back()));
    if (std::count(names.begin(), names.end(), names.back()) > 1)
      each.complain("'{}' is listed twice", printable(names.back()));
  }
  return names;
}

} // namespace

cluster captured(std::vector<device_info> devices) {
  cluster c{.devices = std::move(devices), .links = {}, .network = {}, .zones = {}};
  own_network fastest{0, 0};
  for (const device_info& d : c.devices)
    if (is_remote(d))
      fastest = {std::max(fastest.in_bytes_per_s, d.network_out.bytes_per_s),
                 std::max(fastest.out_bytes_per_s, d.network_in.bytes_per_s)};
  if (fastest.in_bytes_per_s > 0)
    c.network = fastest;
  return c;
}

cluster parse_cluster(std::string_view text, std::span<const measured_profile> known) {
  if (looks_like_xml(text))
    return parse_platform(text);
  const json file = json::parse(text, nullptr, false);
  if (file.is_discarded())
    fail(errc::invalid_argument, "a cluster file must be JSON, or a SimGrid platform of XML");
  const json_reader j(file, "");
  j.allow({"version", "coordinator_s", "own_network", "hosts", "shared_links"});
  j["version"].integer(cluster_version, cluster_version);
  cluster c;
  if (j.has("coordinator_s"))
    c.coordinator_s = j["coordinator_s"].number(0, 1);
  if (j.has("own_network"))
    c.network = read_own_network(j["own_network"]);
  std::set<std::string> hosts, devices;
  for (const json_reader& host : j["hosts"].list())
    read_host(host, c, hosts, known);
  if (c.devices.empty())
    j.complain("there must be a device");
  for (const device_info& d : c.devices)
    if (!devices.insert(d.name).second)
      j.complain("there are two devices '{}'", printable(d.name));
  hosts.erase("");
  if (j.has("shared_links"))
    for (const json_reader& each : j["shared_links"].list()) {
      each.allow({"name", "bytes_per_s", "half_duplex", "devices", "hosts"});
      c.links.push_back({.name = each["name"].text(),
                         .bytes_per_s = each["bytes_per_s"].number(least_speed, most_speed),
                         .half_duplex = each.has("half_duplex") && each["half_duplex"].flag(),
                         .devices = read_names(each, "devices", devices),
                         .hosts = read_names(each, "hosts", hosts)});
    }
  return c;
}

cluster read_cluster(const std::filesystem::path& path, std::span<const measured_profile> known) {
  const std::string text = read_text(path, max_cluster_bytes, fmt::format("'{}'", path.string()));
  try {
    return parse_cluster(text, known);
  } catch (const error& e) {
    throw error(e.code(), fmt::format("cluster file '{}': {}", path.string(), e.what()));
  }
}

std::string write_cluster(const cluster& c) {
  if (c.zones)
    fail(errc::unsupported, "a SimGrid platform has routes, which cluster files of JSON do not have");
  json hosts = json::array();
  std::map<std::string, size_t> known;
  for (const device_info& d : c.devices) {
    const auto [at, is_new] = known.try_emplace(d.host, hosts.size());
    if (is_new) {
      hosts.push_back({{"name", d.host}, {"devices", json::array()}});
      if (is_remote(d))
        hosts.back()["link"] = {{"in", write_link(d.network_in)}, {"out", write_link(d.network_out)}};
    }
    json speeds = json::object();
    for (const auto& [name, value] : values_of(d.profile))
      speeds[name] = value;
    json device{{"name", is_remote(d) ? d.name.substr(d.host.size() + 1) : d.name},
                {"kind", to_string(d.kind)},
                {"description", d.description},
                {"units", d.units},
                {"memory_bytes", d.memory_bytes},
                {"processor", d.processor},
                {"fallback", d.fallback},
                {"host_memory", d.host_memory},
                {"channels_last", d.prefers_channels_last},
                {"copies_beside_work", d.copies_beside_work},
                {"profile", std::move(speeds)}};
    if (d.gpu)
      device["features"] = write_features(*d.gpu);
    if (d.profile.measured)
      device["like"] = d.description;
    hosts[at->second]["devices"].push_back(std::move(device));
  }
  json links = json::array();
  for (const shared_link& l : c.links)
    links.push_back({{"name", l.name},
                     {"bytes_per_s", l.bytes_per_s},
                     {"half_duplex", l.half_duplex},
                     {"devices", l.devices},
                     {"hosts", l.hosts}});
  const json file{{"version", cluster_version},
                  {"coordinator_s", c.coordinator_s},
                  {"own_network", write_own_network(c.network)},
                  {"hosts", std::move(hosts)},
                  {"shared_links", std::move(links)}};
  return file.dump(2, ' ', false, json::error_handler_t::replace) + '\n';
}

} // namespace troupe::sim

#include "cost/profile_file.hpp"

#include "base/text_file.hpp"
#include "base/user_files.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <unordered_set>

namespace troupe {
namespace {

using json = nlohmann::json; // sorted objects: members of ordered ones take quadratic time to read

constexpr int file_version = 1;
constexpr int64_t max_file_bytes = 1 << 26; // some forty devices with all the nodes that are kept of one
constexpr double max_field_seconds = 100;

/// A field of `device_profile` by name. Speeds are above 0; times may be 0.
struct field {
  std::string_view name;
  bool is_time;
  double& (*of)(device_profile&);
};

constexpr auto fields = std::to_array<field>({
    {"float64", false, [](device_profile& p) -> double& { return p.flops_per_s[0]; }},
    {"float32", false, [](device_profile& p) -> double& { return p.flops_per_s[1]; }},
    {"float16", false, [](device_profile& p) -> double& { return p.flops_per_s[2]; }},
    {"bfloat16", false, [](device_profile& p) -> double& { return p.flops_per_s[3]; }},
    {"int8", false, [](device_profile& p) -> double& { return p.flops_per_s[4]; }},
    {"other", false, [](device_profile& p) -> double& { return p.flops_per_s[5]; }},
    {"memory_bytes_per_s", false, [](device_profile& p) -> double& { return p.memory_bytes_per_s; }},
    {"launch_s", true, [](device_profile& p) -> double& { return p.launch_s; }},
    {"barrier_s", true, [](device_profile& p) -> double& { return p.barrier_s; }},
    {"chunk_s", true, [](device_profile& p) -> double& { return p.chunk_s; }},
    {"submit_s", true, [](device_profile& p) -> double& { return p.submit_s; }},
    {"wake_s", true, [](device_profile& p) -> double& { return p.wake_s; }},
    {"up.bytes_per_s", false, [](device_profile& p) -> double& { return p.up.bytes_per_s; }},
    {"up.latency_s", true, [](device_profile& p) -> double& { return p.up.latency_s; }},
    {"down.bytes_per_s", false, [](device_profile& p) -> double& { return p.down.bytes_per_s; }},
    {"down.latency_s", true, [](device_profile& p) -> double& { return p.down.latency_s; }},
    {"input_bytes_per_s", false, [](device_profile& p) -> double& { return p.input_bytes_per_s; }},
});

constexpr auto link_fields = std::to_array<std::pair<std::string_view, double measured_link::*>>({
    {"round_trip_s", &measured_link::round_trip_s},
    {"to_bytes_per_s", &measured_link::to_bytes_per_s},
    {"from_bytes_per_s", &measured_link::from_bytes_per_s},
});

bool is_sane_time(double seconds) {
  return seconds >= 0 && seconds <= max_field_seconds;
}

bool is_sane_speed(double per_second) {
  return std::isfinite(per_second) && per_second >= 1 && per_second <= 1e21;
}

bool is_sane(const field& f, double value) {
  return f.is_time ? is_sane_time(value) : is_sane_speed(value);
}

const json& member(const json& object, const char* name, json::value_t type, const char* what) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  const bool number = type == json::value_t::number_integer;
  if (!object.is_object() || found == object.end() || (number ? !found->is_number_integer() : found->type() != type))
    fail(errc::invalid_argument, "a device profile file needs {} '{}'", what, name);
  return *found;
}

double number(const json& value, std::string_view name) {
  if (!value.is_number())
    fail(errc::invalid_argument, "the device profile's '{}' is not a number", name);
  return value.get<double>();
}

/// Reads what `to_hex` wrote.
hash128 read_key(const json& text) {
  const auto key = from_hex(text.is_string() ? std::string_view(text.get_ref<const std::string&>()) : "");
  if (!key)
    fail(errc::invalid_argument, "a device profile's node must be named by 32 hexadecimal digits");
  return *key;
}

/// Reads what nodes took by their rows: lists of family, rows, seconds, roofline, spread.
std::vector<rows_time> read_rows(const json& entry) {
  std::vector<rows_time> all;
  if (!entry.contains("rows"))
    return all;
  for (const json& each : member(entry, "rows", json::value_t::array, "the list")) {
    if (!each.is_array() || each.size() != 5 || !each[1].is_number_integer())
      fail(errc::invalid_argument, "a device profile's 'rows' must be lists of a family, rows and three numbers");
    all.push_back({read_key(each[0]), each[1].get<int64_t>(), number(each[2], "rows"), number(each[3], "rows"),
                   number(each[4], "rows")});
  }
  return all;
}

/// The lists may be absent: files were written before they were known.
measured_nodes read_nodes(const json& entry) {
  measured_nodes nodes;
  nodes.rows = read_rows(entry);
  if (entry.contains("nodes"))
    for (const json& pair : member(entry, "nodes", json::value_t::array, "the list")) {
      if (!pair.is_array() || pair.size() != 2)
        fail(errc::invalid_argument, "a device profile's 'nodes' must be pairs of a key and seconds");
      nodes.nodes.emplace_back(read_key(pair[0]), number(pair[1], "nodes"));
    }
  if (entry.contains("operators"))
    for (const auto& [name, sums] : member(entry, "operators", json::value_t::object, "the object").items()) {
      if (!sums.is_array() || sums.size() != 2)
        fail(errc::invalid_argument, "the device profile's operator '{}' must have measured and predicted seconds",
             name);
      nodes.operators[name] = {number(sums[0], "operators"), number(sums[1], "operators")};
    }
  return nodes;
}

json write_nodes(const measured_nodes& nodes) {
  json list = json::array();
  for (const auto& [key, seconds] : nodes.nodes)
    list.push_back({to_hex(key), seconds});
  return list;
}

json write_rows(const measured_nodes& nodes) {
  json list = json::array();
  for (const rows_time& r : nodes.rows)
    list.push_back({to_hex(r.family), r.rows, r.seconds, r.roofline_s, r.spread});
  return list;
}

json write_operators(const measured_nodes& nodes) {
  json object = json::object();
  for (const auto& [name, sums] : nodes.operators)
    object[name] = {sums.measured_s, sums.roofline_s};
  return object;
}

/// Files were written before choices of kernels were known.
std::vector<kernel_choice> read_kernels(const json& entry) {
  std::vector<kernel_choice> all;
  if (!entry.contains("kernels"))
    return all;
  for (const json& each : member(entry, "kernels", json::value_t::array, "the list")) {
    if (!each.is_array() || each.size() != 5 || !each[2].is_string())
      fail(errc::invalid_argument, "a device profile's 'kernels' must be lists of two keys, a name and two times");
    all.push_back({read_key(each[0]), read_key(each[1]), each[2].get<std::string>(), number(each[3], "kernels"),
                   number(each[4], "kernels")});
  }
  return all;
}

json write_kernels(const std::vector<kernel_choice>& kernels) {
  json list = json::array();
  for (const kernel_choice& k : kernels)
    list.push_back({to_hex(k.call), to_hex(k.kernel), k.name, k.seconds, k.usual_s});
  return list;
}

void check_kernels(const std::vector<kernel_choice>& kernels) {
  if (kernels.size() > max_kept_kernels)
    fail(errc::invalid_argument, "a device profile keeps at most {} kernels", max_kept_kernels);
  for (const kernel_choice& k : kernels)
    if (k.name.size() > max_kernel_name || !is_sane_time(k.seconds) || !is_sane_time(k.usual_s))
      fail(errc::invalid_argument, "the device profile's kernel of call {} cannot be of {} letters or take {} seconds",
           to_hex(k.call), k.name.size(), k.seconds);
}

std::vector<kernel_choice> merge(std::vector<kernel_choice> old, const std::vector<kernel_choice>& fresh) {
  std::unordered_set<hash128> renewed;
  for (const kernel_choice& k : fresh)
    renewed.insert(k.call);
  std::erase_if(old, [&](const kernel_choice& k) { return renewed.contains(k.call); });
  old.insert(old.end(), fresh.begin(), fresh.end());
  if (old.size() > max_kept_kernels)
    old.erase(old.begin(), old.end() - max_kept_kernels);
  return old;
}

measured_profile read_device(const json& entry) {
  measured_profile m;
  m.device.kind = member(entry, "kind", json::value_t::string, "the text");
  m.device.description = member(entry, "description", json::value_t::string, "the text");
  m.device.units = static_cast<int32_t>(std::clamp<int64_t>(
      member(entry, "units", json::value_t::number_integer, "the number").get<int64_t>(), 0, 1 << 30));
  for (const auto& [name, value] : member(entry, "measured", json::value_t::object, "the object").items())
    m.values.emplace_back(name, number(value, name));
  m.nodes = read_nodes(entry);
  m.kernels = read_kernels(entry);
  refine({}, m);
  return m;
}

/// Files were written before links were known.
std::vector<measured_link> read_links(const json& file) {
  std::vector<measured_link> links;
  if (!file.contains("links"))
    return links;
  for (const json& entry : member(file, "links", json::value_t::array, "the list")) {
    measured_link l;
    l.address = member(entry, "address", json::value_t::string, "the text");
    for (const auto& [name, of] : link_fields) {
      const auto found = entry.find(name);
      l.*of = found == entry.end() ? 0 : number(*found, name);
      const bool is_time = of == &measured_link::round_trip_s;
      if (!(is_time ? is_sane_time(l.*of) : is_sane_speed(l.*of)))
        fail(errc::invalid_argument, "the link's '{}' cannot be {}", name, l.*of);
    }
    links.push_back(std::move(l));
  }
  return links;
}

json write_links(const std::vector<measured_link>& links) {
  json list = json::array();
  for (const measured_link& l : links) {
    json entry{{"address", l.address}};
    for (const auto& [name, of] : link_fields)
      entry[std::string(name)] = l.*of;
    list.push_back(std::move(entry));
  }
  return list;
}

} // namespace

device_profile refine(device_profile profile, const measured_profile& measured) {
  for (const auto& [name, value] : measured.values) {
    const auto f = std::find_if(fields.begin(), fields.end(), [&n = name](const field& x) { return x.name == n; });
    if (f == fields.end())
      fail(errc::invalid_argument, "a device profile has no '{}'", name);
    if (!is_sane(*f, value))
      fail(errc::invalid_argument, "the device profile's '{}' cannot be {}", name, value);
    f->of(profile) = value;
  }
  check_kernels(measured.kernels);
  if (!measured.nodes.empty())
    profile.measured = std::make_shared<const node_times>(measured.nodes);
  return profile;
}

std::unordered_map<hash128, hash128> by_call(const std::vector<kernel_choice>& choices) {
  std::unordered_map<hash128, hash128> kernels;
  for (const kernel_choice& c : choices)
    kernels[c.call] = c.kernel;
  return kernels;
}

std::vector<std::pair<std::string, double>> values_of(const device_profile& profile) {
  std::vector<std::pair<std::string, double>> values;
  device_profile copy = profile;
  for (const field& f : fields)
    if (std::isfinite(f.of(copy)))
      values.emplace_back(f.name, f.of(copy));
  return values;
}

std::string write_profiles(const std::vector<measured_profile>& all, const std::vector<measured_link>& links) {
  json devices = json::array();
  for (const measured_profile& m : all) {
    json values = json::object();
    for (const auto& [name, value] : m.values)
      values[name] = value;
    devices.push_back({{"kind", m.device.kind},
                       {"description", m.device.description},
                       {"units", m.device.units},
                       {"measured", std::move(values)},
                       {"nodes", write_nodes(m.nodes)},
                       {"rows", write_rows(m.nodes)},
                       {"kernels", write_kernels(m.kernels)},
                       {"operators", write_operators(m.nodes)}});
  }
  // On one line: every number of a list would have its own.
  const json file{{"version", file_version}, {"devices", std::move(devices)}, {"links", write_links(links)}};
  return file.dump(-1, ' ', false, json::error_handler_t::replace) + '\n';
}

kept_profiles read_profiles(std::string_view text) {
  const json file = json::parse(text, nullptr, false);
  if (file.is_discarded())
    fail(errc::invalid_argument, "a device profile file must be JSON");
  if (member(file, "version", json::value_t::number_integer, "the number") != file_version)
    fail(errc::invalid_argument, "this device profile file is of another version; calibrate again");
  kept_profiles all;
  for (const json& entry : member(file, "devices", json::value_t::array, "the list"))
    all.devices.push_back(read_device(entry));
  all.links = read_links(file);
  return all;
}

std::filesystem::path profile_path() {
  const std::filesystem::path folder = cache_folder();
  return folder.empty() ? folder : folder / "profiles.json";
}

loaded_profiles load_profiles(const std::filesystem::path& path) {
  std::error_code ignored;
  if (path.empty() || !std::filesystem::exists(path, ignored))
    return {};
  try {
    return {read_profiles(read_text(path, max_file_bytes, "it")), {}};
  } catch (const std::exception& e) {
    return {{}, fmt::format("'{}' is not used: {}", path.string(), e.what())};
  }
}

measured_profile merge(measured_profile old, const measured_profile& fresh) {
  if (!fresh.values.empty()) {
    old.values = fresh.values;
    old.nodes.operators.clear();
  }
  old.nodes = merge(std::move(old.nodes), fresh.nodes);
  old.kernels = merge(std::move(old.kernels), fresh.kernels);
  return old;
}

void store_profiles(const std::filesystem::path& path, const std::vector<measured_profile>& fresh,
                    const std::vector<measured_link>& fresh_links) {
  auto [all, links] = static_cast<kept_profiles>(load_profiles(path));
  for (const measured_link& l : fresh_links) {
    std::erase_if(links, [&](const measured_link& known) { return known.address == l.address; });
    links.push_back(l);
  }
  for (const measured_profile& m : fresh) {
    const auto old = std::find_if(all.begin(), all.end(), [&](const auto& known) { return known.device == m.device; });
    if (old == all.end())
      all.push_back(merge({.device = m.device}, m));
    else
      *old = merge(std::move(*old), m);
  }
  const std::string text = write_profiles(all, links);
  if (path.empty() || !replace_file(path, std::as_bytes(std::span(text))))
    fail(errc::io, "'{}' cannot be written", path.string());
}

} // namespace troupe

// troupe devices: what this machine offers.
#include "cli/command.hpp"

#include <fmt/format.h>

#include <cmath>
#include <iostream>

namespace troupe::cli {
namespace {

nlohmann::json profile_json(const device_profile& p) {
  nlohmann::json flops;
  for (size_t k = 0; k < arithmetic_count; ++k)
    flops[std::string(to_string(static_cast<arithmetic>(k)))] = p.flops_per_s[k];
  nlohmann::json j{{"flops_per_s", flops},   {"memory_bytes_per_s", p.memory_bytes_per_s},
                   {"launch_s", p.launch_s}, {"barrier_s", p.barrier_s},
                   {"chunk_s", p.chunk_s},   {"submit_s", p.submit_s},
                   {"wake_s", p.wake_s}};
  if (std::isfinite(p.up.bytes_per_s)) {
    j["up"] = {{"bytes_per_s", p.up.bytes_per_s}, {"latency_s", p.up.latency_s}};
    j["down"] = {{"bytes_per_s", p.down.bytes_per_s}, {"latency_s", p.down.latency_s}};
    j["input_bytes_per_s"] = p.input_bytes_per_s;
  }
  return j;
}

nlohmann::json to_json(const gpu_features& gpu) {
  return {{"subgroup_size", gpu.subgroup_size},
          {"max_group_size", gpu.max_group_size},
          {"shared_bytes", gpu.shared_bytes},
          {"max_binding_bytes", gpu.max_binding_bytes},
          {"float16", gpu.float16},
          {"int8", gpu.int8},
          {"int64", gpu.int64},
          {"float64", gpu.float64},
          {"subgroup_arithmetic", gpu.subgroup_arithmetic},
          {"subgroup_shuffle", gpu.subgroup_shuffle},
          {"cooperative_matrix", gpu.cooperative_matrix},
          {"strong_matrices", gpu.strong_matrices},
          {"group_matrices", gpu.group_matrices},
          {"integer_dot", gpu.integer_dot},
          {"byte_matrices", gpu.byte_matrices}};
}

nlohmann::json to_json(const host_summary& h) {
  return {{"name", h.name},
          {"address", h.address},
          {"version", h.version},
          {"round_trip_s", h.round_trip_s},
          {"to_bytes_per_s", h.to_bytes_per_s},
          {"from_bytes_per_s", h.from_bytes_per_s}};
}

nlohmann::json to_json(const device_info& d, const std::vector<host_summary>& hosts) {
  nlohmann::json j{{"name", d.name},
                   {"kind", to_string(d.kind)},
                   {"description", d.description},
                   {"units", d.units},
                   {"memory_bytes", d.memory_bytes},
                   {"total_bytes", d.total_bytes},
                   {"host_memory", d.host_memory},
                   {"fallback", d.fallback},
                   {"transfers", to_string(d.transfers)},
                   {"peer_set", d.peer_set},
                   {"profile", profile_json(d.profile)}};
  if (d.gpu)
    j["gpu"] = to_json(*d.gpu);
  for (const host_summary& h : hosts)
    if (h.name == d.host)
      j["host"] = to_json(h);
  return j;
}

/// What kernels may use on a GPU; empty for other devices.
std::string features_text(const device_info& d) {
  if (!d.gpu)
    return "";
  std::string text = fmt::format("{:19} subgroups of {}", "", d.gpu->subgroup_size);
  const auto to_add = {std::pair(d.gpu->float16, "float16"),
                       std::pair(d.gpu->int8, "int8"),
                       std::pair(d.gpu->int64, "int64"),
                       std::pair(d.gpu->float64, "float64"),
                       std::pair(d.gpu->cooperative_matrix, "matrix units"),
                       std::pair(d.gpu->group_matrices, "matrices of groups"),
                       std::pair(d.gpu->integer_dot, "dot products of bytes"),
                       std::pair(d.gpu->byte_matrices, "matrices of bytes")};
  for (const auto& [present, name] : to_add)
    if (present)
      text += fmt::format(", {}", name);
  return text + "\n";
}

/// Which GPUs wait for each other's work; empty for devices that do not.
std::string peers_text(const device_info& d, const std::vector<device_info>& all) {
  std::string names;
  for (const device_info& other : all)
    if (other.name != d.name && are_peers(d, other))
      names += fmt::format("{}{}", names.empty() ? "" : ", ", other.name);
  return names.empty() ? "" : fmt::format("{:19} waits for work of {} without the host\n", "", names);
}

void list_devices(const model_options& options) {
  const engine devices(options.engine());
  const std::string no_gpu = devices.no_gpu_because();
  if (options.json) {
    nlohmann::json out = nlohmann::json::array();
    for (const device_info& d : device_infos(devices))
      out.push_back(to_json(d, devices.hosts()));
    write_json(out);
    return;
  }
  const std::vector<device_info> all = device_infos(devices);
  for (const device_info& d : all)
    fmt::print("{:10} {:8} {} units, {:.1f} of {:.1f} GiB, transfers {}  {}\n{}{}", d.name, to_string(d.kind), d.units,
               static_cast<double>(d.memory_bytes) / (1 << 30), static_cast<double>(d.total_bytes) / (1 << 30),
               to_string(d.transfers), d.description, features_text(d), peers_text(d, all));
  for (const host_summary& h : devices.hosts())
    fmt::print("{:10} at {}, troupe {}: round trip {:.0f} µs, {:.0f} MB/s there, {:.0f} MB/s back\n", h.name, h.address,
               h.version, h.round_trip_s * 1e6, h.to_bytes_per_s * 1e-6, h.from_bytes_per_s * 1e-6);
  for (const std::string& why : why_gpus_are_apart(devices))
    fmt::print("over the host: {}\n", why);
  if (const std::string problem = devices.profile_problem(); !problem.empty())
    fmt::print("measured speeds: {}\n", problem);
  if (!no_gpu.empty())
    fmt::print("{}: {}\n",
               std::ranges::any_of(all, [](const device_info& d) { return d.gpu.has_value(); }) ? "left out" : "no GPU",
               no_gpu);
}

} // namespace

void add_devices(CLI::App& app) {
  auto options = std::make_shared<model_options>();
  CLI::App* command = app.add_subcommand("devices", "List the devices");
  command->add_option("--devices", options->devices, "Devices to open (default all)")
      ->type_name("DEVICES")
      ->delimiter(',')
      ->allow_extra_args(false);
  add_host_options(*command, *options);
  command->option_defaults()->group("Options");
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options] { list_devices(*options); });
}

} // namespace troupe::cli

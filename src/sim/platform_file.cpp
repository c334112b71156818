#include "sim/platform_file.hpp"

#include "base/quantile.hpp"
#include "sim/platform_reader.hpp"

namespace troupe::sim {
namespace {

constexpr int64_t enough_memory = int64_t{1} << 50; // platforms say nothing of it
constexpr size_t most_samples = 256, samples_of_each = 8;

/// What computes as fast as it is said to, and takes no time for anything else.
device_profile profile_of(double operations_per_s) {
  device_profile p;
  p.flops_per_s.fill(operations_per_s);
  p.memory_bytes_per_s = 1e21;
  p.launch_s = p.chunk_s = p.submit_s = 0;
  return p;
}

std::optional<network_route> route_if_any(route_finder& routes, point_id from, point_id to) {
  try {
    return routes.between(from, to);
  } catch (const error&) {
    return std::nullopt; // the simulation says so if something goes there
  }
}

/// Returns the median of the routes from a host to some others, spread over the platform.
link_speed typical_link(route_finder& routes, std::span<const platform_host> hosts, size_t from) {
  std::vector<double> speeds, latencies;
  for (size_t i = 0; i < samples_of_each; ++i) {
    const size_t to = (from + 1 + i * (hosts.size() - 1) / samples_of_each) % hosts.size();
    if (const auto route = route_if_any(routes, hosts[from].point, hosts[to].point); route && !route->links.empty()) {
      speeds.push_back(route->bytes_per_s);
      latencies.push_back(route->latency_s);
    }
  }
  if (speeds.empty())
    return {};
  return {.bytes_per_s = median(std::move(speeds)), .latency_s = median(std::move(latencies))};
}

/// Returns by host what policies are told of its network. Of many hosts some are looked at, and those after each,
/// mostly of the same cluster, are taken to be like it.
std::vector<link_speed> typical_links(const platform_reader& platform) {
  route_finder routes(platform.network);
  const size_t count = platform.hosts.size(), step = (count + most_samples - 1) / most_samples;
  std::vector<link_speed> links(count);
  for (size_t h = 0; h < count && count > 1; ++h)
    links[h] = h % step == 0 ? typical_link(routes, platform.hosts, h) : links[h - 1];
  return links;
}

} // namespace

cluster parse_platform(std::string_view text) {
  platform_reader read(parse_xml(text));
  cluster c{.devices = {}, .links = {}, .network = {}, .coordinator_s = 0};
  const std::vector<link_speed> links = typical_links(read);
  for (size_t h = 0; h < read.hosts.size(); ++h) {
    const platform_host& host = read.hosts[h];
    const std::string& name = read.network.points[host.point].name;
    for (int64_t core = 0; core < host.cores; ++core) {
      device_info& d = c.devices.emplace_back();
      d.name = host.cores == 1 ? name + "/cpu" : fmt::format("{}/cpu:{}", name, core);
      d.host = name;
      d.memory_bytes = enough_memory;
      d.profile = profile_of(host.operations_per_s);
      d.network_in = d.network_out = links[h];
    }
  }
  c.zones = std::make_shared<const zoned_network>(std::move(read.network));
  return c;
}

} // namespace troupe::sim

#include "sim/platform_reader.hpp"

#include "base/printable.hpp"
#include "sim/cluster.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace troupe::sim {
namespace {

constexpr auto most_hosts = static_cast<int64_t>(max_cluster_devices);

/// What platforms may have and simulations do not, by element.
constexpr auto not_supported = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"config", "a simulation's options are troupe's own"},
    {"random", "SimGrid has dropped it"},
    {"include", "SimGrid has dropped it"},
    {"storage", "SimGrid has dropped it"},
    {"storage_type", "SimGrid has dropped it"},
    {"mount", "SimGrid has dropped it"},
    {"peer", "routes by coordinates (Vivaldi) are not computed"},
    {"trace", "speeds do not change over time"},
    {"trace_connect", "speeds do not change over time"},
    {"bypassRoute", "routes are those of their zones"},
    {"bypassASroute", "routes are those of their zones"},
    {"bypassZoneRoute", "routes are those of their zones"},
    {"actor", "a cluster has no programs"},
    {"process", "a cluster has no programs"},
});

[[noreturn]] void refuse(const xml_element& e) {
  for (const auto& [name, why] : not_supported)
    if (e.name() == name)
      e.complain("it is not supported: {}", why);
  e.complain("there is no such element here");
}

/// Refuses what changes over time.
void expect_constant(const xml_element& e, std::initializer_list<std::string_view> files) {
  for (const std::string_view attribute : files)
    if (!e.text(attribute, "").empty())
      e.complain("the attribute '{}' is not supported: speeds and states do not change over time", attribute);
}

network_zone::routing read_routing(const xml_element& e) {
  using routing = network_zone::routing;
  std::string name = e.text("routing");
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  if (name == "full")
    return routing::full;
  if (name == "floyd" || name == "dijkstra" || name == "dijkstracache")
    return routing::shortest;
  if (name == "cluster")
    return routing::star;
  if (name == "none")
    return routing::none;
  e.complain("the routing '{}' is not supported; there are Full, Floyd, Dijkstra, DijkstraCache, Cluster and None",
             printable(e.text("routing").substr(0, 60)));
}

enum class sharing : uint8_t { shared, split, fat };

sharing read_sharing(const xml_element& e, std::string_view attribute, std::string_view usual) {
  const std::string text = e.text(attribute, usual);
  if (text == "SHARED")
    return sharing::shared;
  if (text == "SPLITDUPLEX" || text == "FULLDUPLEX")
    return sharing::split;
  if (text == "FATPIPE")
    return sharing::fat;
  e.complain("the sharing policy '{}' is not supported; there are SHARED, SPLITDUPLEX and FATPIPE",
             printable(text.substr(0, 60)));
}

bool is_symmetrical(const xml_element& e) {
  const std::string text = e.text("symmetrical", "YES");
  if (text != "YES" && text != "yes" && text != "NO" && text != "no")
    e.complain("symmetrical is '{}'; YES or NO is needed", printable(text.substr(0, 60)));
  return text == "YES" || text == "yes";
}

} // namespace

platform_reader::platform_reader(const xml_element& platform) {
  if (platform.name() != "platform")
    platform.complain("a cluster file of XML is a platform of SimGrid, and begins with <platform>");
  platform.allow({"version"});
  const std::string& version = platform.text("version");
  if (version != "4" && version != "4.0" && version != "4.1")
    platform.complain("the version is '{}'; 4 and 4.1 are read (simgrid_update_xml makes 4.1 of older files)",
                      printable(version.substr(0, 60)));
  for (const xml_element& e : platform.children())
    read_root(e);
  if (hosts.empty())
    platform.complain("there must be a host");
}

void platform_reader::read_root(const xml_element& e) {
  const bool is_zone = e.name() == "zone" || e.name() == "AS";
  if (!is_zone && e.name() != "cluster")
    refuse(e);
  if (!network.zones.empty())
    e.complain("there is a zone before it; one holds the whole platform");
  if (is_zone)
    read_zone(e, std::nullopt);
  else
    read_cluster(e, std::nullopt);
}

void platform_reader::read_zone(const xml_element& e, std::optional<zone_id> parent) {
  e.allow({"id", "routing"});
  const zone_id zone = add_zone(e, parent, read_routing(e));
  spokes of;
  for (const xml_element& member : e.children())
    read_member(member, zone, of);
  for (const xml_element* each : of.host_links)
    read_host_link(*each, zone, of.backbone);
  for (const xml_element* each : of.cabinets)
    read_cabinet(*each, zone, of.backbone);
}

void platform_reader::read_member(const xml_element& e, zone_id zone, spokes& of) {
  const bool is_star = network.zones[zone].how == network_zone::routing::star;
  const std::string& name = e.name();
  if (name == "prop")
    return; // for plug-ins and people
  if (name == "host")
    return read_host(e, zone);
  if (name == "router") {
    e.allow({"id", "coordinates"});
    add_point(e, e.text("id"), zone);
    return;
  }
  if (name == "link")
    return read_link(e);
  if (is_star && name == "backbone") {
    e.allow({"id", "bandwidth", "latency"});
    of.backbone = add_link(e, {e.text("id"), read_bandwidth(e, "bandwidth"), read_seconds(e, "latency"), true});
    return;
  }
  if (is_star && (name == "host_link" || name == "cabinet"))
    return (name == "cabinet" ? of.cabinets : of.host_links).push_back(&e);
  if (!is_star && (name == "zone" || name == "AS"))
    return read_zone(e, zone);
  if (!is_star && name == "cluster")
    return read_cluster(e, zone);
  if (name == "route" || name == "zoneRoute" || name == "ASroute")
    return read_route(e, zone);
  refuse(e);
}

void platform_reader::read_host(const xml_element& e, zone_id zone) {
  e.allow({"id", "speed", "core", "speed_file", "availability_file", "state_file", "coordinates", "pstate"});
  expect_constant(e, {"speed_file", "availability_file", "state_file"});
  for (const xml_element& part : e.children())
    if (part.name() != "prop" && part.name() != "disk") // tasks read no disks
      refuse(part);
  const auto state = static_cast<size_t>(read_count(e, "pstate", 0, 0, 1000));
  add_host(e, e.text("id"), zone, read_speed(e, "speed", state), read_count(e, "core", 1, 1, most_hosts));
}

void platform_reader::read_link(const xml_element& e) {
  e.allow({"id", "bandwidth", "latency", "sharing_policy", "bandwidth_file", "latency_file", "state_file"});
  expect_constant(e, {"bandwidth_file", "latency_file", "state_file"});
  const sharing how = read_sharing(e, "sharing_policy", "SHARED");
  const zone_link link{e.text("id"), read_bandwidth(e, "bandwidth"), read_seconds(e, "latency"), how != sharing::fat};
  if (how == sharing::split)
    add_two_links(e, link);
  else
    add_link(e, link);
}

void platform_reader::read_route(const xml_element& e, zone_id zone) {
  const bool is_plain = e.name() == "route";
  if (is_plain)
    e.allow({"src", "dst", "symmetrical"});
  else
    e.allow({"src", "dst", "gw_src", "gw_dst", "symmetrical"});
  const point_id from = find_point(e, "src"), to = find_point(e, "dst");
  zone_hop there{.from = is_plain ? from : find_point(e, "gw_src"), .to = is_plain ? to : find_point(e, "gw_dst")};
  zone_hop back{.from = there.to, .to = there.from};
  for (const point_id p : {from, to})
    if (network.points[p].inside.has_value() == is_plain || network.points[p].zone != zone)
      e.complain("'{}' is no {} of this zone", printable(network.points[p].name), is_plain ? "host or router" : "zone");
  if (!is_plain && !(is_inside(there.from, from) && is_inside(there.to, to)))
    e.complain("a gateway is a host or router inside the zone that it is the gateway of");
  for (const xml_element& each : e.children()) {
    if (each.name() != "link_ctn")
      refuse(each);
    const crossing c = find_crossing(each);
    there.links.push_back(c.there);
    back.links.push_back(c.back);
  }
  if (there.links.empty())
    e.complain("a route without links");
  std::reverse(back.links.begin(), back.links.end());
  if (from == to)
    return; // what stays on a host is not moved
  if (network.zones[zone].how == network_zone::routing::star || network.zones[zone].how == network_zone::routing::none)
    e.complain("a zone of routing Cluster or None has no routes between two points");
  add_hop(e, zone, from, to, std::move(there));
  if (is_symmetrical(e))
    add_hop(e, zone, to, from, std::move(back));
}

void platform_reader::read_cluster(const xml_element& e, std::optional<zone_id> parent) {
  e.allow({"id", "prefix", "suffix", "radical", "speed", "core", "bw", "lat", "sharing_policy", "topology",
           "topo_parameters", "bb_bw", "bb_lat", "bb_sharing_policy", "router_id", "limiter_link", "loopback_bw",
           "loopback_lat"});
  for (const xml_element& part : e.children())
    if (part.name() != "prop")
      refuse(part);
  const std::string& id = e.text("id");
  const std::string topology = e.text("topology", "FLAT");
  if (topology != "FLAT")
    e.complain("the topology '{}' is not supported; there is FLAT", printable(topology.substr(0, 60)));
  const zone_id zone = add_zone(e, parent, network_zone::routing::star);
  std::optional<uint32_t> backbone;
  if (!e.text("bb_bw", "").empty()) {
    const bool is_shared = read_sharing(e, "bb_sharing_policy", "SHARED") != sharing::fat;
    backbone = add_link(e, {id + "_backbone", read_bandwidth(e, "bb_bw"), read_seconds(e, "bb_lat"), is_shared});
  }
  for (const int64_t n : read_radical(e, "radical", max_cluster_devices))
    read_node(e, zone, n, backbone);
  const std::string router = e.text("prefix", "") + id + "_router" + e.text("suffix", "");
  add_point(e, e.text("router_id", router), zone);
}

void platform_reader::read_node(const xml_element& e, zone_id zone, int64_t number, std::optional<uint32_t> backbone) {
  add_host(e, fmt::format("{}{}{}", e.text("prefix", ""), number, e.text("suffix", "")), zone, read_speed(e, "speed"),
           read_count(e, "core", 1, 1, most_hosts));
  const point_id self = hosts.back().point;
  const std::string name = fmt::format("{}_link_{}", e.text("id"), number);
  const sharing how = read_sharing(e, "sharing_policy", "SPLITDUPLEX");
  const zone_link link{name, read_bandwidth(e, "bw"), read_seconds(e, "lat"), how != sharing::fat};
  crossing both;
  if (how == sharing::split)
    both = add_two_links(e, link);
  else
    both.there = both.back = add_link(e, link);
  add_branch(zone, self, both.there, both.back, backbone);
  if (!e.text("limiter_link", "").empty()) {
    const uint32_t limiter = add_link(e, {name + "_limiter", read_bandwidth(e, "limiter_link"), 0, true});
    star_branch& branch = network.zones[zone].branches[self];
    branch.up.insert(branch.up.begin(), limiter);
    branch.down.push_back(limiter);
  }
}

void platform_reader::read_cabinet(const xml_element& e, zone_id zone, std::optional<uint32_t> backbone) {
  e.allow({"id", "prefix", "suffix", "radical", "speed", "bw", "lat"});
  for (const int64_t n : read_radical(e, "radical", max_cluster_devices)) {
    const std::string host = fmt::format("{}{}{}", e.text("prefix", ""), n, e.text("suffix", ""));
    add_host(e, host, zone, read_speed(e, "speed"), 1);
    const crossing both = add_two_links(e, {"link_" + host, read_bandwidth(e, "bw"), read_seconds(e, "lat"), true});
    add_branch(zone, hosts.back().point, both.there, both.back, backbone);
  }
}

void platform_reader::read_host_link(const xml_element& e, zone_id zone, std::optional<uint32_t> backbone) {
  e.allow({"id", "up", "down"});
  const point_id self = find_point(e, "id");
  if (network.points[self].zone != zone || network.points[self].inside || network.zones[zone].branches.contains(self))
    e.complain("a host or router of this zone is needed that has no links yet");
  add_branch(zone, self, find_link(e, "up"), find_link(e, "down"), backbone);
}

zone_id platform_reader::add_zone(const xml_element& e, std::optional<zone_id> parent, network_zone::routing how) {
  const auto zone = static_cast<zone_id>(network.zones.size());
  const point_id self = add_point(e, e.text("id"), parent.value_or(zone));
  network.points[self].inside = zone;
  network.zones.push_back({.how = how,
                           .self = self,
                           .parent = parent.value_or(zone),
                           .depth = parent ? network.zones[*parent].depth + 1 : 0,
                           .hops = {},
                           .branches = {}});
  return zone;
}

point_id platform_reader::add_point(const xml_element& e, std::string name, zone_id zone) {
  const auto p = static_cast<point_id>(network.points.size());
  if (name.size() > 200)
    e.complain("a name may have 200 characters");
  if (!network.point_of.emplace(name, p).second)
    e.complain("there are two '{}'", printable(name));
  network.points.push_back({std::move(name), zone, std::nullopt});
  return p;
}

void platform_reader::add_host(const xml_element& e, std::string name, zone_id zone, double speed, int64_t cores) {
  if ((devices_ += cores) > most_hosts)
    e.complain("there are more than {} cores in the platform", most_hosts);
  const point_id p = add_point(e, std::move(name), zone);
  hosts.push_back({p, speed, cores});
}

uint32_t platform_reader::add_link(const xml_element& e, zone_link link) {
  const auto id = static_cast<uint32_t>(network.links.size());
  if (duplex_.contains(link.name) || !links_.emplace(link.name, id).second)
    e.complain("there are two links '{}'", printable(link.name.substr(0, 60)));
  network.links.push_back(std::move(link));
  return id;
}

platform_reader::crossing platform_reader::add_two_links(const xml_element& e, const zone_link& both) {
  zone_link up = both, down = both;
  up.name += "_UP";
  down.name += "_DOWN";
  const crossing c{add_link(e, std::move(up)), add_link(e, std::move(down))};
  if (links_.contains(both.name) || !duplex_.emplace(both.name, c).second)
    e.complain("there are two links '{}'", printable(both.name.substr(0, 60)));
  return c;
}

void platform_reader::add_branch(zone_id zone, point_id p, uint32_t up, uint32_t down,
                                 std::optional<uint32_t> backbone) {
  star_branch& b = network.zones[zone].branches[p];
  b.up.push_back(up);
  if (backbone) {
    b.up.push_back(*backbone);
    b.down.push_back(*backbone);
  }
  b.down.push_back(down);
}

void platform_reader::add_hop(const xml_element& e, zone_id zone, point_id from, point_id to, zone_hop hop) {
  if (!network.zones[zone].hops.emplace(std::pair{from, to}, std::move(hop)).second)
    e.complain("there is a route from '{}' to '{}' already; routes go both ways unless symmetrical is NO",
               printable(network.points[from].name), printable(network.points[to].name));
}

point_id platform_reader::find_point(const xml_element& e, std::string_view attribute) const {
  const std::string& name = e.text(attribute);
  const auto found = network.point_of.find(name);
  if (found == network.point_of.end())
    e.complain("{} is '{}'; there is no such host, router or zone before it", attribute, printable(name.substr(0, 60)));
  return found->second;
}

uint32_t platform_reader::find_link(const xml_element& e, std::string_view attribute) const {
  const std::string& name = e.text(attribute);
  if (const auto found = links_.find(name); found != links_.end())
    return found->second;
  if (duplex_.contains(name))
    e.complain("the link '{}' is SPLITDUPLEX: its direction, UP or DOWN, is needed", printable(name));
  e.complain("there is no link '{}' before it", printable(name.substr(0, 60)));
}

platform_reader::crossing platform_reader::find_crossing(const xml_element& e) const {
  e.allow({"id", "direction"});
  const std::string direction = e.text("direction", "NONE");
  if (direction == "NONE") {
    const uint32_t link = find_link(e, "id");
    return {link, link};
  }
  if (direction != "UP" && direction != "DOWN")
    e.complain("the direction is '{}'; there are UP, DOWN and NONE", printable(direction.substr(0, 60)));
  const auto found = duplex_.find(e.text("id"));
  if (found == duplex_.end())
    e.complain("there is no link '{}' of two directions before it", printable(e.text("id").substr(0, 60)));
  const auto& [up, down] = found->second;
  return direction == "UP" ? crossing{up, down} : crossing{down, up};
}

bool platform_reader::is_inside(point_id p, point_id zone) const {
  if (network.points[p].inside)
    return false;
  for (zone_id z = network.points[p].zone; z != network.points[zone].inside; z = network.zones[z].parent)
    if (network.zones[z].depth == 0)
      return false;
  return true;
}

} // namespace troupe::sim

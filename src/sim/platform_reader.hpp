// The elements of a SimGrid platform as hosts and a network of zones. For platform_file.cpp alone.
#pragma once

#include "sim/platform_units.hpp"
#include "sim/zoned_network.hpp"

#include <optional>

namespace troupe::sim {

/// A host of a platform: `cores` of `operations_per_s` each.
struct platform_host {
  point_id point = 0;
  double operations_per_s = 0;
  int64_t cores = 1;
};

/// See the top of this file. Elements are read in their order: what a route names comes before it.
class platform_reader {
public:
  /// Reads the whole file.
  explicit platform_reader(const xml_element& platform);

  zoned_network network;
  std::vector<platform_host> hosts;

private:
  /// A link of a route, and the one of the way back.
  struct crossing {
    uint32_t there = 0, back = 0;
  };
  /// What a zone of routing "Cluster" holds beside hosts, which counts when the zone ends.
  struct spokes {
    std::optional<uint32_t> backbone;
    std::vector<const xml_element*> host_links, cabinets;
  };

  // -- elements
  void read_root(const xml_element& e);
  void read_zone(const xml_element& e, std::optional<zone_id> parent);
  void read_member(const xml_element& e, zone_id zone, spokes& of);
  void read_host(const xml_element& e, zone_id zone);
  void read_link(const xml_element& e);
  void read_route(const xml_element& e, zone_id zone);
  void read_cluster(const xml_element& e, std::optional<zone_id> parent);
  void read_node(const xml_element& e, zone_id zone, int64_t number, std::optional<uint32_t> backbone);
  void read_cabinet(const xml_element& e, zone_id zone, std::optional<uint32_t> backbone);
  void read_host_link(const xml_element& e, zone_id zone, std::optional<uint32_t> backbone);

  // -- parts of them
  zone_id add_zone(const xml_element& e, std::optional<zone_id> parent, network_zone::routing how);
  point_id add_point(const xml_element& e, std::string name, zone_id zone);
  void add_host(const xml_element& e, std::string name, zone_id zone, double speed, int64_t cores);
  uint32_t add_link(const xml_element& e, zone_link link);
  crossing add_two_links(const xml_element& e, const zone_link& both);
  void add_branch(zone_id zone, point_id p, uint32_t up, uint32_t down, std::optional<uint32_t> backbone);
  void add_hop(const xml_element& e, zone_id zone, point_id from, point_id to, zone_hop hop);
  point_id find_point(const xml_element& e, std::string_view attribute) const;
  uint32_t find_link(const xml_element& e, std::string_view attribute) const;
  crossing find_crossing(const xml_element& e) const;
  bool is_inside(point_id p, point_id zone) const;

  std::unordered_map<std::string, uint32_t> links_;  // by name
  std::unordered_map<std::string, crossing> duplex_; // both ways of links that are split
  int64_t devices_ = 0;
};

} // namespace troupe::sim

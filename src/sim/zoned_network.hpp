// Networks whose routes follow from zones within zones, as SimGrid's platforms have them: plain data, and the search
// for the route between two hosts.
//
// A route crosses zones by gateways: between two hosts of different zones, the zone that holds both says which links
// join the two zones, and from which point of the one to which point of the other. The way from a host to its gateway
// is found in the same manner.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace troupe::sim {

using point_id = uint32_t; // of a host, a router or a zone
using zone_id = uint32_t;

/// A link; one that works both ways at once is two.
struct zone_link {
  std::string name;
  double bytes_per_s = 0;
  double latency_s = 0;
  bool is_shared = true; // else all transfers have its whole speed (SimGrid's FATPIPE)
};

/// Links by which one point is left for another; `from` and `to` are in the points that it joins if these are zones,
/// else the points themselves.
struct zone_hop {
  point_id from = 0, to = 0;
  std::vector<uint32_t> links;
};

/// The links between a point and the middle of its star.
struct star_branch {
  std::vector<uint32_t> up, down;
};

struct network_point {
  std::string name;
  zone_id zone = 0;              // that it is in
  std::optional<zone_id> inside; // the zone that it is itself
};

struct network_zone {
  enum class routing : uint8_t {
    none,     // its points do not reach each other
    full,     // hops are whole routes
    shortest, // a route has as few links as possible
    star,     // a route goes through the middle
  };
  routing how = routing::none;
  point_id self = 0;
  zone_id parent = 0; // the first zone is its own
  uint32_t depth = 0; // of the first: 0
  std::map<std::pair<point_id, point_id>, zone_hop> hops;
  std::unordered_map<point_id, star_branch> branches; // a point without one is in the middle
};

/// See the top of this file. Gateways are inside the zones whose gateways they are.
struct zoned_network {
  std::vector<zone_link> links;
  std::vector<network_point> points;
  std::vector<network_zone> zones;                    // parents first
  std::unordered_map<std::string, point_id> point_of; // by name
};

/// Where a transfer goes.
struct network_route {
  std::vector<uint32_t> links;
  double latency_s = 0;   // of all links
  double bytes_per_s = 0; // of the slowest
};

/// Finds routes; keeps what it needs for the next one from the same point. The network must outlive it. Not
/// thread-safe.
class route_finder {
public:
  explicit route_finder(const zoned_network& network) : network_(network) {}

  /// Returns the route between two points that are no zones. Throws `errc::invalid_argument`, naming both, if there is
  /// none, or if it is too long.
  network_route between(point_id from, point_id to);

private:
  using path = std::vector<const zone_hop*>;
  struct tree {
    point_id root = 0;
    std::unordered_map<point_id, const zone_hop*> last; // by point, the hop that reaches it
    std::unordered_map<point_id, point_id> before;
  };

  void go(point_id from, point_id to);
  /// Returns the hops between two points of a zone.
  path hops(const network_zone& zone, point_id from, point_id to);
  const tree& tree_of(const network_zone& zone, point_id root);
  void cross(const network_zone& star, point_id from, point_id to);
  void append(const std::vector<uint32_t>& links);
  /// Returns the point of `zone` that `p`, somewhere inside, is or is in.
  point_id ancestor(point_id p, zone_id zone) const;
  [[noreturn]] void complain(const char* what) const;

  const zoned_network& network_;
  std::unordered_map<point_id, tree> trees_; // by the point of the zone: the one used last
  point_id from_ = 0, to_ = 0;               // what is looked for
  std::vector<uint32_t> found_;
};

} // namespace troupe::sim

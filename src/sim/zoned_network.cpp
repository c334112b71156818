#include "sim/zoned_network.hpp"

#include "base/error.hpp"
#include "base/printable.hpp"

#include <algorithm>
#include <limits>
#include <queue>

namespace troupe::sim {
namespace {

/// A route is kept for each pair of hosts that send something.
constexpr size_t most_links = 10'000;

} // namespace

void route_finder::complain(const char* what) const {
  fail(errc::invalid_argument, "{} from '{}' to '{}'", what, printable(network_.points[from_].name),
       printable(network_.points[to_].name));
}

network_route route_finder::between(point_id from, point_id to) {
  from_ = from;
  to_ = to;
  found_.clear();
  go(from, to);
  network_route route{.links = found_, .latency_s = 0, .bytes_per_s = std::numeric_limits<double>::infinity()};
  for (const uint32_t l : found_) {
    route.latency_s += network_.links[l].latency_s;
    route.bytes_per_s = std::min(route.bytes_per_s, network_.links[l].bytes_per_s);
  }
  return route;
}

point_id route_finder::ancestor(point_id p, zone_id zone) const {
  while (network_.points[p].zone != zone)
    p = network_.zones[network_.points[p].zone].self;
  return p;
}

void route_finder::go(point_id from, point_id to) {
  if (from == to)
    return;
  zone_id a = network_.points[from].zone, b = network_.points[to].zone;
  while (a != b) {
    zone_id& deeper = network_.zones[a].depth >= network_.zones[b].depth ? a : b;
    deeper = network_.zones[deeper].parent;
  }
  const network_zone& zone = network_.zones[a];
  const point_id first = ancestor(from, a), last = ancestor(to, a);
  if (zone.how == network_zone::routing::star)
    return cross(zone, first, last);
  point_id at = from;
  for (const zone_hop* hop : hops(zone, first, last)) {
    go(at, hop->from); // a gateway is deeper than `zone`, so that this ends
    append(hop->links);
    at = hop->to;
  }
  go(at, to);
}

void route_finder::append(const std::vector<uint32_t>& links) {
  if (found_.size() + links.size() > most_links)
    complain("there are more than 10,000 links on the route");
  found_.insert(found_.end(), links.begin(), links.end());
}

void route_finder::cross(const network_zone& star, point_id from, point_id to) {
  const size_t begin = found_.size();
  const auto way = [&](point_id p, std::vector<uint32_t> star_branch::*direction) {
    if (const auto branch = star.branches.find(p); branch != star.branches.end())
      for (const uint32_t l : branch->second.*direction)
        if (std::find(found_.begin() + static_cast<ptrdiff_t>(begin), found_.end(), l) == found_.end())
          append({l}); // the middle's own link is part of both branches, and crossed once
  };
  way(from, &star_branch::up);
  way(to, &star_branch::down);
}

route_finder::path route_finder::hops(const network_zone& zone, point_id from, point_id to) {
  if (zone.how == network_zone::routing::full) {
    const auto found = zone.hops.find({from, to});
    if (found == zone.hops.end())
      complain("there is no route");
    return {&found->second};
  }
  path all;
  if (zone.how == network_zone::routing::none)
    complain("there is no route");
  const tree& known = tree_of(zone, from);
  for (point_id p = to; p != from; p = known.before.at(p)) {
    const auto hop = known.last.find(p);
    if (hop == known.last.end())
      complain("there is no route");
    all.push_back(hop->second);
  }
  std::reverse(all.begin(), all.end());
  return all;
}

const route_finder::tree& route_finder::tree_of(const network_zone& zone, point_id root) {
  tree& t = trees_[zone.self];
  if (!t.last.empty() && t.root == root)
    return t;
  t = {.root = root, .last = {}, .before = {}};
  std::unordered_map<point_id, size_t> cost{{root, 0}};
  using entry = std::pair<size_t, point_id>;
  std::priority_queue<entry, std::vector<entry>, std::greater<>> next;
  next.emplace(0, root);
  while (!next.empty()) {
    const auto [so_far, p] = next.top();
    next.pop();
    if (so_far > cost.at(p))
      continue;
    for (auto edge = zone.hops.lower_bound({p, 0}); edge != zone.hops.end() && edge->first.first == p; ++edge) {
      const point_id q = edge->first.second;
      const size_t there = so_far + edge->second.links.size();
      if (const auto known = cost.find(q); known != cost.end() && known->second <= there)
        continue;
      cost[q] = there;
      t.last[q] = &edge->second;
      t.before[q] = p;
      next.emplace(there, q);
    }
  }
  return t;
}

} // namespace troupe::sim

#include "sim/chunk_prices.hpp"

#include "base/error.hpp"
#include "cost/cost_model.hpp"

#include <cmath>

namespace troupe::sim {
namespace {

/// Prices of one segment's chunks.
class pricer {
public:
  pricer(const bound_plan& bound, std::span<const device_routes* const> routes)
      : plan_(*bound.source), bound_(bound), routes_(routes), wanted_here_(values_wanted_here(plan_)),
        prices_(plan_.chunks.size()) {
    const std::vector<shape> expected = expected_dims(*plan_.program, bound.values);
    dims_.reserve(expected.size());
    for (size_t v = 0; v < expected.size(); ++v)
      dims_.push_back(plan_.segment_of_value[v] <= bound.segment ? bound.dims[v] : expected[v]);
  }

  std::vector<chunk_price> all() {
    const std::vector<chunk_cost> costs = chunk_costs(plan_, dims_);
    const std::vector<bool> is_free = next_is_free(costs, plan_.devices.size());
    for (chunk_id c = plan_.segment_begin[bound_.segment]; c < plan_.segment_begin[bound_.segment + 1]; ++c) {
      if (!is_priced(c))
        continue;
      prices_[c] = {.host_s = costs[c].host_s,
                    .work_s = costs[c].work_s,
                    .in_bytes = costs[c].in_bytes,
                    .out_bytes = costs[c].out_bytes,
                    .next_is_free = is_free[c]};
      for (value_id v : plan_.chunks[c].downloads)
        download(plan_.chunks[c].device, prices_[c], v);
    }
    for (const transfer& t : plan_.transfers)
      if (t.to && is_priced(*t.to))
        upload(*t.to, t.value);
    return std::move(prices_);
  }

private:
  bool is_priced(chunk_id c) const {
    return plan_.chunks[c].segment == bound_.segment &&
           plan_.devices[plan_.chunks[c].device].kind != device_kind::control;
  }

  void upload(chunk_id id, value_id v) {
    const device_index on = plan_.chunks[id].device;
    const device_info& device = plan_.devices[on];
    chunk_price& p = prices_[id];
    const double bytes = value_bytes(plan_, dims_, v);
    const node_id maker = plan_.producer[v];
    if (routes_[on]->zones) {
      cross_zones(p, bytes, maker < 0 ? device : plan_.devices[plan_.placement[maker]], device);
    } else if (is_remote(device)) {
      const device_index from = maker < 0 ? on : plan_.placement[maker];
      const device_info* source = maker < 0 ? nullptr : &plan_.devices[from];
      const bool is_from_session = !source || !is_remote(*source);
      std::vector<link_index> route =
          joined(routes_[on]->network_in, is_from_session ? routes_[on]->from_session : routes_[from]->network_out);
      add(p.net_in, bytes, network_speed(source, &device, bytes), std::move(route));
    }
    add(p.in, bytes, device.profile.up, routes_[on]->up);
  }

  void download(device_index on, chunk_price& p, value_id v) {
    const device_info& device = plan_.devices[on];
    const double bytes = value_bytes(plan_, dims_, v);
    add(p.out, bytes, device.profile.down, routes_[on]->down);
    if (wanted_here_[v] && is_remote(device) && !routes_[on]->zones)
      add(p.net_out, bytes, network_speed(&device, nullptr, bytes),
          joined(routes_[on]->network_out, routes_[on]->to_session));
  }

  /// What the session's process has, or a control-flow node made, is on no host of the zones: it costs nothing.
  void cross_zones(chunk_price& p, double bytes, const device_info& from, const device_info& to) {
    if (!is_remote(from) || from.host == to.host)
      return;
    const leg& way = routes_[0]->zones->between(from.host, to.host);
    add(p.net_in, bytes, {.bytes_per_s = way.bytes_per_s, .latency_s = way.latency_s}, way.route);
  }

  static std::vector<link_index> joined(std::vector<link_index> route, const std::vector<link_index>& more) {
    route.insert(route.end(), more.begin(), more.end());
    std::sort(route.begin(), route.end());
    route.erase(std::unique(route.begin(), route.end()), route.end());
    return route;
  }

  /// The link that counts between two hosts, as `network_seconds` has it.
  static link_speed network_speed(const device_info* from, const device_info* to, double bytes) {
    link_speed free;
    if (from && to && from->host == to->host)
      return free;
    const link_speed out = from && is_remote(*from) ? from->network_out : free;
    const link_speed in = to && is_remote(*to) ? to->network_in : free;
    return link_seconds(bytes, out) > link_seconds(bytes, in) ? out : in;
  }

  /// Copies that share no link are one leg. On one that is shared, others notice when each copy waits out its latency.
  static void add(std::vector<leg>& legs, double bytes, const link_speed& speed, std::vector<link_index> route) {
    if (std::isinf(speed.bytes_per_s)) // nothing is copied
      return;
    if (!legs.empty() && route.empty() && legs.back().route.empty() && legs.back().bytes_per_s == speed.bytes_per_s) {
      legs.back().latency_s += speed.latency_s;
      legs.back().bytes += bytes;
    } else {
      legs.push_back({speed.latency_s, bytes, speed.bytes_per_s, std::move(route)});
    }
  }

  const plan& plan_;
  const bound_plan& bound_;
  std::span<const device_routes* const> routes_;
  const std::vector<bool> wanted_here_;
  std::vector<shape> dims_; // by value
  std::vector<chunk_price> prices_;
};

} // namespace

zone_legs::zone_legs(std::shared_ptr<const zoned_network> network, shared_links& links)
    : network_(std::move(network)), finder_(*network_) {
  for (const zone_link& l : network_->links)
    shared_.push_back(l.is_shared ? std::optional(links.add(l.name, l.bytes_per_s)) : std::nullopt);
}

const leg& zone_legs::between(const std::string& from, const std::string& to) {
  const point_id a = network_->point_of.at(from), b = network_->point_of.at(to);
  const auto [at, is_new] = known_.try_emplace(uint64_t{a} << 32 | b);
  if (!is_new)
    return at->second;
  const network_route found = finder_.between(a, b);
  at->second = {.latency_s = found.latency_s, .bytes = 0, .bytes_per_s = found.bytes_per_s, .route = {}};
  for (const uint32_t l : found.links)
    if (shared_[l])
      at->second.route.push_back(*shared_[l]);
  return at->second;
}

std::vector<device_routes> add_links(const cluster& c, shared_links& links) {
  if (c.zones)
    return {c.devices.size(), {.zones = std::make_shared<zone_legs>(c.zones, links)}};
  struct two_ways {
    link_index in = 0, out = 0;
  };
  std::map<std::string, std::vector<two_ways>> of_host, of_device;
  std::vector<link_index> from_session, to_session;
  if (std::isfinite(c.network.out_bytes_per_s))
    from_session.push_back(links.add("this host, out", c.network.out_bytes_per_s));
  if (std::isfinite(c.network.in_bytes_per_s))
    to_session.push_back(links.add("this host, in", c.network.in_bytes_per_s));
  for (const device_info& d : c.devices)
    if (is_remote(d) && !of_host.contains(d.host))
      of_host[d.host].push_back({links.add(d.host + ", in", d.network_in.bytes_per_s),
                                 links.add(d.host + ", out", d.network_out.bytes_per_s)});
  for (const shared_link& l : c.links) {
    const link_index in = links.add(l.half_duplex ? l.name : l.name + ", in", l.bytes_per_s);
    const two_ways both{in, l.half_duplex ? in : links.add(l.name + ", out", l.bytes_per_s)};
    for (const std::string& name : l.hosts)
      of_host[name].push_back(both);
    for (const std::string& name : l.devices)
      of_device[name].push_back(both);
  }
  std::vector<device_routes> routes;
  routes.reserve(c.devices.size());
  for (const device_info& d : c.devices) {
    device_routes& r = routes.emplace_back();
    if (is_remote(d)) {
      r.from_session = from_session;
      r.to_session = to_session;
    }
    if (const auto found = of_host.find(d.host); found != of_host.end())
      for (const two_ways& l : found->second) {
        r.network_in.push_back(l.in);
        r.network_out.push_back(l.out);
      }
    if (const auto found = of_device.find(d.name); found != of_device.end())
      for (const two_ways& l : found->second) {
        r.up.push_back(l.in);
        r.down.push_back(l.out);
      }
  }
  return routes;
}

std::vector<chunk_price> price(const bound_plan& bound, std::span<const device_routes* const> routes) {
  return pricer(bound, routes).all();
}

} // namespace troupe::sim

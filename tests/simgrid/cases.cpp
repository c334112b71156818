#include "simgrid/cases.hpp"

#include "base/seeded_random.hpp"
#include "schedules/task_graph.hpp"

#include <fmt/format.h>

namespace troupe::test {
namespace {

constexpr const char* head = "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
                             "<platform version=\"4.1\">\n";

/// Draws attributes.
class draw {
public:
  explicit draw(uint64_t seed) : random_(seed) {}

  uint32_t count(uint32_t least, uint32_t most) { return least + random_.below(most - least + 1); }
  bool flips() { return random_.unit() < 0.5; }
  std::string speed() { return fmt::format("speed=\"{:.3f}Gf\"", random_.between(0.5, 4)); }
  std::string link(const char* bandwidth, const char* latency) {
    return fmt::format(R"({}="{:.3f}MBps" {}="{:.3f}us")", bandwidth, random_.between(20, 400), latency,
                       random_.between(10, 2000));
  }
  std::string plain_link(const std::string& id) {
    return fmt::format("<link id=\"{}\" {}{}/>\n", id, link("bandwidth", "latency"),
                       random_.unit() < 0.2 ? " sharing_policy=\"FATPIPE\"" : "");
  }

private:
  seeded_random random_;
};

/// Routes of one to three links of a few, by pair.
std::string shared_links(draw& d) {
  const uint32_t hosts = d.count(3, 8), links = d.count(2, 6);
  std::string zone = "<zone id=\"world\" routing=\"Full\">\n";
  for (uint32_t h = 0; h < hosts; ++h)
    zone += fmt::format("<host id=\"h{}\" {}/>\n", h, d.speed());
  for (uint32_t l = 0; l < links; ++l)
    zone += d.plain_link(fmt::format("l{}", l));
  for (uint32_t a = 0; a < hosts; ++a)
    for (uint32_t b = a + 1; b < hosts; ++b) {
      zone += fmt::format("<route src=\"h{}\" dst=\"h{}\">", a, b);
      const uint32_t first = d.count(0, links - 1), used = d.count(1, std::min(3U, links));
      for (uint32_t i = 0; i < used; ++i)
        zone += fmt::format("<link_ctn id=\"l{}\"/>", (first + i) % links);
      zone += "</route>\n";
    }
  return zone + "</zone>\n";
}

/// Each host has links of its own, which work both ways at once or not.
std::string star(draw& d) {
  std::string zone = "<zone id=\"star\" routing=\"Cluster\">\n";
  for (uint32_t h = 0, hosts = d.count(3, 10); h < hosts; ++h) {
    const bool is_split = d.flips();
    zone += fmt::format("<host id=\"h{}\" {}/>\n<link id=\"l{}\" {}{}/>\n", h, d.speed(), h,
                        d.link("bandwidth", "latency"), is_split ? " sharing_policy=\"SPLITDUPLEX\"" : "");
    zone += is_split ? fmt::format("<host_link id=\"h{0}\" up=\"l{0}_UP\" down=\"l{0}_DOWN\"/>\n", h)
                     : fmt::format("<host_link id=\"h{0}\" up=\"l{0}\" down=\"l{0}\"/>\n", h);
  }
  if (d.flips())
    zone += fmt::format("<backbone id=\"middle\" {}/>\n", d.link("bandwidth", "latency"));
  return zone + "</zone>\n";
}

std::string cluster(draw& d, const std::string& id, uint32_t hosts) {
  std::string more = d.flips() ? " " + d.link("bb_bw", "bb_lat") : "";
  if (d.flips())
    more += " sharing_policy=\"SHARED\"";
  return fmt::format("<cluster id=\"{0}\" prefix=\"{0}-\" suffix=\"\" radical=\"0-{1}\" {2} {3}{4}/>\n", id, hosts - 1,
                     d.speed(), d.link("bw", "lat"), more);
}

/// Clusters, each with an uplink to the root.
std::string tree(draw& d) {
  std::string zone = "<zone id=\"root\" routing=\"Full\">\n";
  const uint32_t clusters = d.count(2, 4);
  for (uint32_t c = 0; c < clusters; ++c)
    zone += cluster(d, fmt::format("c{}", c), d.count(2, 3));
  for (uint32_t c = 0; c < clusters; ++c)
    zone += fmt::format("<link id=\"up{}\" {} sharing_policy=\"SPLITDUPLEX\"/>\n", c, d.link("bandwidth", "latency"));
  for (uint32_t a = 0; a < clusters; ++a)
    for (uint32_t b = a + 1; b < clusters; ++b)
      zone += fmt::format("<zoneRoute src=\"c{0}\" dst=\"c{1}\" gw_src=\"c{0}-c{0}_router\" "
                          "gw_dst=\"c{1}-c{1}_router\"><link_ctn id=\"up{0}\" direction=\"UP\"/>"
                          "<link_ctn id=\"up{1}\" direction=\"DOWN\"/></zoneRoute>\n",
                          a, b);
  return zone + "</zone>\n";
}

/// Chains side by side, of work and values of many sizes.
task_graph chains(draw& d, seeded_random& random, double work, double bytes) {
  task_graph g{.name = "chains", .tasks = {}, .edges = {}};
  const uint32_t count = d.count(2, 6), length = d.count(4, 10);
  for (uint32_t i = 0; i < count * length; ++i) {
    g.tasks.push_back({"link", random.between(0.1, 2) * work});
    if (i >= count)
      g.edges.push_back({i - count, i, random.between(0.1, 2) * bytes});
  }
  return g;
}

} // namespace

std::string random_platform(size_t kind, uint64_t seed) {
  draw d(seed * 4 + kind);
  const std::string zone = kind == 0   ? shared_links(d)
                           : kind == 1 ? star(d)
                           : kind == 2 ? cluster(d, "c", d.count(3, 12))
                                       : tree(d);
  return head + zone + "</platform>\n";
}

task_graph random_graph(size_t kind, uint64_t seed) {
  draw d(seed * 3 + kind + 1'000'000);
  seeded_random random(seed);
  const double work = 1e9, bytes = std::array{1e6, 1e7, 1e8}[random.below(3)];
  if (kind == 0)
    return chains(d, random, work, bytes);
  if (kind == 2)
    return layers({.tasks = d.count(10, 60), .shape = random.between(0.5, 2), .out_degree = d.count(1, 4)}, work, bytes,
                  seed);
  task_graph g = fork_join(d.count(3, 10), d.count(1, 4), work, bytes);
  for (graph_task& t : g.tasks)
    t.work *= random.between(0.1, 2);
  for (graph_edge& e : g.edges)
    e.bytes *= random.between(0.1, 2);
  return g;
}

} // namespace troupe::test

// SimGrid's platforms: what they mean as clusters, what is refused, and that nothing else happens.
#include "base/seeded_random.hpp"
#include "sim/cluster.hpp"
#include "sim/platform_reader.hpp"
#include "support/catch.hpp"
#include "support/thrown.hpp"
#include "troupe/simulation.hpp"
#include "troupe/task_graph.hpp"

using namespace troupe;
using namespace troupe::sim;
using Catch::Contains;
using test::thrown_by;

namespace {

std::string platform(const std::string& inside) {
  return "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
         "<platform version=\"4.1\">\n" +
         inside + "\n</platform>\n";
}

/// Two hosts a and b, a link l between; `more` in the zone.
std::string two_hosts(const std::string& more = "", const std::string& routing = "Full") {
  return platform("<zone id=\"z\" routing=\"" + routing +
                  "\">\n<host id=\"a\" speed=\"1Gf\"/>\n<host id=\"b\" speed=\"2Gf,1Gf\" pstate=\"1\" core=\"2\"/>\n"
                  "<link id=\"l\" bandwidth=\"1MBps\" latency=\"1ms\"/>\n" +
                  more + "\n</zone>");
}

/// Two clusters of three nodes under one zone, and a host beside them: a two-level tree.
const std::string tree = platform(R"(<zone id="world" routing="Floyd">
  <cluster id="x" prefix="x" suffix=".net" radical="0-1,5" speed="1Gf" bw="125MBps" lat="50us" bb_bw="2GBps"
           bb_lat="500us" limiter_link="100MBps"/>
  <cluster id="y" prefix="y" suffix="" radical="0-2" speed="1Gf" core="2" bw="1Gbps" lat="50us" router_id="out"
           sharing_policy="SHARED"/>
  <zone id="alone" routing="None"><host id="h" speed="500Mf"><prop id="k" value="v"/></host></zone>
  <link id="wan" bandwidth="10MBps" latency="10ms" sharing_policy="FATPIPE"/>
  <link id="up" bandwidth="20MiBps" latency="1ms" sharing_policy="SPLITDUPLEX"/>
  <zoneRoute src="x" dst="y" gw_src="xx_router.net" gw_dst="out">
    <link_ctn id="up" direction="UP"/><link_ctn id="wan"/>
  </zoneRoute>
  <zoneRoute src="y" dst="alone" gw_src="out" gw_dst="h" symmetrical="YES"><link_ctn id="up_UP"/></zoneRoute>
</zone>)");

std::vector<std::string> route(const platform_reader& read, const std::string& from, const std::string& to) {
  std::vector<std::string> names;
  for (const uint32_t l :
       route_finder(read.network).between(read.network.point_of.at(from), read.network.point_of.at(to)).links)
    names.push_back(read.network.links[l].name);
  return names;
}

std::string refusal_of(const std::string& text) {
  const error e = thrown_by([&] { parse_cluster(text, {}); });
  CHECK(e.code() == errc::invalid_argument);
  return e.what();
}

using names = std::vector<std::string>;

} // namespace

TEST_CASE("a platform's hosts are devices with its speeds and nothing else that takes time", "[sim][platform]") {
  const cluster c = parse_cluster(two_hosts("<route src=\"a\" dst=\"b\"><link_ctn id=\"l\"/></route>"), {});
  REQUIRE(c.devices.size() == 3);
  CHECK(c.devices[0].name == "a/cpu");
  CHECK(c.devices[2].name == "b/cpu:1");
  CHECK(c.devices[2].host == "b");
  CHECK(c.devices[0].profile.flops_per_s[1] == 1e9);
  CHECK(c.devices[1].profile.flops_per_s[1] == 1e9); // its second state
  CHECK(c.devices[0].profile.launch_s + c.devices[0].profile.chunk_s + c.devices[0].profile.submit_s == 0);
  CHECK(c.devices[0].network_in == link_speed{1e6, 1e-3});
  CHECK(c.coordinator_s == 0);
  CHECK_THROWS_WITH(write_cluster(c), Contains("routes"));
}

TEST_CASE("quantities of a platform have units", "[sim][platform]") {
  const auto speed = [](const char* text) { return read_speed(parse_xml(fmt::format("<h s='{}'/>", text)), "s"); };
  const auto bandwidth = [](const char* text) {
    return read_bandwidth(parse_xml(fmt::format("<l b='{}'/>", text)), "b");
  };
  const auto time = [](const char* text) { return read_seconds(parse_xml(fmt::format("<l t='{}'/>", text)), "t"); };
  CHECK(speed("98.095Mf") == Approx(98.095e6));
  CHECK(speed("21.496E9f") == Approx(21.496e9));
  CHECK(speed("3gigaflops") == 3e9);
  CHECK(speed("7") == 7);
  CHECK(bandwidth("1.25GBps") == 1.25e9);
  CHECK(bandwidth("1KiBps") == 1024);
  CHECK(bandwidth("8kbps") == 1000);
  CHECK(bandwidth("1Mibps") == 131072);
  CHECK(time("500us") == Approx(5e-4));
  CHECK(time("2m") == 120);
  CHECK(time("0") == 0);
  for (const char* wrong : {"1Gx", "Gf", "1 Gf x", "-1Gf", "nan", "1e40f", "0f", "1Kf", "1kif"})
    CHECK_THROWS_WITH(speed(wrong), Contains("line 1: <h>"));
  CHECK_THROWS_WITH(bandwidth("1Mf"), Contains("there is no unit 'Mf'"));
  CHECK_THROWS_WITH(time("1year"), Contains("there is no unit 'year'"));
}

TEST_CASE("routes go through zones by their gateways", "[sim][platform]") {
  const platform_reader read(parse_xml(tree));
  CHECK(read.hosts.size() == 7);
  CHECK(route(read, "x0.net", "x5.net") ==
        names{"x_link_0_limiter", "x_link_0_UP", "x_backbone", "x_link_5_DOWN", "x_link_5_limiter"});
  CHECK(route(read, "x5.net", "y2") ==
        names{"x_link_5_limiter", "x_link_5_UP", "x_backbone", "up_UP", "wan", "y_link_2"});
  // The way back takes the other direction of a link that has two, and the same of one that is named by its own name.
  CHECK(route(read, "h", "x1.net") ==
        names{"up_UP", "wan", "up_DOWN", "x_backbone", "x_link_1_DOWN", "x_link_1_limiter"});
  CHECK(route(read, "y0", "y1") == names{"y_link_0", "y_link_1"});
  const network_route way =
      route_finder(read.network).between(read.network.point_of.at("x5.net"), read.network.point_of.at("y2"));
  CHECK(way.latency_s == Approx(50e-6 + 500e-6 + 1e-3 + 10e-3 + 50e-6));
  CHECK(way.bytes_per_s == 10e6);
}

TEST_CASE("a zone of routing Cluster joins its hosts in the middle", "[sim][platform]") {
  const platform_reader read(parse_xml(platform(R"(<zone id="z" routing="Cluster">
    <host id="a" speed="1f"/><host id="b" speed="1f"/><router id="r"/>
    <link id="la" bandwidth="1Bps"/><link id="lb" bandwidth="1Bps" sharing_policy="SPLITDUPLEX"/>
    <host_link id="b" up="lb_UP" down="lb_DOWN"/><host_link id="a" up="la" down="la"/>
    <cabinet id="rack" prefix="c" suffix="" radical="1-2" speed="1f" bw="1Bps" lat="1s"/>
    <backbone id="bb" bandwidth="1Bps" latency="1s"/></zone>)")));
  CHECK(route(read, "a", "b") == names{"la", "bb", "lb_DOWN"});
  CHECK(route(read, "b", "c2") == names{"lb_UP", "bb", "link_c2_DOWN"});
  CHECK(route(read, "c1", "r") == names{"link_c1_UP", "bb"});
}

TEST_CASE("a zone of shortest routes takes those of few links", "[sim][platform]") {
  const std::string hosts = R"(<host id="a" speed="1f"/><host id="b" speed="1f"/><host id="c" speed="1f"/>
    <host id="d" speed="1f"/><link id="l" bandwidth="1Bps"/><link id="m" bandwidth="1Bps"/>
    <route src="a" dst="b"><link_ctn id="l"/></route><route src="b" dst="c"><link_ctn id="m"/></route>
    <route src="a" dst="c" symmetrical="NO"><link_ctn id="l"/><link_ctn id="l"/><link_ctn id="m"/></route>)";
  for (const char* routing : {"Floyd", "Dijkstra", "DijkstraCache"}) {
    const platform_reader read(
        parse_xml(platform(fmt::format("<zone id=\"z\" routing=\"{}\">{}</zone>", routing, hosts))));
    CHECK(route(read, "a", "c") == names{"l", "m"});
    CHECK(route(read, "c", "a") == names{"m", "l"});
    CHECK_THROWS_WITH(route(read, "a", "d"), Contains("there is no route from 'a' to 'd'"));
  }
  const platform_reader full(parse_xml(platform("<zone id=\"z\" routing=\"Full\">" + hosts + "</zone>")));
  CHECK(route(full, "a", "c") == names{"l", "l", "m"});
  CHECK_THROWS_WITH(route(full, "c", "a"), Contains("there is no route from 'c' to 'a'"));
}

TEST_CASE("values take the routes of a platform, and share its links", "[sim][platform][links]") {
  // Two tasks of a second on one host, each read by one on another host: 1 MB each over one link of 1 MB/s.
  const task_graph g{
      .name = "g", .tasks = {{"a", 1e9}, {"b", 1e9}, {"c", 1e9}, {"d", 1e9}}, .edges = {{0, 2, 1e6}, {1, 3, 1e6}}};
  const auto seconds = [&](const std::string& link, const std::string& route_of_b) {
    simulation_options how{
        .cluster_text = platform("<zone id=\"z\" routing=\"Full\"><host id=\"s\" speed=\"1Gf\" core=\"2\"/>"
                                 "<host id=\"t\" speed=\"1Gf\"/><host id=\"u\" speed=\"1Gf\"/>"
                                 "<link id=\"l\" bandwidth=\"1MBps\" latency=\"1ms\" sharing_policy=\"" +
                                 link + "\"/><route src=\"s\" dst=\"t\"><link_ctn id=\"l\"/></route>" +
                                 "<route src=\"s\" dst=\"u\"><link_ctn id=\"l\"/>" + route_of_b + "</route></zone>"),
        .profile_file = "/nowhere"};
    how.session.pins = {{"a_0", "s/cpu:0"}, {"b_1", "s/cpu:1"}, {"c_2", "t/cpu"}, {"d_3", "u/cpu"}};
    how.session.fuse = false;
    return simulate(model_of(g), {}, how).makespan_ms * 1e-3;
  };
  CHECK(seconds("FATPIPE", "") == Approx(1 + 1.001 + 1));
  CHECK(seconds("SHARED", "") == Approx(1 + 2.001 + 1));
  // A route that crosses a link twice takes twice its share: of each second two thirds of a MB.
  CHECK(seconds("SHARED", "<link_ctn id=\"l\"/>") == Approx(1 + 0.001 + 3 + 1).epsilon(1e-3));
}

TEST_CASE("each value waits out its latency before it has a part of a link", "[sim][platform][links]") {
  // Two values of a MB go to t, one to u. In the first half second none moves, then two do, till 2.5 s; the last one
  // waits again, and has the link for itself from 3 s to 4 s.
  const task_graph g{.name = "g",
                     .tasks = {{"a", 1e9}, {"b", 1e9}, {"c", 1e9}, {"t", 1e9}, {"u", 1e9}},
                     .edges = {{0, 3, 1e6}, {1, 3, 1e6}, {2, 4, 1e6}}};
  simulation_options how{.cluster_text =
                             platform("<zone id=\"z\" routing=\"Full\"><host id=\"s\" speed=\"1Gf\" core=\"3\"/>"
                                      "<host id=\"t\" speed=\"1Gf\"/><host id=\"u\" speed=\"1Gf\"/>"
                                      "<link id=\"l\" bandwidth=\"1MBps\" latency=\"500ms\"/>"
                                      "<route src=\"s\" dst=\"t\"><link_ctn id=\"l\"/></route>"
                                      "<route src=\"s\" dst=\"u\"><link_ctn id=\"l\"/></route></zone>"),
                         .profile_file = "/nowhere"};
  how.session.pins = {{"a_0", "s/cpu:0"}, {"b_1", "s/cpu:1"}, {"c_2", "s/cpu:2"}, {"t_3", "t/cpu"}, {"u_4", "u/cpu"}};
  how.session.fuse = false;
  CHECK(simulate(model_of(g), {}, how).makespan_ms == Approx(1000 + 4000 + 1000));
}

TEST_CASE("what is wrong in a platform is named with its line and element", "[sim][platform][hostile]") {
  const auto in_zone = [](const std::string& line) { return refusal_of(two_hosts(line)); };
  CHECK_THAT(refusal_of("<platform version='4.1'>"), Contains("line 1: no element found"));
  CHECK_THAT(refusal_of("<adag/>"), Contains("line 1: <adag>: a cluster file of XML is a platform of SimGrid"));
  CHECK_THAT(refusal_of("<platform version='3'/>"), Contains("line 1: <platform>: the version is '3'"));
  CHECK_THAT(refusal_of(platform("")), Contains("line 3: <platform>: there must be a host"));
  CHECK_THAT(refusal_of(platform("<zone id='z' routing='Full'/><zone id='y' routing='Full'/>")),
             Contains("line 4: <zone id=\"y\">: there is a zone before it"));
  CHECK_THAT(in_zone("<host id='a' speed='1f'/>"), Contains("line 8: <host id=\"a\">: there are two 'a'"));
  CHECK_THAT(in_zone("<host id='c'/>"), Contains("<host id=\"c\">: the attribute 'speed' is missing"));
  CHECK_THAT(in_zone("<host id='c' speed='1f' colour='red'/>"), Contains("there is no attribute 'colour'; there are"));
  CHECK_THAT(in_zone("<host id='c' speed='1f' core='0'/>"), Contains("core is '0'; a whole number from 1 to 10000"));
  CHECK_THAT(in_zone("<host id='c' speed='1f' core='9998'/>"), Contains("more than 10000 cores"));
  CHECK_THAT(in_zone("<host id='c' speed='1f,2f' pstate='2'/>"), Contains("speed has 2 speeds, and number 2 is asked"));
  CHECK_THAT(in_zone("<host id='c' speed='1f'>fast</host>"), Contains("the text 'fast' is not expected in it"));
  CHECK_THAT(in_zone("<link id='l' bandwidth='1Bps'/>"), Contains("<link id=\"l\">: there are two links 'l'"));
  CHECK_THAT(in_zone("<route src='a' dst='c'/>"), Contains("dst is 'c'; there is no such host, router or zone"));
  CHECK_THAT(in_zone("<route src='a' dst='z'/>"), Contains("'z' is no host or router of this zone"));
  CHECK_THAT(in_zone("<route src='a' dst='b'/>"), Contains("<route>: a route without links"));
  CHECK_THAT(in_zone("<route src='a' dst='b'><link_ctn id='m'/></route>"),
             Contains("line 8: <link_ctn id=\"m\">: there is no link 'm' before it"));
  CHECK_THAT(in_zone("<route src='a' dst='b'><link_ctn id='l' direction='UP'/></route>"),
             Contains("there is no link 'l' of two directions"));
  const std::string way = "<route src='a' dst='b'><link_ctn id='l'/></route>";
  CHECK_THAT(in_zone(way + way), Contains("there is a route from 'a' to 'b' already"));
  CHECK_THAT(refusal_of(two_hosts(way, "None")), Contains("has no routes between two points"));
  CHECK_THAT(in_zone("<zone id='y' routing='Full'/><zone id='w' routing='Full'/>"
                     "<zoneRoute src='y' dst='w' gw_src='a' gw_dst='b'/>"),
             Contains("a gateway is a host or router inside the zone"));
  CHECK_THAT(in_zone("<host_link id='a' up='l' down='l'/>"), Contains("there is no such element here"));
  CHECK_THAT(in_zone("<cluster id='c' prefix='' suffix='' radical='3-1' speed='1f' bw='1Bps' lat='0'/>"),
             Contains("radical has '3-1'"));
}

TEST_CASE("what platforms have and simulations do not is refused by name", "[sim][platform][hostile]") {
  const auto in_zone = [](const std::string& line) { return refusal_of(two_hosts(line)); };
  CHECK_THAT(refusal_of(platform("<config id='c'/>")), Contains("line 4: <config id=\"c\">: it is not supported"));
  CHECK_THAT(refusal_of(two_hosts("", "Vivaldi")), Contains("the routing 'Vivaldi' is not supported; there are Full"));
  CHECK_THAT(in_zone("<link id='m' bandwidth='1Bps' sharing_policy='WIFI'/>"), Contains("'WIFI' is not supported"));
  CHECK_THAT(in_zone("<host id='c' speed='1f' speed_file='f'/>"), Contains("'speed_file' is not supported"));
  CHECK_THAT(in_zone("<peer id='p'/>"), Contains("<peer id=\"p\">: it is not supported: routes by coordinates"));
  CHECK_THAT(in_zone("<bypassRoute src='a' dst='b'/>"), Contains("<bypassRoute>: it is not supported"));
  CHECK_THAT(in_zone("<cluster id='c' topology='TORUS' radical='0' speed='1f' bw='1Bps' lat='0'/>"),
             Contains("the topology 'TORUS' is not supported"));
}

TEST_CASE("XML that grows, nests or never ends is refused", "[sim][platform][hostile]") {
  CHECK_THAT(refusal_of("<!DOCTYPE p [\n<!ENTITY a 'aaaaaaaa'>\n<!ENTITY b '&a;&a;'>]><platform version='&b;'/>"),
             Contains("line 2: entities are not read, and 'a' is one"));
  CHECK_THAT(refusal_of("<!DOCTYPE p [<!ENTITY a SYSTEM '/etc/passwd'>]><p>&a;</p>"),
             Contains("entities are not read"));
  std::string deep = "<platform version='4.1'>";
  for (int i = 0; i < 100; ++i)
    deep += fmt::format("<zone id='{}' routing='Full'>", i);
  CHECK_THAT(refusal_of(deep), Contains("elements are nested more than 64 deep"));
  std::string many = "<p>";
  for (int i = 0; i < 2'000'001; ++i)
    many += "<a/>";
  CHECK_THAT(refusal_of(many), Contains("there are more than 2000000 elements"));
}

TEST_CASE("a route of too many links is refused", "[sim][platform][hostile]") {
  std::string links;
  for (int i = 0; i < 10'001; ++i)
    links += "<link_ctn id='l'/>";
  const platform_reader read(parse_xml(two_hosts("<route src='a' dst='b'>" + links + "</route>")));
  CHECK_THROWS_WITH(route(read, "b", "a"), Contains("more than 10,000 links on the route from 'b' to 'a'"));
}

TEST_CASE("damaged platforms are read or refused", "[sim][platform][hostile]") {
  seeded_random random(65);
  size_t refused = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string text = tree;
    for (uint32_t changes = 1 + random.below(4); changes > 0; --changes) {
      const size_t at = random.below(static_cast<uint32_t>(text.size()));
      const size_t length = std::min<size_t>(random.below(40), text.size() - at);
      switch (random.below(4)) {
        case 0: text[at] = static_cast<char>(random.below(256)); break;
        case 1: text.erase(at, std::min(length, text.size() - 1)); break;
        case 2: text.insert(random.below(static_cast<uint32_t>(text.size())), text.substr(at, length)); break;
        default: text.resize(at + 1);
      }
    }
    try {
      const cluster c = parse_cluster(text, {});
      CHECK(!c.devices.empty());
    } catch (const error& e) { // anything else ends the test
      CHECK(e.code() == errc::invalid_argument);
      ++refused;
    }
  }
  CHECK(refused > 1000);
}

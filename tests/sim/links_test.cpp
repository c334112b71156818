// Links that transfers share, in virtual time.
#include "sim/links.hpp"
#include "support/catch.hpp"

#include <random>

using namespace troupe::sim;

namespace {

struct network {
  event_queue events;
  shared_links links{events};

  /// Starts a transfer at a time and notes when it ends.
  void send(seconds at, double bytes, std::vector<link_index> route, double most, double& ends) {
    events.at(at, [this, bytes, route = std::move(route), most, &ends] {
      links.start(bytes, route, most, [this, &ends] { ends = events.now(); });
    });
  }
  void run() {
    while (events.step()) {
    }
  }
};

} // namespace

TEST_CASE("two transfers share a link, and one that is left has it alone", "[sim][links]") {
  network n;
  const link_index l = n.links.add("l", 100);
  double a = 0, b = 0;
  n.send(0, 100, {l}, 1e9, a);
  n.send(0.5, 25, {l}, 1e9, b);
  n.run();
  // 50 of a alone, then both at 50 a second: b ends at 1, a has 25 left.
  CHECK(b == Approx(1.0));
  CHECK(a == Approx(1.25));
  CHECK(n.links.bytes(l) == 125);
  CHECK(n.links.busy(l) == Approx(1.25));
}

TEST_CASE("what one cannot use, others get", "[sim][links]") {
  network n;
  const link_index wide = n.links.add("wide", 100), narrow = n.links.add("narrow", 10);
  double a = 0, b = 0, c = 0;
  n.send(0, 10, {wide, narrow}, 1e9, a); // 10 a second, by the narrow link
  n.send(0, 20, {wide}, 20, b);          // 20, by its own limit
  n.send(0, 70, {wide}, 1e9, c);         // the rest
  n.run();
  CHECK(a == Approx(1));
  CHECK(b == Approx(1));
  CHECK(c == Approx(1));
}

TEST_CASE("a transfer that is cancelled leaves its share to others", "[sim][links]") {
  network n;
  const link_index l = n.links.add("l", 100);
  double a = 0, b = 0;
  n.send(0, 100, {l}, 1e9, a);
  transfer_id other = 0;
  n.events.at(0, [&] { other = n.links.start(1000, std::vector{l}, 1e9, [&] { b = n.events.now(); }); });
  n.events.at(1, [&] { n.links.cancel(other); });
  n.run();
  CHECK(a == Approx(1.5));
  CHECK(b == 0);
}

TEST_CASE("no link carries more than it can, and none that could carry more is left idle", "[sim][links]") {
  for (uint32_t seed = 1; seed <= 50; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
    network n;
    std::vector<double> capacity;
    for (int l = 0; l < 6; ++l) {
      capacity.push_back(1 + below(100));
      n.links.add("l", capacity.back());
    }
    std::vector<double> ends(40, 0), begins(40, 0), bytes(40, 0);
    for (size_t i = 0; i < ends.size(); ++i) {
      std::vector<link_index> route{below(6)};
      if (const link_index second = below(6); second != route[0])
        route.push_back(second);
      begins[i] = below(50) * 0.1;
      bytes[i] = 1 + below(200);
      n.send(begins[i], bytes[i], route, 1 + below(60), ends[i]);
    }
    n.run();
    for (size_t i = 0; i < ends.size(); ++i)
      CHECK(ends[i] > begins[i]);
    for (link_index l = 0; l < 6; ++l)
      CHECK(n.links.bytes(l) <= n.links.busy(l) * capacity[l] * (1 + 1e-9));
  }
}

#include "plan/graphs.hpp"
#include "plan/place/node_order.hpp"
#include "support/catch.hpp"

#include <algorithm>

using namespace troupe;
using namespace troupe::testing;

namespace {

/// Orders a graph whose nodes are placed as given; returns the names in their new order.
std::vector<std::string> ordered(graph_builder& b, std::vector<device_index> placement) {
  std::vector<device_info> devices = cpus(1 + *std::max_element(placement.begin(), placement.end()));
  for (device_info& d : devices)
    d.profile.memory_bytes_per_s = 1e18; // nodes differ by nothing but the nodes that they wait for
  order_nodes(b.g, placement, devices, {});
  std::vector<std::string> names;
  for (const node& n : b.g.nodes)
    names.push_back(n.name);
  return names;
}

} // namespace

TEST_CASE("nodes that another device waits for go first", "[plan][A14][C2]") {
  graph_builder b;
  const value_id in = b.input({64});
  value_id own = in;
  for (int i = 0; i < 3; ++i)
    own = b.node(plain_op, {own}, {64});                // n0 n1 n2 on device 0
  const value_id shared = b.node(plain_op, {in}, {64}); // n3 on device 0
  value_id other = shared;
  for (int i = 0; i < 3; ++i)
    other = b.node(plain_op, {other}, {64});            // n4 n5 n6 on device 1
  b.g.outputs = {b.node(plain_op, {own, other}, {64})}; // n7 on device 0
  const auto names = ordered(b, {0, 0, 0, 0, 1, 1, 1, 0});
  CHECK(names.front() == "n3");
  CHECK(names.back() == "n7");
}

TEST_CASE("of equally urgent nodes the one that frees memory goes first", "[plan][A14]") {
  graph_builder b;
  const value_id in = b.input({64});
  const value_id grows = b.node(plain_op, {in}, {64});             // n0
  const value_id shrinks = b.node(plain_op, {in}, {64});           // n1
  const value_id more = b.node(plain_op, {grows}, {4096});         // n2: holds more than it frees
  const value_id less = b.node(plain_op, {shrinks}, {1});          // n3
  const value_id elsewhere = b.node(plain_op, {in}, {64});         // n4 on device 1
  b.g.outputs = {b.node(plain_op, {more, less, elsewhere}, {64})}; // n5
  const auto names = ordered(b, {0, 0, 0, 0, 1, 0});
  const auto at = [&](const char* name) { return std::find(names.begin(), names.end(), name); };
  CHECK(at("n3") < at("n2"));
}

namespace {

/// Orders a graph on two GPUs that copy beside work, as `ordered` does; a node takes as long as its elements say.
std::vector<std::string> ordered_beside_copies(graph_builder& b, std::vector<device_index> placement,
                                               double memory_bytes_per_s) {
  std::vector<device_info> devices = gpus(2);
  for (device_info& d : devices) {
    d.copies_beside_work = true;
    d.profile.memory_bytes_per_s = memory_bytes_per_s;
    d.profile.launch_s = 1e-6;
    d.profile.down.bytes_per_s = 1e10;
  }
  order_nodes(b.g, placement, devices, {});
  std::vector<std::string> names;
  for (const node& n : b.g.nodes)
    names.push_back(n.name);
  return names;
}

} // namespace

TEST_CASE("large answers are made where their device ends a chunk, not at the end", "[plan][A14][C7]") {
  const auto names = [](double memory_bytes_per_s) {
    graph_builder b;
    const dim many = 4 * copies_beside_bytes;
    const value_id in = b.input({64});
    const value_id first = b.node(plain_op, {in}, {64});          // n0
    const value_id answer = b.node(view_op, {first}, {64});       // n1
    const value_id large = b.node(plain_op, {answer}, {many});    // n2
    const value_id next = b.node(plain_op, {first}, {64});        // n3: device 1 reads it
    const value_id far = b.node(plain_op, {next}, {64});          // n4 on device 1
    const value_id last = b.node(plain_op, {far}, {64});          // n5
    const value_id small = b.node(plain_op, {first}, {64});       // n6
    b.g.outputs = {b.node(plain_op, {last}, {64}), large, small}; // n7
    return ordered_beside_copies(b, {0, 0, 0, 0, 1, 0, 0, 0}, memory_bytes_per_s);
  };
  CHECK(names(1e18) == std::vector<std::string>{"n0", "n3", "n1", "n2", "n4", "n5", "n7", "n6"});
  // What takes long is in its turn: it is the longest way.
  CHECK(names(1e10) == std::vector<std::string>{"n0", "n1", "n2", "n3", "n4", "n5", "n7", "n6"});
}

TEST_CASE("what takes long before a large answer is not put off for it", "[plan][A14][C7]") {
  graph_builder b;
  const dim many = 4 * copies_beside_bytes, huge = 4096 * copies_beside_bytes;
  const value_id in = b.input({64});
  const value_id work = b.node(plain_op, {in}, {huge});    // n0: as long as all copies
  const value_id large = b.node(plain_op, {work}, {many}); // n1
  const value_id next = b.node(plain_op, {in}, {64});      // n2: device 1 reads it
  const value_id far = b.node(plain_op, {next}, {64});     // n3 on device 1
  b.g.outputs = {b.node(plain_op, {far}, {64}), large};    // n4
  const auto names = ordered_beside_copies(b, {0, 0, 0, 1, 0}, 1e12);
  CHECK(names.front() == "n0");
}

TEST_CASE("a graph on one device keeps its order", "[plan]") {
  graph_builder b;
  const value_id in = b.input({64});
  const value_id first = b.node(plain_op, {in}, {64});
  const value_id second = b.node(plain_op, {b.node(plain_op, {in}, {64})}, {64});
  b.g.outputs = {first, second};
  CHECK(ordered(b, {0, 0, 0}) == std::vector<std::string>{"n0", "n1", "n2"});
}

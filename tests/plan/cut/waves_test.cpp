#include "plan/cut/waves.hpp"

#include "plan/graphs.hpp"
#include "support/catch.hpp"
#include "support/verify_memory.hpp"

#include <random>

using namespace troupe;
using namespace troupe::testing;

namespace {

std::string item_name(uint32_t item) {
  return fmt::format("item {}", item);
}

wave_plan waves(uint32_t items, const std::vector<hazard>& hazards) {
  wave_scratch scratch;
  wave_plan out;
  plan_waves(items, hazards, scratch, out, item_name);
  return out;
}

/// The longest path by plain recursion over all hazards: an oracle for small graphs.
uint32_t depth(uint32_t item, const std::vector<hazard>& hazards) {
  uint32_t deepest = 0;
  for (const hazard& h : hazards)
    if (h.after == item)
      deepest = std::max(deepest, depth(h.before, hazards) + 1);
  return deepest;
}

} // namespace

TEST_CASE("barriers are as few as hazards allow", "[plan][E1]") {
  CHECK(waves(0, {}).wave_count() == 0);
  CHECK(waves(7, {}).barrier_count() == 0);
  std::vector<hazard> chain;
  for (uint32_t i = 0; i + 1 < 9; ++i)
    chain.push_back({i, i + 1});
  CHECK(waves(9, chain).barrier_count() == 8);
  const wave_plan diamond = waves(4, {{0, 1}, {0, 2}, {1, 3}, {2, 3}, {0, 3}});
  CHECK(diamond.barrier_count() == 2);
  CHECK(diamond.items == std::vector<uint32_t>{0, 1, 2, 3});
  CHECK(diamond.wave_begin == std::vector<uint32_t>{0, 1, 3, 4});
}

TEST_CASE("a wide fan-out plans in scratch that is reused", "[plan][E2]") {
  std::vector<hazard> fan;
  for (uint32_t i = 1; i <= 1025; ++i) {
    fan.push_back({0, i});
    fan.push_back({i, 1026});
  }
  wave_scratch scratch;
  wave_plan out;
  plan_waves(1027, fan, scratch, out, item_name);
  CHECK(out.barrier_count() == 2);
  CHECK(out.wave_begin == std::vector<uint32_t>{0, 1, 1026, 1027});
  const auto* edges = scratch.edges.data();
  const size_t room = scratch.edges.capacity();
  plan_waves(3, std::vector<hazard>{{0, 1}}, scratch, out, item_name);
  CHECK(out.wave_of == std::vector<uint32_t>{0, 1, 0});
  plan_waves(1027, fan, scratch, out, item_name);
  CHECK(scratch.edges.data() == edges);
  CHECK(scratch.edges.capacity() == room);
}

TEST_CASE("hazards are read after write, write after read, write after write", "[plan][C5]") {
  item_accesses a;
  a.add_write(0); // item 0 writes 0
  a.end_item();
  a.add_read(0); // item 1 reads it
  a.end_item();
  a.add_write(0); // item 2 overwrites it: after 0 and 1
  a.end_item();
  a.add_read(0); // item 3 reads the value that 2 wrote, and updates it
  a.add_write(0);
  a.end_item();
  a.add_read(1); // item 4 has nothing to do with them
  a.end_item();
  wave_scratch scratch;
  std::vector<hazard> hazards;
  find_hazards(a, 2, scratch, hazards, item_name);
  wave_plan out;
  plan_waves(a.count(), hazards, scratch, out, item_name);
  CHECK(out.wave_of == std::vector<uint32_t>{0, 1, 2, 3, 0});
}

TEST_CASE("the number of waves is the longest path", "[plan][E1]") {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const uint32_t count = 1 + random() % 12;
    std::vector<hazard> hazards;
    for (uint32_t i = 0; i < random() % 20 && count > 1; ++i) {
      const uint32_t after = 1 + random() % (count - 1);
      hazards.push_back({static_cast<uint32_t>(random() % after), after});
    }
    const wave_plan out = waves(count, hazards);
    uint32_t deepest = 0;
    for (uint32_t item = 0; item < count; ++item) {
      CHECK(out.wave_of[item] == depth(item, hazards));
      deepest = std::max(deepest, depth(item, hazards));
    }
    CHECK(out.wave_count() == deepest + 1);
  }
}

TEST_CASE("the barrier planner's errors name the items", "[plan][E5][D8]") {
  CHECK_THROWS_WITH(waves(4, {{0, 1}, {1, 2}, {2, 1}, {2, 3}}),
                    Catch::Contains("cycle") &&
                        (Catch::Contains(": item 1, item 2;") || Catch::Contains(": item 2, item 1;")));
  CHECK_THROWS_WITH(waves(2, {{0, 2}}), Catch::Contains("item 2, but there are 2"));
  item_accesses a;
  a.add_read(5);
  a.end_item();
  wave_scratch scratch;
  std::vector<hazard> hazards;
  CHECK_THROWS_WITH(find_hazards(a, 5, scratch, hazards, item_name), Catch::Contains("item 0 uses resource 5"));
  a.read_begin = {0, 7};
  CHECK_THROWS_AS(find_hazards(a, 9, scratch, hazards, item_name), error);
}

TEST_CASE("a chunk's waves see through views", "[plan][E1]") {
  graph_builder b;
  const value_id in = b.input({4});
  const value_id left = b.node(plain_op, {in}, {4});
  const value_id right = b.node(plain_op, {in}, {4});
  const value_id flat = b.node(view_op, {left}, {2, 2});
  const value_id sum = b.node(plain_op, {flat, right}, {4});
  const auto p = make_plan(b.done({sum}), cpus(1), {});
  wave_scratch scratch;
  wave_plan out;
  plan_waves(*p, p->chunks.at(0), scratch, out);
  CHECK(out.barrier_count() == 1);
  CHECK(out.wave_of[3] == 1);
}

TEST_CASE("chunks of GPUs are ordered by wave, views after the nodes that make their bytes", "[plan][E1][E3]") {
  graph_builder b;
  const value_id in = b.input({4});
  const value_id first = b.node(plain_op, {in}, {4});            // 0
  const value_id flat = b.node(view_op, {first}, {2, 2});        // 1
  const value_id second = b.node(plain_op, {flat}, {4});         // 2
  const value_id upload = b.node(view_op, {in}, {2, 2});         // 3: of an upload
  const value_id other = b.node(plain_op, {upload}, {4});        // 4: with node 0
  const value_id third = b.node(plain_op, {second, other}, {4}); // 5
  const value_id shown = b.node(view_op, {third}, {2, 2});       // 6: adds no wave
  const auto p = make_plan(b.done({shown}), gpus(1), {});
  verify(*p);
  const chunk& c = p->chunks.at(0);
  CHECK(c.nodes == std::vector<node_id>{0, 1, 3, 4, 2, 5, 6});
  CHECK(c.wave_begin == std::vector<uint32_t>{0, 4, 5, 7});
  CHECK(c.barrier_count() == 2);
  CHECK(widest_wave(*p, c) == 2);
  const auto on_cpu = make_plan(p->program, cpus(1), {});
  CHECK(on_cpu->chunks.at(0).wave_begin.empty());
  CHECK(on_cpu->chunks.at(0).wave_count() == 0);
}

TEST_CASE("in-place needs a wave in which no other node reads the input", "[plan][D5]") {
  for (const bool other_reader : {false, true}) {
    graph_builder b;
    const value_id in = b.input({512});
    const value_id a = b.node(plain_op, {in}, {512});
    const value_id changed = b.node(in_place_op, {a}, {512});
    const value_id beside = b.node(plain_op, {other_reader ? a : in}, {512});
    const value_id sum = b.node(plain_op, {changed, beside}, {512});
    const auto p = make_plan(b.done({sum}), gpus(1), {});
    const auto bound = bind_segment(p, 0, {});
    test::verify_memory(*bound);
    const auto& offset = bound->layout->memory[0].offset;
    CHECK((offset[changed] == offset[a]) == !other_reader);
    CHECK(offset[in] >= 0);
    CHECK(offset[sum] >= 0);
  }
}

TEST_CASE("values of one wave never share bytes, and none are reused within it", "[plan][E1]") {
  graph_builder b;
  const value_id in = b.input({512});
  const value_id left = b.node(plain_op, {in}, {512}), right = b.node(plain_op, {in}, {512});
  const value_id end = b.node(plain_op, {left, right}, {512});
  const auto p = make_plan(b.done({end}), gpus(1), {});
  const auto bound = bind_segment(p, 0, {});
  test::verify_memory(*bound);
  CHECK(bound->layout->memory[0].arena_bytes == 3 * 2048);
  CHECK(bound->layout->memory[0].peak_bytes == 3 * 2048);
  CHECK(bound->layout->memory[0].offset[end] == bound->layout->memory[0].offset[in]);
}

TEST_CASE("the verifiers find the fault of a wrong plan", "[plan][A12]") {
  graph_builder b;
  const value_id in = b.input({512});
  const value_id a = b.node(plain_op, {in}, {512});
  const value_id c = b.node(plain_op, {a}, {512});
  const auto p = make_plan(b.done({c}), gpus(1), {});
  plan joined = *p;
  joined.chunks[0].wave_begin = {0, 2}; // no barrier between the two nodes
  CHECK_THROWS_WITH(verify(joined), Catch::Contains("'n1'") && Catch::Contains("wave 0"));
  joined.chunks[0].wave_begin = {0, 1};
  CHECK_THROWS_WITH(verify(joined), Catch::Contains("do not cover"));
  bound_plan bound = *bind_segment(p, 0, {});
  CHECK_NOTHROW(test::verify_memory(bound));
  const auto moved = std::make_shared<arena_layout>(*bound.layout);
  bound.layout = moved;
  const int64_t right = moved->memory[0].offset[c];
  moved->memory[0].offset.set(c, moved->memory[0].offset[a]);
  CHECK_THROWS_WITH(test::verify_memory(bound), Catch::Contains("overlap"));
  moved->memory[0].offset.set(c, moved->memory[0].arena_bytes);
  CHECK_THROWS_WITH(test::verify_memory(bound), Catch::Contains("outside the arena"));
  moved->memory[0].offset.set(c, -1);
  CHECK_THROWS_WITH(test::verify_memory(bound), Catch::Contains("no place"));
  moved->memory[0].offset.set(c, right);
  CHECK_NOTHROW(test::verify_memory(bound));
  moved->bytes[c] = 4;
  CHECK_THROWS_WITH(test::verify_memory(bound), Catch::Contains("more bytes than the layout"));
}

TEST_CASE("a wave over the scratch budget is split", "[plan][E4]") {
  const std::vector<uint32_t> waves{0, 4, 5};
  const std::vector<int64_t> needed{256, 0, 512, 256, 768};
  const scratch_plan whole = plan_scratch(waves, needed, 1024, item_name);
  CHECK(whole.wave_begin == waves);
  CHECK(whole.offset == std::vector<int64_t>{0, 256, 256, 768, 0});
  CHECK(whole.bytes == 1024);
  const scratch_plan split = plan_scratch(waves, needed, 768, item_name);
  CHECK(split.wave_begin == std::vector<uint32_t>{0, 3, 4, 5});
  CHECK(split.offset == std::vector<int64_t>{0, 256, 256, 0, 0});
  CHECK(split.bytes == 768);
  CHECK_THROWS_WITH(plan_scratch(waves, needed, 767, item_name),
                    Catch::Contains("scratch memory: item 4 needs 768 bytes, 767 bytes allowed"));
  CHECK_THROWS_WITH(plan_scratch(waves, needed, 0, item_name), Catch::Contains("item 0 needs 256 bytes, 0 bytes"));
  CHECK(plan_scratch(waves, std::vector<int64_t>(5, 0), 0, item_name).bytes == 0);
  CHECK(plan_scratch(std::vector<uint32_t>{0}, {}, 0, item_name).wave_begin == std::vector<uint32_t>{0});
}

#include "plan/arena_space.hpp"
#include "plan/cut/ready_set.hpp"
#include "plan/graphs.hpp"
#include "support/catch.hpp"
#include "support/verify_memory.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

std::shared_ptr<const plan> checked_plan(std::shared_ptr<const graph> g, size_t devices, placement_policy policy) {
  auto p = make_plan(std::move(g), cpus(devices), {policy});
  verify(*p);
  return p;
}

} // namespace

TEST_CASE("a chain on one device is one chunk with reused memory", "[plan][A2][A3][D5]") {
  graph_builder b;
  const dim batch = dim::symbol("batch");
  value_id v = b.input({batch, 64});
  const value_id in = v;
  for (int i = 0; i < 5; ++i)
    v = b.node(plain_op, {v}, {batch, 64});
  const auto p = checked_plan(b.done({v}), 1, placement_policy::single);
  REQUIRE(p->chunks.size() == 1);
  CHECK(p->chunks[0].nodes == std::vector<node_id>{0, 1, 2, 3, 4});
  CHECK(p->chunks[0].uploads == std::vector<value_id>{in});
  CHECK(p->chunks[0].downloads == std::vector<value_id>{v});
  CHECK(p->chunks[0].produces_outputs);
  const auto bound = bind_segment(p, 0, {{"batch", 3}});
  CHECK(bound->dims[v] == shape{3, 64});
  // Four inner values of 768 bytes, two live at a time; input and output have separate bytes.
  CHECK(bound->layout->memory[0].arena_bytes == 2 * 768);
  CHECK(bound->layout->memory[0].bytes_without_reuse == 4 * 768);
  CHECK(bound->layout->memory[0].transfer_bytes == 2 * 768);
  CHECK(bound->layout->memory[0].offset[in] == -1);
  CHECK(bound->layout->memory[0].offset[v] == -1);
}

TEST_CASE("round-robin alternates and moves each value once", "[plan][A7][A8][B4]") {
  graph_builder b;
  const value_id in = b.input({4});
  const value_id a = b.node(plain_op, {in}, {4});   // device 0
  const value_id c = b.node(plain_op, {a}, {4});    // device 1
  const value_id d = b.node(plain_op, {a, c}, {4}); // device 0
  const value_id e = b.node(plain_op, {a, d}, {4}); // device 1: has `a` already
  const auto p = checked_plan(b.done({e}), 2, placement_policy::round_robin);
  REQUIRE(p->chunks.size() == 4);
  CHECK(p->chunks[1].uploads == std::vector<value_id>{a});
  CHECK(p->chunks[1].predecessors == std::vector<chunk_id>{0});
  CHECK(p->chunks[2].predecessors == std::vector<chunk_id>{0, 1});
  CHECK(p->chunks[3].uploads == std::vector<value_id>{d});
  CHECK(p->chunks[3].predecessors == std::vector<chunk_id>{1, 2});
}

TEST_CASE("ready_set trusts a device's order, or not", "[plan][A4]") {
  graph_builder b;
  const value_id in = b.input({4});
  const value_id a = b.node(plain_op, {in}, {4});
  const value_id c = b.node(plain_op, {a}, {4});
  const value_id d = b.node(plain_op, {a, in}, {4});
  const auto p = checked_plan(b.done({c, d}), 2, placement_policy::round_robin);
  REQUIRE(p->chunks.size() == 3); // a on 0, c on 1, d on 0
  std::vector<chunk_id> ready;
  ready_set trusting(*p);
  trusting.start(0, ready);
  CHECK(ready == std::vector<chunk_id>{0});
  trusting.sent(0, ready);
  CHECK(ready == std::vector<chunk_id>{0, 2});
  trusting.completed(0, ready);
  CHECK(ready == std::vector<chunk_id>{0, 2, 1});
  CHECK_THROWS_AS(trusting.sent(0, ready), error);
  ready.clear();
  ready_set careful(*p, completion_mode::host);
  careful.start(0, ready);
  careful.sent(0, ready);
  CHECK(ready == std::vector<chunk_id>{0});
  careful.completed(0, ready);
  CHECK(ready == std::vector<chunk_id>{0, 1, 2});
  CHECK(!careful.finished());
}

TEST_CASE("a data-dependent shape ends a segment", "[plan][D1]") {
  graph_builder b;
  const value_id in = b.input({8, 4});
  const value_id found = b.data_dependent(plain_op, {in});
  const value_id early = b.node(plain_op, {in}, {8, 4});
  const dim count = dim::symbol("#" + b.g.values[found].name + ".0");
  const value_id late = b.node(plain_op, {found}, {count, 4});
  const value_id size = b.known({1}, {count});
  const value_id reshaped = b.node(plain_op, {early, size}, {8, 4});
  const auto p = checked_plan(b.done({late, reshaped, size}), 1, placement_policy::single);
  CHECK(p->segment_count == 2);
  CHECK(p->chunks.size() == 2);
  CHECK(p->chunks[0].nodes.size() == 2);
  REQUIRE(p->symbols.size() == 1);
  CHECK(p->segment_of_value[found] == 1);
  const auto first = bind_segment(p, 0, {});
  CHECK(first->layout->memory[0].offset[found] == -1);
  CHECK_THROWS_AS(bind_segment(p, 1, {}), error);
  bindings values;
  bind_data_symbols(*p, found, {5, 4}, values);
  const auto second = bind_segment(p, 1, values);
  CHECK(second->dims[late] == shape{5, 4});
  REQUIRE(second->known[size].defined());
  CHECK(second->known[size].values<int64_t>()[0] == 5);
}

TEST_CASE("a node whose output's shape alone is used stays", "[plan][graph]") {
  graph_builder b;
  const value_id in = b.input({8, 4});
  const value_id found = b.data_dependent(plain_op, {in});
  const value_id size = b.known({1}, {dim::symbol("#" + b.g.values[found].name + ".0") * 2});
  const value_id unused = b.node(plain_op, {in}, {1});
  const auto p = checked_plan(b.done({size}), 1, placement_policy::single);
  CHECK(p->program->nodes.size() == 1);
  CHECK(p->segment_count == 2);
  bindings values;
  bind_data_symbols(*p, p->symbols.at(0).value, {3, 4}, values);
  const auto last = bind_segment(p, 1, values);
  CHECK(last->known[p->program->outputs[0]].values<int64_t>()[0] == 6);
  CHECK(unused != no_value);
}

TEST_CASE("in-place outputs and views share storage", "[plan][D5]") {
  graph_builder b;
  const value_id in = b.input({16});
  const value_id a = b.node(plain_op, {in}, {16});
  const value_id flat = b.node(view_op, {a}, {4, 4});
  const value_id c = b.node(in_place_op, {flat}, {4, 4});
  const value_id out = b.node(plain_op, {c}, {16});
  const auto p = checked_plan(b.done({out}), 1, placement_policy::single);
  CHECK(p->storage[flat] == a);
  const auto bound = bind_segment(p, 0, {});
  CHECK(bound->layout->memory[0].offset[flat] == -1);
  CHECK(bound->layout->memory[0].offset[a] == bound->layout->memory[0].offset[c]);
  CHECK(bound->layout->memory[0].arena_bytes == arena_alignment);
}

TEST_CASE("too little memory is an error with the figures", "[plan][B2]") {
  graph_builder b;
  const value_id in = b.input({1024});
  const value_id out = b.node(plain_op, {in}, {1024});
  auto devices = cpus(1);
  devices[0].memory_bytes = 8191;
  const auto p = make_plan(b.done({out}), devices, {});
  CHECK_THROWS_WITH(bind_segment(p, 0, {}), Catch::Contains("cpu#0") && Catch::Contains("8192 bytes needed") &&
                                                Catch::Contains("8191 bytes allowed"));
}

TEST_CASE("graphs that cannot be planned are errors that say why", "[plan][C5][D8]") {
  graph_builder b;
  const value_id in = b.input({4});
  const value_id back = b.value({4});
  const value_id a = b.node(plain_op, {in, back}, {4});
  b.node_to(plain_op, {a}, back);
  CHECK_THROWS_WITH(make_plan(b.done({a}), cpus(1), {}),
                    Catch::Contains("cycle") && Catch::Contains("'n0'") && Catch::Contains("'n1'"));
  CHECK_THROWS_WITH(make_plan(b.done({}), cpus(1), {}), Catch::Contains("no outputs"));
  graph_builder c;
  const value_id x = c.input({4});
  CHECK_THROWS_WITH(make_plan(c.done({c.node(plain_op, {x}, {4})}), {}, {}), Catch::Contains("at least one device"));
  c.g.values[x].dims.reset();
  CHECK_THROWS_WITH(make_plan(c.done(c.g.outputs), cpus(1), {}), Catch::Contains("rank of 'v0'"));
}

TEST_CASE("outputs that need no work need no chunk, and keep their order", "[plan][D8]") {
  graph_builder b;
  const value_id in = b.input({dim::symbol("n")});
  const value_id w = b.g.add_constant("w", tensor::scalar(1.f));
  const value_id size = b.known({1}, {dim::symbol("n")});
  const auto p = checked_plan(b.done({w, size, in, w}), 2, placement_policy::round_robin);
  CHECK(p->chunks.empty());
  const auto& outputs = p->program->outputs;
  REQUIRE(outputs.size() == 4);
  CHECK(outputs[0] == outputs[3]);
  CHECK(p->program->values[outputs[2]].name == "v0");
  const auto bound = bind_segment(p, 0, {{"n", 7}});
  CHECK(bound->known[outputs[1]].values<int64_t>()[0] == 7);
  std::vector<chunk_id> ready;
  ready_set set(*p);
  set.start(0, ready);
  CHECK(ready.empty());
  CHECK(set.finished());
}

TEST_CASE("an output in place of an operand is laid out like it", "[plan][D5]") {
  graph_builder b;
  const value_id in = b.input({1, 4, 4, 4});
  const value_id a = b.node(plain_op, {in}, {1, 4, 4, 4});
  const value_id c = b.node(in_place_op, {a}, {1, 4, 4, 4});
  const value_id out = b.node(plain_op, {c}, {16});
  b.g.values[c].layout = layout::channels_last;
  const auto p = checked_plan(b.done({out}), 1, placement_policy::single);
  const auto bound = bind_segment(p, 0, {});
  const auto& offset = bound->layout->memory[0].offset;
  CHECK(offset[a] != offset[c]);
  auto edited_layout = std::make_shared<arena_layout>(*bound->layout);
  edited_layout->memory[0].offset.set(c, offset[a]);
  bound_plan edited = *bound;
  edited.layout = edited_layout;
  CHECK_THROWS_WITH(test::verify_memory(edited), Catch::Contains("overlap"));
}

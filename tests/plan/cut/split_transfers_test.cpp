#include "plan/cut/split_transfers.hpp"
#include "plan/graphs.hpp"
#include "support/catch.hpp"
#include "support/verify_memory.hpp"

#include <algorithm>

using namespace troupe;
using namespace troupe::testing;

namespace {

constexpr int64_t piece_floats = transfer_piece_bytes / 4;

std::shared_ptr<const plan> alternate(std::shared_ptr<const graph> g, std::vector<device_info> devices) {
  auto p = make_plan(std::move(g), std::move(devices), {placement_policy::round_robin});
  verify(*p);
  test::verify_memory(*bind_segment(p, 0, {}));
  return p;
}

/// A value of `floats` elements that the first device makes and the second one reads.
std::shared_ptr<const graph> one_crossing(int64_t floats) {
  graph_builder b;
  const value_id large = b.node(plain_op, {b.input({4})}, {floats / 64, 64});
  return b.done({b.node(plain_op, {large}, {4})});
}

size_t uploads_of(const plan& p, device_index device) {
  size_t count = 0;
  for (const chunk& c : p.chunks)
    count += c.device == device ? c.uploads.size() : 0;
  return count;
}

} // namespace

TEST_CASE("a large value between GPUs moves in pieces, one a chunk", "[plan][A8][C7][C2]") {
  const auto p = alternate(one_crossing(4 * piece_floats), gpus(2));
  // The producer's chunk ends with the first piece; the join is after the last upload.
  REQUIRE(p->chunks.size() == 12);
  CHECK(uploads_of(*p, 1) == 6);
  for (const chunk& c : p->chunks) {
    CHECK(c.uploads.size() == (c.device == 0 && c.nodes.size() == 1 ? 0 : 1));
    CHECK(c.downloads.size() == (c.device == 0 || c.produces_outputs));
  }
  // Each upload waits for its own piece only.
  size_t checked = 0;
  for (const chunk& c : p->chunks) {
    if (c.device == 0)
      continue;
    const node_id maker = p->producer[c.uploads[0]];
    const chunk_id from = p->chunk_of_node[maker];
    for (chunk_id before : c.predecessors)
      CHECK((p->chunks[before].device == 1 || before == from));
    ++checked;
  }
  CHECK(checked == 6);
}

TEST_CASE("pieces cover a value once, whatever its size", "[plan][A8]") {
  const auto p = alternate(one_crossing(2 * piece_floats + 64 * 777), gpus(2));
  int64_t next = 0;
  std::vector<int64_t> lengths;
  for (const node& n : p->program->nodes) {
    if (n.op_type != "Slice")
      continue;
    const auto bound = [&](size_t i) { return p->program->values[n.inputs[i]].constant->leaf.values<int64_t>()[0]; };
    CHECK(bound(1) == next);
    next = bound(2);
    lengths.push_back(bound(2) - bound(1));
  }
  CHECK(next == 2 * piece_floats + 64 * 777);
  REQUIRE(lengths.size() >= 3);
  CHECK(lengths[1] == 2 * lengths[0]);
  CHECK(lengths[2] >= piece_floats);
  CHECK(*std::min_element(lengths.begin(), lengths.end()) == lengths[0]); // nothing tiny at the end
}

TEST_CASE("values that gain nothing move whole", "[plan][A8]") {
  CHECK(uploads_of(*alternate(one_crossing(2 * piece_floats - 64), gpus(2)), 1) == 1);
  CHECK(uploads_of(*alternate(one_crossing(4 * piece_floats), cpus(2)), 1) == 1);
  std::vector<device_info> mixed = gpus(2);
  mixed[1] = cpus(1)[0];
  CHECK(uploads_of(*alternate(one_crossing(4 * piece_floats), mixed), 1) == 1);
  std::vector<device_info> narrow = gpus(2);
  narrow[1].gpu->max_binding_bytes = transfer_piece_bytes;
  CHECK(uploads_of(*alternate(one_crossing(4 * piece_floats), narrow), 1) == 1);
}

TEST_CASE("a value that two GPUs read is cut once", "[plan][A8][B4]") {
  graph_builder b;
  const value_id in = b.input({4});
  const value_id large = b.node(plain_op, {in}, {2 * piece_floats}); // device 0
  const value_id one = b.node(plain_op, {large}, {4});               // device 1
  const value_id two = b.node(plain_op, {large, one}, {4});          // device 2
  const auto p = alternate(b.done({two}), gpus(3));
  const auto is_slice = [](const node& n) { return n.op_type == "Slice"; };
  CHECK(std::count_if(p->program->nodes.begin(), p->program->nodes.end(), is_slice) == 4);
  CHECK(uploads_of(*p, 1) == 4);
  CHECK(uploads_of(*p, 2) == 4 + 1); // and the value that device 1 made
}

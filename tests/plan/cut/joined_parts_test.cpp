// Which concatenations move nothing, and what the plan then states of bytes, waves and lifetimes.
#include "ops/registry.hpp"
#include "plan/cut/joined_parts.hpp"
#include "plan/estimate/predict.hpp"
#include "plan/show/explain.hpp"
#include "plan/show/print.hpp"
#include "support/catch.hpp"
#include "support/graph_builder.hpp"
#include "support/verify_memory.hpp"

#include <algorithm>

using namespace troupe;
using namespace troupe::test;
using Catch::Contains;

namespace {

const dim batch = dim::symbol("n");

/// Convolutions, and the Concats that join them.
struct net : graph_builder {
  value_id conv(value_id x, int64_t from, int64_t to, int64_t kernel = 1, int64_t groups = 1) {
    const value_id w =
        constant("w" + std::to_string(g.values.size()), tensor(g.values[x].type, {to, from / groups, kernel, kernel}));
    return inferred("Conv", {x, w}, attrs_of({{"pads", std::vector<int64_t>(4, kernel / 2)}, {"group", groups}}));
  }
  value_id concat(std::vector<value_id> parts, int64_t axis = 1) {
    return inferred("Concat", std::move(parts), attrs_of({{"axis", axis}}));
  }
  value_id product(value_id x, int64_t from, int64_t to) {
    return inferred("MatMul",
                    {x, constant("w" + std::to_string(g.values.size()), tensor(g.values[x].type, {from, to}))});
  }
  value_id image(dim images = 1) { return input({std::move(images), 8, 6, 5}); }
};

device_info channels_last_gpu(const std::string& name = "vulkan:0") {
  device_info d{.name = name,
                .kind = device_kind::vulkan,
                .memory_bytes = int64_t{1} << 40,
                .host_memory = false,
                .prefers_channels_last = true};
  d.gpu = gpu_features{.max_group_size = 256, .float16 = true};
  return d;
}

std::shared_ptr<const plan> planned(net& n, std::vector<value_id> outputs,
                                    const std::vector<device_info>& devices = {channels_last_gpu()},
                                    const plan_options& options = {}) {
  auto p = make_plan(n.done(std::move(outputs)), devices, options);
  verify(*p);
  return p;
}

/// Returns how many Concats of the plan are joined.
size_t joined(const plan& p) {
  return static_cast<size_t>(
      std::count_if(p.program->nodes.begin(), p.program->nodes.end(), [&](const node& n) { return is_joined(p, n); }));
}

/// The Concat of a plan that has one.
node_id concat_of(const plan& p) {
  const auto& nodes = p.program->nodes;
  const auto found = std::find_if(nodes.begin(), nodes.end(), [](const node& n) { return n.op_type == "Concat"; });
  REQUIRE(found != nodes.end());
  return static_cast<node_id>(found - nodes.begin());
}

uint32_t wave_of(const plan& p, node_id n) {
  const chunk& c = p.chunks[p.chunk_of_node[n]];
  for (uint32_t w = 0; w < c.wave_count(); ++w)
    if (const auto nodes = c.wave(w); std::find(nodes.begin(), nodes.end(), n) != nodes.end())
      return w;
  FAIL("the node is in no wave");
  return 0;
}

} // namespace

TEST_CASE("a Concat of convolutions moves nothing on a GPU", "[plan][E1][E3]") {
  for (const dim& images : {dim(1), dim(2), batch}) {
    net n;
    const value_id x = n.conv(n.image(images), 8, 4);
    const auto p = planned(n, {n.conv(n.concat({n.conv(x, 4, 5), n.conv(x, 4, 8, 3)}), 13, 3)});
    const node_id id = concat_of(*p);
    const node& concat = p->program->nodes[id];
    CHECK(is_joined(*p, concat));
    CHECK(launches_nothing(*p, concat));
    const auto bound = bind_segment(p, 0, {{"n", 3}});
    verify_memory(*bound);
    const int64_t size = volume(bound->dims[concat.outputs[0]]);
    CHECK(part_of(*p, concat.inputs[0], size) == row_part{13, 0, size});
    CHECK(part_of(*p, concat.inputs[1], size) == row_part{13, 5, size});
    CHECK_FALSE(part_of(*p, concat.outputs[0], size).pitch > 0);
    const device_memory& memory = bound->layout->memory[0];
    for (value_id part : concat.inputs) {
      CHECK(is_part(*p, part));
      CHECK(p->storage[part] == concat.outputs[0]);
      CHECK(memory.offset[part] < 0);
      const node_id maker = p->producer[part];
      CHECK(wave_of(*p, maker) == wave_of(*p, id)); // both in one wave, and the Concat in it
      const gpu_call call = make_gpu_call(*bound, p->program->nodes[maker], *p->devices[0].gpu);
      CHECK(call.outputs[0].part == part_of(*p, part, size));
      CHECK(call.outputs[0].stored_size() == size);
      CHECK_FALSE(call.inputs[0].is_part());
    }
    CHECK(memory.offset[concat.outputs[0]] >= 0);
    CHECK(predict_node(*p, bound->dims, id) == 0);
  }
}

TEST_CASE("what reads a joined Concat waits for parts of all waves", "[plan][E1]") {
  net n;
  const value_id x = n.conv(n.image(), 8, 4);
  const value_id late = n.conv(n.conv(x, 4, 4), 4, 8, 3);
  const auto p = planned(n, {n.conv(n.concat({late, n.conv(x, 4, 4)}), 12, 3)});
  const node_id id = concat_of(*p);
  const node& concat = p->program->nodes[id];
  REQUIRE(is_joined(*p, concat));
  CHECK(wave_of(*p, p->producer[concat.inputs[1]]) + 1 == wave_of(*p, p->producer[concat.inputs[0]]));
  CHECK(wave_of(*p, id) == wave_of(*p, p->producer[concat.inputs[0]]));
  const adjacency edges = adjacency_of(*p->program);
  CHECK(wave_of(*p, edges.consumers[concat.outputs[0]].at(0)) == wave_of(*p, id) + 1);
  const auto& lifetimes = p->lifetimes[0].values;
  const auto whole =
      std::find_if(lifetimes.begin(), lifetimes.end(), [&](const lifetime& l) { return l.value == concat.outputs[0]; });
  REQUIRE(whole != lifetimes.end()); // in use from its first part on
  CHECK(whole->first + 2 == whole->last);
}

TEST_CASE("products join along their columns, whatever their rows", "[plan]") {
  for (const symbolic_shape& dims : {symbolic_shape{batch, 8}, symbolic_shape{2, batch, 8}}) {
    net n;
    const value_id x = n.input(dims);
    CHECK(joined(*planned(n, {n.concat({n.product(x, 8, 3), n.product(x, 8, 4)}, -1)})) == 1);
  }
  net n;
  const value_id x = n.input({4, 8});
  // Rows are not parts of rows.
  CHECK(joined(*planned(n, {n.concat({n.product(x, 8, 4), n.product(x, 8, 4)}, 0)})) == 0);
}

TEST_CASE("a part that others need, or that is no part of rows, keeps the Concat as it is", "[plan]") {
  const auto count = [](const std::function<std::vector<value_id>(net&, value_id)>& outputs,
                        const std::vector<device_info>& devices = {channels_last_gpu()},
                        const plan_options& options = {}) {
    net n;
    const value_id x = n.conv(n.image(), 8, 4);
    return joined(*planned(n, outputs(n, x), devices, options));
  };
  const auto plainly = [](net& n, value_id x) {
    return std::vector{n.conv(n.concat({n.conv(x, 4, 4), n.conv(x, 4, 8, 3)}), 12, 3)};
  };
  CHECK(count(plainly) == 1);
  CHECK(count([](net& n, value_id x) { // read elsewhere
          const value_id a = n.conv(x, 4, 4);
          return std::vector{n.conv(n.concat({a, n.conv(x, 4, 8)}), 12, 3), n.conv(a, 4, 2)};
        }) == 0);
  CHECK(count([](net& n, value_id x) { // an output
          const value_id a = n.conv(x, 4, 4);
          return std::vector{n.conv(n.concat({a, n.conv(x, 4, 8)}), 12, 3), a};
        }) == 0);
  CHECK(count([](net& n, value_id x) { // twice
          const value_id a = n.conv(x, 4, 4);
          return std::vector{n.conv(n.concat({a, a}), 8, 3)};
        }) == 0);
  CHECK(count([](net& n, value_id x) { // made by a node that cannot write so
          return std::vector{n.conv(n.concat({n.conv(x, 4, 4), n.inferred("Relu", {n.conv(x, 4, 4)})}), 8, 3)};
        }) == 0);
  CHECK(count([](net& n, value_id x) { // along another axis
          return std::vector{n.conv(n.concat({n.conv(x, 4, 4), n.conv(x, 4, 4)}, 2), 4, 3)};
        }) == 0);
  CHECK(count([](net& n, value_id x) { // an input
          return std::vector{n.conv(n.concat({n.conv(x, 4, 4), n.image()}), 12, 3)};
        }) == 0);
  device_info host{.name = "cpu", .memory_bytes = int64_t{1} << 40, .prefers_channels_last = true};
  CHECK(count(plainly, {host}) == 0);
  const auto part_elsewhere = [&](net& n, value_id x) {
    const auto out = plainly(n, x);
    n.g.nodes[1].name = "moved";
    return out;
  };
  CHECK(count(part_elsewhere, {channels_last_gpu(), channels_last_gpu("vulkan:1")},
              {.pins = {{"moved", "vulkan:1"}}}) == 0);
  device_info plain = channels_last_gpu(); // rows of its images are not their channels
  plain.prefers_channels_last = false;
  CHECK(count(plainly, {plain}) == 0);
}

TEST_CASE("sizes of parts that depend on the binding are not places", "[plan]") {
  net n;
  const value_id a = n.input({2, batch, 8}), b = n.input({2, 8, batch});
  const value_id c = n.inferred("MatMul", {a, b}), d = n.product(a, 8, 4);
  CHECK(joined(*planned(n, {n.concat({c, d}, 2)})) == 0);
}

TEST_CASE("a plan says which values are parts", "[plan]") {
  net n;
  const value_id x = n.conv(n.image(), 8, 4);
  const auto p = planned(n, {n.conv(n.concat({n.conv(x, 4, 4), n.conv(x, 4, 8, 3)}), 12, 3)});
  const node& concat = p->program->nodes[concat_of(*p)];
  const std::string whole = p->program->values[concat.outputs[0]].name;
  CHECK_THAT(to_text(*p), Contains("(part of " + whole + ")") && Contains("(of parts that are in place)"));
  CHECK(to_json(*p).find("\"part_of\"") != std::string::npos);
  CHECK(flow_of(*p, whole).views.empty());
  CHECK(flow_of(*p, p->program->values[concat.inputs[0]].name).storage == concat.outputs[0]);
}

TEST_CASE("parts that another node uses, or that are not made beside their Concat, are found", "[plan][A12]") {
  net n;
  const value_id x = n.conv(n.image(), 8, 4);
  const auto good = planned(n, {n.conv(n.concat({n.conv(x, 4, 4), n.conv(x, 4, 4, 3)}), 8, 3)});
  const node_id id = concat_of(*good);
  const std::vector<value_id> parts = good->program->nodes[id].inputs;
  const value_id whole = good->program->nodes[id].outputs[0];
  const auto broken = [&](const std::function<void(plan&, graph&)>& breaking) {
    plan p = *good;
    auto g = std::make_shared<graph>(*good->program);
    breaking(p, *g);
    p.program = g;
    try {
      verify(p);
    } catch (const error& e) {
      CHECK(e.code() == errc::internal);
      return std::string(e.what());
    }
    return std::string("nothing was found");
  };
  CHECK_THAT(broken([&](plan&, graph& g) { g.outputs.push_back(parts[0]); }),
             Contains("is a part that is not only for Concat"));
  CHECK_THAT(broken([&](plan& p, graph& g) { g.nodes[p.producer[parts[1]]].inputs[0] = parts[0]; }),
             Contains("is a part that is not only for Concat"));
  CHECK_THAT(broken([&](plan& p, graph&) { p.storage[parts[1]] = parts[1]; }),
             Contains("one of its inputs is not a part"));
  CHECK_THAT(broken([&](plan& p, graph&) { p.storage[parts[0]] = parts[0]; }), Contains("which is not joined"));
  CHECK_THAT(broken([&](plan& p, graph&) { p.devices[0].gpu.reset(); }), Contains("is not made beside it on a GPU"));
  CHECK_THAT(broken([&](plan& p, graph&) { // its reader in the wave of its parts
               auto& begin = p.chunks[p.chunk_of_node[id]].wave_begin;
               begin.erase(begin.begin() + wave_of(*good, id) + 1);
             }),
             Contains("reads '" + good->program->values[whole].name + "', which is made in wave"));
}

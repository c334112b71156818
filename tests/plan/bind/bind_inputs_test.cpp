#include "plan/bind/bind_inputs.hpp"

#include "plan/graphs.hpp"
#include "plan/plan_cache.hpp"
#include "plan/plan_key.hpp"
#include "support/catch.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Contains;

namespace {

/// Inputs v0 [batch, seq, 3] and v1 [batch, seq + past], v2 [past].
graph three_inputs() {
  graph_builder b;
  const dim batch = dim::symbol("batch"), seq = dim::symbol("seq"), past = dim::symbol("past");
  b.input({batch, seq, 3});
  b.input({batch, seq + past});
  b.input({past});
  return b.g;
}

/// Binds to these shapes, in the order of the inputs; those left out at the end are missing.
bindings bound(const graph& g, const std::vector<shape>& shapes, const bindings& given = {}) {
  std::vector<const shape*> present(g.inputs.size(), nullptr);
  for (size_t i = 0; i < shapes.size(); ++i)
    present[i] = &shapes[i];
  return input_symbols(g).bind(present, given);
}

} // namespace

TEST_CASE("input shapes bind symbols and are checked", "[plan][D3]") {
  const graph g = three_inputs();
  const bindings found = bound(g, {{2, 5, 3}, {2, 9}, {4}});
  CHECK(found == bindings{{"batch", 2}, {"past", 4}, {"seq", 5}});
}

TEST_CASE("input shapes that do not fit are errors that say where", "[plan][B7][D3]") {
  const graph g = three_inputs();
  CHECK_THROWS_WITH(bound(g, {{2, 5, 3}, {3, 9}, {4}}),
                    Contains("'v1', axis 0: 2 expected ('batch', from input 'v0', axis 0), 3 found"));
  CHECK_THROWS_WITH(bound(g, {{2, 5, 3}, {2, 8}, {4}}), Contains("'v1', axis 1: 9 expected (past + seq), 8 found"));
  CHECK_THROWS_WITH(bound(g, {{2, 5, 4}, {2, 9}, {4}}), Contains("'v0', axis 2: 3 expected, 4 found"));
  CHECK_THROWS_WITH(bound(g, {{2, 5}, {2, 9}, {4}}),
                    Contains("'v0': rank 3 expected (shape [batch, seq, 3]), rank 2 found (shape [2, 5])"));
  CHECK_THROWS_WITH(bound(g, {{2, 5, 3}, {2, 9}}), Contains("'v2' is missing"));
  CHECK_THROWS_WITH(bound(g, {{2, 5, 3}, {2, 9}, {4}}, {{"batch", 8}}),
                    Contains("'v0', axis 0: 8 expected ('batch', given beside the inputs), 2 found"));
  CHECK_THROWS_WITH(bound(g, {{2, -5, 3}, {2, 9}, {4}}), Contains("a dim of -5"));
}

TEST_CASE("binding refuses shapes that cannot be", "[plan][D3]") {
  graph_builder b;
  const dim n = dim::symbol("n");
  const value_id in = b.input({n});
  const value_id less = b.node(plain_op, {in}, {n - 4});
  const value_id square = b.node(plain_op, {in, less}, {n, n});
  const auto p = make_plan(b.done({square}), cpus(1), {});
  CHECK(bind_segment(p, 0, {{"n", 4}})->dims[square] == shape{4, 4});
  CHECK_THROWS_WITH(bind_segment(p, 0, {{"n", 3}}), Contains("'v1'") && Contains("negative"));
  CHECK_THROWS_WITH(bind_segment(p, 0, {{"n", int64_t{1} << 30}}), Contains("'v2'") && Contains("2^47"));
  CHECK_THROWS_WITH(bind_segment(p, 0, {{"n", int64_t{1} << 40}}), Contains("2^47"));
  CHECK_THROWS_WITH(bind_segment(p, 0, {}), Contains("the dim 'n' is not bound"));
  CHECK_THROWS_AS(bind_segment(p, 1, {{"n", 4}}), error);
}

TEST_CASE("a plan's key follows everything it depends on", "[plan][A10]") {
  const auto key = [](auto change) {
    graph_builder b;
    const value_id in = b.input({dim::symbol("n"), 4});
    b.g.outputs = {b.node(plain_op, {in, b.g.add_constant("w", tensor::scalar(1.f))}, {dim::symbol("n"), 4})};
    b.g.nodes[0].attrs.set("axis", int64_t{1});
    std::vector<device_info> devices = cpus(2);
    plan_options options;
    change(b.g, devices, options);
    return plan_key(hash_of(b.g), devices, options);
  };
  using devices_t = std::vector<device_info>;
  const hash128 base = key([](graph&, devices_t&, plan_options&) {});
  CHECK(base == key([](graph&, devices_t&, plan_options&) {}));
  CHECK(base != key([](graph& g, devices_t&, plan_options&) { g.nodes[0].attrs.set("axis", int64_t{2}); }));
  CHECK(base != key([](graph& g, devices_t&, plan_options&) { g.nodes[0].attrs.set("axis", 1.f); }));
  CHECK(base != key([](graph& g, devices_t&, plan_options&) { g.nodes[0].op_type = "other"; }));
  CHECK(base != key([](graph& g, devices_t&, plan_options&) { g.values[0].type = dtype::int8; }));
  CHECK(base != key([](graph& g, devices_t&, plan_options&) {
          g.values[0].dims = symbolic_shape{dim::symbol("m"), 4};
        }));
  CHECK(base != key([](graph& g, devices_t&, plan_options&) { g.outputs = {0}; }));
  CHECK(base != key([](graph& g, devices_t&, plan_options&) {
          g.values[1].constant = weight::from_tensor(tensor::scalar(2.f));
        }));
  CHECK(base != key([](graph&, devices_t& d, plan_options&) { d.pop_back(); }));
  CHECK(base != key([](graph&, devices_t& d, plan_options&) { d[1].memory_bytes = 1; }));
  CHECK(base != key([](graph&, devices_t& d, plan_options&) { d[1].fallback = true; }));
  CHECK(base != key([](graph&, devices_t& d, plan_options&) { d[1].host = "far"; }));
  const auto with_gpu = [&](auto change) {
    return key([&](graph&, devices_t& d, plan_options&) { change(d[1].gpu.emplace()); });
  };
  const hash128 gpu = with_gpu([](gpu_features&) {});
  CHECK(base != gpu);
  CHECK(gpu != with_gpu([](gpu_features& f) { f.cooperative_matrix = true; }));
  CHECK(gpu != with_gpu([](gpu_features& f) { f.group_matrices = true; }));
  CHECK(gpu != with_gpu([](gpu_features& f) { f.integer_dot = true; }));
  CHECK(gpu != with_gpu([](gpu_features& f) { f.byte_matrices = true; }));
  CHECK(gpu != with_gpu([](gpu_features& f) { f.strong_matrices = true; }));
  CHECK(gpu != with_gpu([](gpu_features& f) { f.subgroup_shuffle = true; }));
  CHECK(gpu != with_gpu([](gpu_features& f) { f.max_groups[1] = 7; }));
  CHECK(gpu != with_gpu([](gpu_features& f) { f.max_binding_bytes = 7; }));
  CHECK(base != key([](graph&, devices_t&, plan_options& o) { o.policy = placement_policy::round_robin; }));
  CHECK(base != key([](graph&, devices_t&, plan_options& o) { o.values_stay = true; }));
}

TEST_CASE("the plan cache forgets the plan that was used longest ago", "[plan][A1][E6]") {
  plan_cache<int> cache(2);
  const auto key = [](uint64_t i) { return hash128{0, i}; };
  CHECK(cache.find(key(1)) == nullptr);
  cache.insert(key(1), 10);
  cache.insert(key(2), 20);
  REQUIRE(cache.find(key(1)));
  CHECK(*cache.find(key(1)) == 10);
  std::vector<int> gone;
  cache.insert(key(3), 30, [&](int value) { gone.push_back(value); });
  CHECK(gone == std::vector<int>{20});
  CHECK(cache.find(key(2)) == nullptr);
  CHECK(cache.find(key(1)));
  cache.insert(key(1), 11);
  CHECK(*cache.find(key(1)) == 11);
  CHECK(cache.size() == 2);
  CHECK(cache.evictions() == 1);
}

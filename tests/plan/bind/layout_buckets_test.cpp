#include "plan/bind/layout_buckets.hpp"

#include "plan/graphs.hpp"
#include "support/catch.hpp"
#include "support/verify_memory.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

std::shared_ptr<const plan> plan_of(graph_builder& b, value_id out) {
  return make_plan(b.done({out}), gpus(1), {});
}

/// Tokens of a decoder step: the cache grows by the new tokens, and a mask covers both.
std::shared_ptr<const plan> decoder() {
  graph_builder b;
  const dim seq = dim::symbol("seq"), past = dim::symbol("past"), total = dim::symbol("total");
  const value_id cache = b.input({past, 8}), fresh = b.input({seq, 8}), mask = b.input({total});
  const value_id all = b.node(plain_op, {cache, fresh}, {past + seq, 8});
  return plan_of(b, b.node(plain_op, {all, mask}, {broadcast(past + seq, total), 8}));
}

int64_t capacity_of(const bound_plan& b, const std::string& name) {
  for (const symbol_capacity& s : b.layout->symbols)
    if (s.name == name)
      return s.capacity;
  return -1;
}

} // namespace

TEST_CASE("capacities waste at most a quarter", "[plan][D1]") {
  CHECK(bucket_capacity(0) == 16);
  CHECK(bucket_capacity(16) == 16);
  CHECK(bucket_capacity(17) == 20);
  CHECK(bucket_capacity(32) == 32);
  CHECK(bucket_capacity(33) == 40);
  CHECK(bucket_capacity(INT64_MAX) == INT64_MAX);
  for (int64_t value = 16; value < 5000; ++value) {
    REQUIRE(bucket_capacity(value) >= value);
    REQUIRE(bucket_capacity(value) * 4 <= value * 5);
    REQUIRE(bucket_capacity(bucket_capacity(value)) == bucket_capacity(value));
  }
}

TEST_CASE("wide capacities double up to 1,024", "[plan][D1]") {
  CHECK(wide_capacity(0) == 16);
  CHECK(wide_capacity(17) == 32);
  CHECK(wide_capacity(64) == 64);
  CHECK(wide_capacity(65) == 128);
  CHECK(wide_capacity(1024) == 1024);
  CHECK(wide_capacity(1025) == bucket_capacity(1025));
  CHECK(wide_capacity(INT64_MAX) == INT64_MAX);
}

TEST_CASE("a symbol with one value is exact, one that varies has room", "[plan][D1][A10]") {
  graph_builder b;
  const dim n = dim::symbol("n"), batch = dim::symbol("batch");
  const value_id in = b.input({batch, n, 512});
  const auto p = plan_of(b, b.node(plain_op, {in}, {batch, n, 512}));
  layout_buckets layouts(8);
  const auto first = layouts.bind(p, 0, {{"batch", 3}, {"n", 40}});
  CHECK(first->layout->bytes[in] == 3 * 40 * 2048);
  const auto second = layouts.bind(p, 0, {{"batch", 3}, {"n", 41}});
  CHECK(second->layout->bytes[in] == 3 * 64 * 2048);
  CHECK(second->dims[in] == shape{3, 41, 512});
  CHECK(second->layout->varies[in]);
  const auto third = layouts.bind(p, 0, {{"batch", 3}, {"n", 64}});
  CHECK(third->layout == second->layout);
  CHECK(third->id != second->id);
  CHECK(layouts.bind(p, 0, {{"batch", 3}, {"n", 65}})->layout->bytes[in] == 3 * 128 * 2048);
  CHECK(layouts.bind(p, 0, {{"batch", 3}, {"n", 32}})->layout == second->layout);
  CHECK(layouts.bind(p, 0, {{"batch", 3}, {"n", 31}})->layout != second->layout); // too little of it would be used
  CHECK(layouts.bind(p, 0, {{"batch", 2}, {"n", 64}})->layout != second->layout);
  CHECK(layouts.stats().hits == 2);
  CHECK(layouts.stats().misses == 5);
}

TEST_CASE("symbols that the model ties together grow together", "[plan][D1][D3]") {
  const auto p = decoder();
  layout_buckets layouts(8);
  layouts.bind(p, 0, {{"seq", 20}, {"past", 0}, {"total", 20}});
  layouts.bind(p, 0, {{"seq", 1}, {"past", 20}, {"total", 21}});
  const auto step = layouts.bind(p, 0, {{"seq", 1}, {"past", 21}, {"total", 22}});
  CHECK(capacity_of(*step, "seq") == 1);
  CHECK(capacity_of(*step, "past") == 31);
  CHECK(capacity_of(*step, "total") == 32);
  CHECK(layouts.bind(p, 0, {{"seq", 1}, {"past", 22}, {"total", 23}})->layout == step->layout);
  CHECK(layouts.bind(p, 0, {{"seq", 1}, {"past", 31}, {"total", 32}})->layout == step->layout);
  const auto next = layouts.bind(p, 0, {{"seq", 1}, {"past", 32}, {"total", 33}});
  CHECK(capacity_of(*next, "total") == 64);
  // Dims that do not fit the model are the caller's mistake, bucket or not.
  CHECK_THROWS_AS(layouts.bind(p, 0, {{"seq", 1}, {"past", 22}, {"total", 24}}), error);
  CHECK_THROWS_WITH(layouts.bind(p, 0, {{"seq", 1}}), Catch::Contains("not bound"));
}

TEST_CASE("symbols that are far from each other get room that both use", "[plan][D1][D3]") {
  graph_builder b;
  const dim past = dim::symbol("past"), total = dim::symbol("total"); // as many more as an image has tokens
  const value_id cache = b.input({past, 8}), mask = b.input({total});
  const auto p = plan_of(b, b.node(plain_op, {cache, mask}, {broadcast(past + dim(576), total), 8}));
  layout_buckets layouts(8);
  layouts.bind(p, 0, {{"past", 40}, {"total", 616}});
  const auto step = layouts.bind(p, 0, {{"past", 41}, {"total", 617}});
  for (int64_t n = 42; n < 60; ++n)
    CHECK(layouts.bind(p, 0, {{"past", n}, {"total", n + 576}})->layout == step->layout);
  CHECK(layouts.stats().misses == 2);
}

TEST_CASE("a value that shrinks while a symbol grows stays inside its room", "[plan][D1]") {
  graph_builder b;
  const dim n = dim::symbol("n");
  const value_id in = b.input({n});
  const value_id rest = b.node(plain_op, {in}, {dim(1000) - n});
  const auto p = plan_of(b, b.node(plain_op, {rest}, {1}));
  layout_buckets layouts(8);
  layouts.bind(p, 0, {{"n", 100}});
  for (int64_t value : {101, 102, 103, 90}) {
    const auto bound = layouts.bind(p, 0, {{"n", value}});
    CHECK(bound->dims[rest] == shape{1000 - value});
    CHECK_NOTHROW(test::verify_memory(*bound));
  }
}

TEST_CASE("a bucket that costs too much memory, or does not fit, is exact", "[plan][D1][B2]") {
  graph_builder b;
  const dim n = dim::symbol("n");
  const value_id in = b.input({n, 1 << 22}); // 16 MiB for each
  const value_id out = b.node(plain_op, {in}, {1});
  auto devices = gpus(1);
  const auto p = make_plan(b.done({out}), devices, {});
  layout_buckets layouts(8);
  layouts.bind(p, 0, {{"n", 1}});
  CHECK(capacity_of(*layouts.bind(p, 0, {{"n", 2}}), "n") == 2);   // 16 would cost seven times as much again
  CHECK(capacity_of(*layouts.bind(p, 0, {{"n", 17}}), "n") == 20); // 32 would cost 240 MiB more
  devices[0].memory_bytes = int64_t{19} << 24;
  const auto small = make_plan(p->program, devices, {});
  layouts.bind(small, 0, {{"n", 1}});
  CHECK(capacity_of(*layouts.bind(small, 0, {{"n", 17}}), "n") == 17);
  CHECK_THROWS_WITH(layouts.bind(small, 0, {{"n", 20}}), Catch::Contains("bytes allowed"));
}

TEST_CASE("values share bytes in place only if their dims are always equal", "[plan][D1][D5]") {
  graph_builder b;
  const dim n = dim::symbol("n"), m = dim::symbol("m");
  const value_id in = b.input({n}), other = b.input({m});
  const value_id a = b.node(plain_op, {in}, {n, 8});
  const value_id same = b.node(in_place_op, {a}, {n, 8});
  const value_id wider = b.node(in_place_op, {same, other}, {m, 8});
  const auto p = plan_of(b, b.node(plain_op, {wider}, {1}));
  layout_buckets layouts(8);
  const auto exact = layouts.bind(p, 0, {{"n", 16}, {"m", 16}});
  const auto& fixed = exact->layout->memory[0].offset;
  CHECK(fixed[a] == fixed[same]);
  CHECK(fixed[same] == fixed[wider]);
  const auto bucket = layouts.bind(p, 0, {{"n", 14}, {"m", 15}}); // both have the capacity 16
  const auto& shared = bucket->layout->memory[0].offset;
  REQUIRE(capacity_of(*bucket, "n") == 16);
  CHECK(shared[a] == shared[same]);
  CHECK(shared[same] != shared[wider]);
  CHECK_NOTHROW(test::verify_memory(*bucket));
}

TEST_CASE("layouts that were not used for long are forgotten", "[plan][A10]") {
  graph_builder b;
  const value_id in = b.input({dim::symbol("n")});
  const auto p = plan_of(b, b.node(plain_op, {in}, {1}));
  layout_buckets layouts(2);
  const auto kept = layouts.bind(p, 0, {{"n", 10}});
  const uint64_t id = layouts.bind(p, 0, {{"n", 100}})->layout->id;
  CHECK(layouts.bind(p, 0, {{"n", 10}})->layout == kept->layout);
  layouts.bind(p, 0, {{"n", 1000}});
  CHECK(layouts.stats().evictions == 1);
  CHECK(layouts.bind(p, 0, {{"n", 10}})->layout == kept->layout);
  CHECK(layouts.bind(p, 0, {{"n", 100}})->layout->id != id);
}

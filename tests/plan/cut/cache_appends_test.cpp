// Which appends to caches a GPU may do where the caches are.
#include "plan/cut/cache_appends.hpp"
#include "plan/graphs.hpp"
#include "rewrite/rewrite.hpp"
#include "support/cached_decoder.hpp"
#include "support/catch.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

std::shared_ptr<const plan> planned(const graph& g, std::vector<device_info> devices, const plan_options& how = {},
                                    bool for_gpus = false) {
  return make_plan(std::make_shared<const graph>(rewrite(g, {.for_gpus = for_gpus})), std::move(devices), how);
}

} // namespace

TEST_CASE("a decoder's caches may grow in place on a GPU", "[plan]") {
  const bool projected = GENERATE(false, true);
  const auto p = planned(test::decoder_of_layers(2, projected), gpus(1), {}, projected);
  const std::vector<cache_append> found = find_cache_appends(*p);
  REQUIRE(found.size() == 4);
  for (const cache_append& a : found) {
    const chunk& c = p->chunks.at(a.chunk);
    CHECK(c.uploads.at(a.upload) == a.past);
    CHECK(c.downloads.at(a.download) == a.present);
    CHECK("past_" + p->program->values[a.present].name.substr(8) == p->program->values[a.past].name);
    // New rows are written last: no other value has their memory until then.
    const device_lifetimes& all = p->lifetimes.at(0);
    const auto rows = std::find_if(all.values.begin(), all.values.end(),
                                   [&](const lifetime& l) { return l.value == p->storage[a.fresh]; });
    REQUIRE(rows != all.values.end());
    CHECK(rows->last + 1 == all.positions);
  }
}

TEST_CASE("caches of the host's memory, of several chunks, or read by other nodes do not grow in place", "[plan]") {
  CHECK(find_cache_appends(*planned(test::cached_decoder(), cpus(1))).empty());
  CHECK(
      find_cache_appends(*planned(test::cached_decoder(), gpus(2), {.policy = placement_policy::round_robin})).empty());
}

TEST_CASE("a cache grows in place if attention alone reads what is past, and nobody what is present", "[plan]") {
  enum class reader : uint8_t { none, attention, half_attention, of_past, of_present, of_fresh };
  const auto found = [](reader who, int64_t width, bool past_twice = false) {
    graph_builder b;
    const dim past = dim::symbol("past");
    const value_id cache = b.input("cache", {1, 2, past, width}), fresh = b.input("fresh", {1, 2, past, width});
    const value_id present = b.call("Append", {cache, past_twice ? cache : fresh}, {"present"}, {}, "troupe")[0];
    b.output(present);
    if (who == reader::attention)
      b.output(b.call("Attention", {fresh, fresh, fresh, no_value, cache, cache}, {"y"}, {}, "troupe")[0]);
    else if (who == reader::half_attention) // another cache, which does not grow, has the values
      b.output(b.call("Attention", {fresh, fresh, fresh, no_value, cache, b.input("values", {1, 2, past, width})},
                      {"y"}, {}, "troupe")[0]);
    else if (who != reader::none)
      b.output(b.op("Relu", {who == reader::of_past ? cache : who == reader::of_present ? present : fresh}));
    return find_cache_appends(*make_plan(test::inferred_program(b.g), gpus(1), {})).size();
  };
  CHECK(found(reader::none, 8) == 1);
  CHECK(found(reader::attention, 8) == 1);
  CHECK(found(reader::of_fresh, 8) == 1);
  CHECK(found(reader::half_attention, 8) == 0);
  CHECK(found(reader::of_past, 8) == 0);
  CHECK(found(reader::of_present, 8) == 0);
  CHECK(found(reader::none, 6) == 0); // a row of 24 bytes: not a multiple of 16
  CHECK(found(reader::none, 8, true) == 0);
}

TEST_CASE("an append to a float32 cache widens float16 rows if nothing else needs them in float32", "[plan]") {
  std::vector<device_info> devices = gpus(1);
  devices[0].gpu->float16 = true;
  const auto p = make_plan(
      std::make_shared<const graph>(rewrite(test::cached_decoder(), {.precision = precision::fp16})), devices, {});
  const std::vector<cache_append> in_decoder = find_cache_appends(*p);
  REQUIRE(in_decoder.size() == 4);
  for (const cache_append& a : in_decoder) {
    REQUIRE(a.widening >= 0);
    CHECK(p->program->nodes[a.widening].inputs[0] == a.fresh);
    CHECK(p->program->values[a.fresh].type == dtype::float16);
    CHECK(p->program->values[a.past].type == dtype::float32);
  }

  enum class others : uint8_t { none, reader, output, exact_rows };
  const auto widening = [&](others what) {
    graph_builder b;
    const dim past = dim::symbol("past");
    const auto append = [&](const std::string& name, value_id rows) {
      b.output(
          b.call("Append", {b.input("past_" + name, {1, 2, past, 8}), rows}, {"present_" + name}, {}, "troupe")[0]);
    };
    const value_id half = b.input("half", {1, 2, past, 8}, dtype::float16);
    const value_id full = b.op("Cast", {half}, test::attrs_of({{"to", int64_t{1}}}));
    append("a", full);
    if (what == others::reader)
      b.output(b.op("Relu", {full}));
    if (what == others::output)
      b.output(full);
    if (what == others::exact_rows)
      append("b", b.input("rows", {1, 2, past, 8}));
    std::vector<bool> widens;
    for (const cache_append& a : find_cache_appends(*make_plan(test::inferred_program(b.g), devices, {})))
      widens.push_back(a.widening >= 0);
    return widens;
  };
  CHECK(widening(others::none) == std::vector<bool>{true});
  CHECK(widening(others::reader) == std::vector<bool>{false});
  CHECK(widening(others::output) == std::vector<bool>{false});
  CHECK(widening(others::exact_rows) == std::vector<bool>{false, false}); // one kernel does several
}

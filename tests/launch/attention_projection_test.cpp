// Launch rules of troupe.AttentionProjection on fabricated devices: when one kernel does it all, and how its work is
// dealt out.
#include "launch/parameters.hpp"
#include "ops/composed/fused_attention.hpp"
#include "support/catch.hpp"
#include "support/projection_calls.hpp"
#include "vulkan/dynamic_calls.hpp"

#include <set>

using namespace troupe;
using namespace troupe::testing;

namespace {

/// A decode step: one query of `heads` heads, which share `kv_heads` of a cache.
struct step {
  int64_t heads = 32, kv_heads = 4, past = 64, columns = 2048, queries = 1, batch = 1;
  bool wide = true; // a cache of float32
  int64_t width = 64;
  attributes attrs = attrs_of({{"q_layout", std::string("bshd")},
                               {"kv_layout", std::string("bshd")},
                               {"out_layout", std::string("bshd")},
                               {"past_layout", std::string("sbhd")}});

  launch_lists lists(const gpu_features& gpu = projection_gpu(), way_range ways = way_range::usual) const {
    const auto half = [](shape dims) { return operand{.type = dtype::float16, .dims = std::move(dims)}; };
    operand cache = half({past, batch, kv_heads, width});
    cache.type = wide ? dtype::float32 : dtype::float16;
    const operand fresh = half({batch, queries, kv_heads, width});
    return troupe_launches("AttentionProjection", {attrs,
                                                   {half({batch, queries, heads, width}), fresh, fresh, operand{},
                                                    cache, cache, constant_operand({heads * width, columns})},
                                                   {half({batch, queries, columns})},
                                                   gpu,
                                                   ways});
  }
  std::string first(const gpu_features& gpu = projection_gpu()) const { return lists(gpu).at(0).name; }
};

constexpr const char* in_one = "attention.projection";
constexpr const char* apart = "attention.lanes+projections";

} // namespace

TEST_CASE("a decode step's attention and projection are one dispatch, a group for each multiprocessor",
          "[launch][attention]") {
  const launch_list list = step{}.lists().at(0);
  CHECK(list.name == in_one);
  REQUIRE(list.launches.size() == 1);
  const launch& l = list.launches[0];
  CHECK(l.shader == "attention_projection.f16");
  CHECK(l.groups == std::array<uint32_t, 3>{8, 1, 16}); // blocks of 256 columns, pairs of heads
  CHECK(l.constants.at(3) == 2);                        // two times 64 keys are on their way at once
  CHECK((l.constants.at(7) & shader::attention_one_block) != 0);
  CHECK(list.counters == 8 * 4);
  CHECK(list.scratch == std::vector<int64_t>{16 * 2048 * 4});
  CHECK((step{.past = 200}.lists().at(0).launches.at(0).constants.at(7) & shader::attention_one_block) == 0);
}

TEST_CASE("attention and its projection are apart if groups would read many keys again, or wait for each other",
          "[launch][attention]") {
  CHECK(step{.past = 383}.first() == in_one);
  CHECK(step{.past = 384}.first() == apart);
  CHECK(step{.past = 767, .wide = false}.first() == in_one);
  CHECK(step{.past = 768, .wide = false}.first() != in_one);
  CHECK(step{.columns = 4096}.first() == apart);
  gpu_features small = projection_gpu();
  small.units = 64;
  CHECK(step{}.first(small) == apart);
  for (const step& s : {step{.past = 384}, step{.columns = 4096}})
    CHECK(s.lists().back().name == in_one); // which may be measured
}

TEST_CASE("several queries or batch elements, and devices without shuffles, have attention and projection apart",
          "[launch][attention]") {
  gpu_features plain = projection_gpu();
  plain.subgroup_shuffle = false;
  for (const launch_lists& lists : {step{.queries = 2}.lists(), step{.batch = 2}.lists(), step{}.lists(plain)}) {
    REQUIRE_FALSE(lists.empty());
    for (const launch_list& list : lists) {
      CHECK(list.name != in_one);
      CHECK(list.launches.back().step > 0);
    }
  }
  step end;
  end.attrs.set("activation.product", std::string("Relu"));
  CHECK(end.first() == apart);
}

TEST_CASE("a group of attention and projection uses the memory that its device has", "[launch][attention]") {
  gpu_features narrow = projection_gpu();
  narrow.subgroup_size = 8;
  narrow.shared_bytes = 32768;
  for (const launch_list& list : step{}.lists(narrow))
    if (list.name == in_one)
      CHECK(list.launches[0].constants.at(0) == 256); // 32 subgroups' parts
}

TEST_CASE("command buffers of a step run others that differ in what the number of keys decides alone",
          "[launch][attention]") {
  const auto runs = [](const launch_list& recorded, const launch_list& wanted) {
    return vulkan::runs_on({&recorded, 1}, {&wanted, 1});
  };
  launch_list one = step{.past = 70}.lists().at(0), next = step{.past = 71}.lists().at(0);
  for (launch_list* list : {&one, &next})
    for (launch_binding& b : list->launches[0].bindings)
      b.bytes = vulkan::whole_operand;
  CHECK(one.launches[0].params != next.launches[0].params);
  CHECK(one.launches[0].fixed_words == shader::attention_row_fixed);
  CHECK(runs(one, next));
  CHECK(one.launches[0].fixed_groups);
  next.launches[0].groups[0] += 1;
  CHECK_FALSE(runs(one, next));
  next.launches[0].groups = one.launches[0].groups;
  next.launches[0].params[5] += 1; // the scale, a constant of the code
  CHECK_FALSE(runs(one, next));
  for (const step& s : {step{.queries = 2}, step{.batch = 2}}) {
    const std::vector<launch> launches = s.lists().at(0).launches;
    REQUIRE(launches.size() == 2);
    CHECK(launches[0].fixed_words == 0); // whatever their number
    CHECK_FALSE(launches[0].fixed_groups);
    CHECK(launches[1].fixed_words > 0); // its rows are a constant, too
    CHECK(launches[1].fixed_groups);
  }
  const std::vector<launch> split = step{.past = 4000}.lists().at(0).launches;
  CHECK(split.at(0).fixed_words > 0);
  CHECK(split.at(0).groups[2] > 1);
  CHECK_FALSE(split.at(0).fixed_groups); // the number of splits follows the keys
}

TEST_CASE("command buffers are for any number of keys without past ones, too", "[launch][attention]") {
  const auto of = [](int64_t keys) {
    const operand q{.type = dtype::float16, .dims = {1, 4, 1, 64}}, k{.type = dtype::float16, .dims = {1, 4, keys, 64}};
    const attributes attrs;
    return troupe_launches("Attention", {attrs, {q, k, k}, {q}, projection_gpu()}).at(0).launches.at(0);
  };
  for (const int64_t keys : {2, 70, 71})
    CHECK(of(keys).fixed_words == 0); // which the steps of new keys depend on
}

TEST_CASE("all kernels of attention are measured where it is projected", "[launch][attention]") {
  std::set<std::string> names;
  for (const launch_list& list : step{.past = 2000}.lists(projection_gpu(), way_range::all))
    names.insert(list.name);
  for (const char* attention : {"attention.lanes", "attention.lanes.split1", "attention.row"})
    CHECK(names.contains(attention + std::string("+projections")));
  CHECK(names.contains(in_one));
}

TEST_CASE("columns whose vectors lanes do not read as neighbours are not one dispatch with attention",
          "[launch][attention]") {
  CHECK(step{.heads = 4, .kv_heads = 4, .columns = 256}.first() == in_one);
  const launch_lists lists = step{.heads = 4, .kv_heads = 4, .columns = 256, .width = 40}.lists();
  CHECK(lists.at(0).name == apart);
  CHECK(lists.back().name == in_one);
}

// Which of its kernels attention takes on a fabricated device. Results are tested on a device.
#include "launch/parameters.hpp"
#include "ops/run_op.hpp"
#include "support/catch.hpp"
#include "support/operator_launches.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

const gpu_features large_gpu{.max_group_size = 1024,
                             .shared_bytes = 49152,
                             .max_groups = {1u << 31, 65535, 65535},
                             .float16 = true,
                             .cooperative_matrix = true,
                             .group_matrices = true,
                             .units = 132};

operand half(shape dims) {
  return {.type = dtype::float16, .dims = std::move(dims)};
}

/// Returns the first kernel for queries beside a cache of `past` keys.
launch_list with_cache(int64_t queries, int64_t past, bool rows_first) {
  const operand q = half({1, 12, queries, 64}), kv = half({1, queries, 4, 64});
  const operand cache = half(rows_first ? shape{past, 1, 4, 64} : shape{1, 4, past, 64});
  attributes attrs;
  attrs.set("past_layout", std::string(rows_first ? "sbhd" : "bhsd"));
  attrs.set("kv_layout", std::string("bshd"));
  return troupe_launches("Attention", {attrs, {q, kv, kv, operand{}, cache, cache}, {q}, large_gpu}).at(0);
}

/// The same for ONNX's operator.
launch_list by_operator(int64_t queries, int64_t past, bool rows_first) {
  const operand q = half({1, queries, 12 * 64}), kv = half({1, queries, 4 * 64});
  const operand cache = half(rows_first ? shape{past, 1, 4, 64} : shape{1, 4, past, 64});
  attributes attrs;
  attrs.set("past_layout", std::string(rows_first ? "sbhd" : "bhsd"));
  attrs.set("q_num_heads", int64_t{12});
  attrs.set("kv_num_heads", int64_t{4});
  return onnx_launches("Attention", {attrs, {q, kv, kv, operand{}, cache, cache}, {q}, large_gpu}).at(0);
}

} // namespace

TEST_CASE("Attention by matrices has the fewest queries a group whose groups run at once", "[ops]") {
  const auto first = [](int64_t batch, int64_t queries, int64_t width, gpu_features gpu = large_gpu) {
    const operand q = half({batch, 12, queries, width});
    const attributes none;
    const launch_list list = troupe_launches("Attention", {none, {q, q, q}, {q}, gpu}).at(0);
    const launch& l = list.launches.at(0);
    if (l.shader.starts_with("attention_matrices.")) {
      CHECK(l.shader == fmt::format("attention_matrices.f16_{}x{}", width, list.name.substr(list.name.rfind('x') + 1)));
      CHECK(l.constants.at(0) == 32 * l.constants.at(1) * l.constants.at(2)); // a subgroup for each block and part
      CHECK(l.groups[0] == batch * 12 * ((queries - 1) / (16 * l.constants.at(1)) + 1));
    }
    return list.name;
  };
  CHECK(first(1, 197, 64) == "attention.matrices.2x4x32");
  CHECK(first(1, 352, 64) == "attention.matrices.2x4x32"); // 132 groups of 32
  CHECK(first(1, 353, 64) == "attention.matrices.4x2x32");
  CHECK(first(1, 704, 32) == "attention.matrices.4x2x32"); // 132 groups of 64
  CHECK(first(1, 705, 32) == "attention.matrices.4x1x64");
  CHECK(first(32, 197, 64) == "attention.matrices.4x1x64");
  CHECK(first(1, 352, 128) == "attention.matrices.2x2x32");
  CHECK(first(1, 353, 128) == "attention.matrices.4x1x32");
  CHECK_FALSE(first(1, 197, 96).starts_with("attention.matrices"));
  for (const auto lacks :
       {+[](gpu_features& f) { f.group_matrices = false; }, +[](gpu_features& f) { f.subgroup_size = 64; },
        +[](gpu_features& f) { f.cooperative_matrix = false; }, +[](gpu_features& f) { f.shared_bytes = 32768; },
        +[](gpu_features& f) { f.max_group_size = 128; }}) {
    gpu_features less = large_gpu;
    lacks(less);
    CHECK_FALSE(first(1, 197, 64, less).starts_with("attention.matrices"));
  }
}

TEST_CASE("Attention by matrices knows the work that its kernel can leave out", "[ops]") {
  const auto flags = [](const shape& q, const shape& kv, const shape& mask, bool causal) {
    attributes attrs;
    attrs.set("is_causal", int64_t{causal});
    const operand keys = half(kv);
    std::vector<operand> inputs{half(q), keys, keys};
    if (!mask.empty())
      inputs.push_back(half(mask));
    return troupe_launches("Attention", {attrs, inputs, {half(q)}, large_gpu}).at(0).launches.at(0).constants.at(3);
  };
  using namespace shader;
  CHECK(flags({1, 4, 40, 64}, {1, 4, 50, 64}, {}, false) == 0);
  CHECK(flags({2, 4, 40, 64}, {2, 4, 50, 64}, {}, true) == (attention_batched | attention_causal));
  CHECK(flags({1, 4, 40, 64}, {1, 2, 50, 64}, {}, false) == attention_shares);
  CHECK(flags({1, 4, 40, 64}, {1, 4, 50, 64}, {1, 1, 1, 50}, false) == (attention_mask | attention_row_mask));
  CHECK(flags({1, 4, 40, 64}, {1, 4, 50, 64}, {1, 4, 40, 50}, false) == attention_mask);
}

TEST_CASE("Attention by matrices looks which keys a mask hides where there are many", "[ops]") {
  const auto list = [](const shape& mask, int64_t queries, int64_t keys, bool causal) {
    attributes attrs;
    attrs.set("is_causal", int64_t{causal});
    const operand q = half({2, 8, queries, 64}), kv = half({2, 8, keys, 64});
    return troupe_launches("Attention", {attrs, {q, kv, kv, half(mask)}, {q}, large_gpu}).at(0);
  };
  const auto looks = [&](const shape& mask, int64_t queries = 512, int64_t keys = 640, bool causal = false) {
    const launch_list found = list(mask, queries, keys, causal);
    const launch& attention = found.launches.back();
    CHECK(attention.shader.starts_with("attention_matrices."));
    CHECK(found.launches.size() == ((attention.constants.at(3) & shader::attention_ranges) != 0 ? 2 : 1));
    return found.launches.size() == 2;
  };
  CHECK(looks({512, 640}));
  CHECK(looks({2, 8, 512, 640}));
  CHECK_FALSE(looks({2, 1, 1, 640}));              // all queries see the same
  CHECK_FALSE(looks({512, 1}));                    // all keys are seen alike
  CHECK_FALSE(looks({512, 640}, 512, 640, true));  // what the mask shows may be later than a query
  CHECK_FALSE(looks({400, 640}, 400, 640, false)); // sooner computed than looked for
  const launch_list found = list({2, 1, 512, 640}, 512, 640, false);
  CHECK(found.scratch == std::vector<int64_t>{2 * 512 * 16}); // a range for each row of the mask
  CHECK(found.launches.at(0).groups[0] == 2 * 512);
  CHECK(found.launches.at(0).step < found.launches.at(1).step);
}

TEST_CASE("Attention of few queries reads a cache where it is, with more groups for very many keys", "[ops]") {
  const launch_list one = with_cache(1, 64, false), many = with_cache(1, 9000, false);
  REQUIRE(one.launches.size() == 1);
  CHECK(one.launches[0].shader == "attention_row.f16");
  CHECK(one.scratch.empty());
  CHECK(one.launches[0].groups == std::array<uint32_t, 3>{12, 1, 1});
  REQUIRE(many.launches.size() == 2);
  CHECK(many.launches[0].groups[2] > 1);
  CHECK(many.launches[1].shader == "attention_join.f16");
}

namespace {

/// Kernels, best first, for a decode step of `heads` heads that share `kv_heads` and see `keys` keys, of float32 caches
/// if `wide`.
launch_lists decode_step(int64_t heads, int64_t kv_heads, int64_t keys, bool wide, bool shuffle = true) {
  gpu_features gpu = large_gpu;
  gpu.subgroup_shuffle = shuffle;
  const operand q = half({1, 1, heads * 64}), fresh = half({1, 1, kv_heads * 64});
  operand cache = half({1, kv_heads, keys - 1, 64});
  cache.type = wide ? dtype::float32 : dtype::float16;
  attributes attrs;
  attrs.set("q_num_heads", heads);
  attrs.set("kv_num_heads", kv_heads);
  return onnx_launches("Attention", {attrs, {q, fresh, fresh, operand{}, cache, cache}, {q}, gpu});
}

} // namespace

TEST_CASE("Attention of a decode step is split where that saves more reading than joining costs", "[ops]") {
  const auto first = [](int64_t keys, bool wide) { return decode_step(12, 12, keys, wide).at(0); };
  for (const bool wide : {false, true}) {
    const int64_t most = wide ? 512 : 896; // keys of a group that has all of them
    CHECK(first(65, wide).name == "attention.lanes");
    CHECK(first(most, wide).name == "attention.lanes");
    CHECK(first(most + 128, wide).name == "attention.lanes.split1");
    CHECK(first(4000, wide).name == "attention.lanes.split1");
  }
  const launch_list split = first(1001, false);
  REQUIRE(split.launches.size() == 1); // whose last groups join the splits
  CHECK(split.launches[0].shader == "attention_lanes.f16_split");
  CHECK(split.launches[0].groups == std::array<uint32_t, 3>{12, 1, 8}); // of 128 keys each
  CHECK(split.scratch == std::vector<int64_t>{8 * 12 * 66 * 4});
  CHECK(split.counters == 12 * 4);
  CHECK(first(65, false).launches[0].groups == std::array<uint32_t, 3>{12, 1, 1});
  CHECK(decode_step(32, 8, 1001, true).at(0).launches[0].groups == std::array<uint32_t, 3>{32, 1, 8});
  const launch_list many =
      decode_step(32, 8, 65'001, false).at(0); // more than the cache holds: two heads read their keys together
  CHECK(many.name == "attention.lanes.split2");
  CHECK(many.launches[0].groups[0] == 16);
}

TEST_CASE("Attention of few queries needs shuffles for slots of lanes, and has another kernel without", "[ops]") {
  CHECK(decode_step(12, 12, 1001, true, false).at(0).name == "attention.row");
  std::vector<std::string> names;
  for (const launch_list& list : decode_step(12, 12, 1001, false))
    names.push_back(list.name);
  REQUIRE(names.size() > 3); // joined keys and values are last
  names.resize(3);
  CHECK(names == std::vector<std::string>{"attention.lanes.split1", "attention.lanes", "attention.row"});
}

TEST_CASE("Attention reads a cache whose positions come first by other steps alone", "[ops]") {
  const auto of = GENERATE(with_cache, by_operator);
  for (const int64_t queries : {1, 100}) {
    const launch_list usual = of(queries, 50, false), first = of(queries, 50, true);
    CHECK(usual.name == first.name);
    REQUIRE(usual.launches.size() == first.launches.size());
    size_t different = 0;
    for (size_t i = 0; i < usual.launches.size(); ++i) {
      CHECK(usual.launches[i].shader == first.launches[i].shader);
      CHECK(usual.launches[i].constants == first.launches[i].constants);
      different += usual.launches[i].params != first.launches[i].params;
    }
    CHECK(different == (queries == 1 ? 1 : 2)); // attention itself, or the kernels that join keys and values
  }
  const auto block = words_of(shader::attention_row{.past_k_steps = {256, 64, 256}, .past_v_steps = {256, 64, 256}});
  const std::vector<uint32_t> params = of(1, 50, true).launches[0].params;
  REQUIRE(params.size() == block.size());
  for (size_t i = 0; i < block.size(); ++i)
    if (block[i] != 0)
      CHECK(params[i] == block[i]);
}

TEST_CASE("Attention reads some heads of its operands by other steps alone", "[ops]") {
  const auto lists = [](int64_t heads, const attributes& attrs, int64_t queries) {
    const operand x = half({2, queries, heads, 64}), y = half({2, 12, queries, 64});
    return troupe_launches("Attention", {attrs, {x, x, x}, {y}, large_gpu});
  };
  attributes alone;
  alone.set("q_layout", std::string("bshd"));
  alone.set("kv_layout", std::string("bshd"));
  attributes packed = alone;
  packed.set("q_heads", std::vector<int64_t>{1, 12});
  packed.set("k_heads", std::vector<int64_t>{13, 12});
  packed.set("v_heads", std::vector<int64_t>{25, 12});
  for (const int64_t queries : {1, 100}) {
    const launch_lists usual = lists(12, alone, queries), chosen = lists(40, packed, queries);
    REQUIRE(usual.size() == chosen.size());
    REQUIRE(usual.size() ==
            (queries == 1 ? 2 : 6)); // few queries, or matrices and blocks of registers, before the plain kernel
    for (size_t i = 0; i < usual.size(); ++i) {
      CHECK(usual[i].name == chosen[i].name);
      REQUIRE(usual[i].launches.size() == 1);
      const launch &a = usual[i].launches[0], &b = chosen[i].launches.at(0);
      CHECK(a.shader == b.shader);
      CHECK(a.constants == b.constants);
      CHECK(a.groups == b.groups);
      const uint32_t row = 40 * 64, whole = word(queries) * row;
      std::vector<uint32_t> steps;
      for (size_t w = 0; w < a.params.size(); ++w)
        if (a.params[w] != b.params[w])
          steps.push_back(b.params[w]);
      CHECK(steps == std::vector<uint32_t>{whole, row, 1 * 64, whole, row, 13 * 64, whole, row, 25 * 64});
    }
  }
}

TEST_CASE("Attention writes the scores if they alone are asked for, however few the queries", "[ops]") {
  const operand q = half({1, 12, 2, 64}), kv = half({1, 12, 40, 64}), scores = half({1, 12, 2, 40});
  const attributes none;
  const launch_lists lists =
      onnx_launches("Attention", {none, {q, kv, kv}, {q, operand{}, operand{}, scores}, large_gpu});
  REQUIRE_FALSE(lists.empty());
  for (const launch_list& list : lists) {
    INFO(list.name);
    size_t writers = 0;
    for (const launch& l : list.launches)
      for (const launch_binding& b : l.bindings)
        writers += b.from == launch_binding::source::output && b.index == 3 && b.written;
    CHECK(writers == 1);
  }
}

TEST_CASE("Attention of many queries joins a cache in scratch memory, and then does the same as with joined keys",
          "[ops]") {
  const launch_list list = with_cache(100, 50, false);
  const operand q = half({1, 12, 100, 64}), kv = half({1, 4, 150, 64});
  const attributes none;
  const launch_list joined = troupe_launches("Attention", {none, {q, kv, kv}, {q}, large_gpu}).at(0);
  REQUIRE(joined.launches.size() == 1);
  const launch &last = list.launches.back(), &alone = joined.launches[0];
  CHECK(last.shader == alone.shader);
  CHECK(last.constants == alone.constants);
  CHECK(last.params == alone.params);
  CHECK(last.groups == alone.groups);
  REQUIRE(list.scratch == std::vector<int64_t>(2, kv.bytes()));
  for (const uint32_t i : {0u, 1u}) {
    const launch_binding& rows = last.bindings.at(1 + i);
    CHECK(rows.from == launch_binding::source::scratch);
    CHECK(rows.index == i);
    CHECK(rows.bytes == kv.bytes());
    CHECK_FALSE(rows.written);
    size_t writers = 0; // of past and of new rows, one after the other
    for (const launch& l : list.launches)
      for (const launch_binding& b : l.bindings)
        writers += b.from == launch_binding::source::scratch && b.index == i && b.written && l.step < last.step;
    CHECK(writers == 2);
  }
}

namespace {

/// Names of kernels, best first, for float32 heads of one batch, `sharing` of which share keys, on a device without
/// matrices.
std::vector<std::string> float_kernels(int64_t heads, int64_t sharing, int64_t queries, int64_t keys, int64_t width,
                                       uint32_t shared_bytes = 49152) {
  gpu_features gpu = large_gpu;
  gpu.shared_bytes = shared_bytes;
  const operand q{.type = dtype::float32, .dims = {1, heads, queries, width}},
      kv{.type = dtype::float32, .dims = {1, heads / sharing, keys, width}};
  const attributes none;
  std::vector<std::string> names;
  for (const launch_list& list : troupe_launches("Attention", {none, {q, kv, kv}, {q}, gpu}))
    names.push_back(list.name);
  return names;
}

} // namespace

TEST_CASE("Attention of many queries takes large blocks for many heads, small ones and teams for few", "[ops]") {
  CHECK(float_kernels(384, 1, 128, 128, 64).at(0) == "attention.tiled64x32");
  CHECK(float_kernels(192, 1, 1024, 1024, 64).at(0) == "attention.tiled64x32");
  CHECK(float_kernels(12, 1, 197, 197, 64).at(0) == "attention.tiled32x16x4");
  CHECK(float_kernels(12, 1, 128, 128, 64).at(0) == "attention.tiled16x16x4");
  CHECK(float_kernels(1, 1, 64, 4000, 64).at(0) == "attention.tiled16x32x2.split");
  for (const std::string& name : float_kernels(384, 1, 128, 128, 64, 32768)) // as lavapipe has it
    CHECK(name != "attention.tiled64x32");
}

TEST_CASE("Attention of eight rows, and of wide heads, is not in blocks of registers", "[ops]") {
  using names = std::vector<std::string>;
  CHECK(float_kernels(12, 1, 8, 40, 64) == names{"attention"});
  CHECK(float_kernels(12, 3, 3, 40, 64).back() == "attention");
  CHECK(float_kernels(12, 4, 5, 40, 64).at(0) != "attention"); // 20 rows of heads that share keys
  CHECK(float_kernels(12, 1, 100, 100, 256) == names{"attention"});
}

TEST_CASE("Attention of many float32 queries has two blocks of rows, or all that fit where every way is wanted",
          "[ops]") {
  gpu_features gpu = large_gpu;
  const auto names = [&](int64_t width, way_range ways) {
    const operand x{.type = dtype::float32, .dims = {1, 12, 300, width}};
    const attributes none;
    std::vector<std::string> found;
    for (const launch_list& list : troupe_launches("Attention", {none, {x, x, x}, {x}, gpu, ways}))
      if (list.name.starts_with("attention.tiled") && !list.name.ends_with(".split"))
        found.push_back(list.name);
    return found;
  };
  const std::vector<std::string> usual = names(64, way_range::usual), all = names(64, way_range::all);
  REQUIRE(usual.size() == 2);
  REQUIRE(all.size() == 6);
  CHECK(std::vector(all.begin(), all.begin() + 2) == usual);
  CHECK(names(128, way_range::all).size() < 6); // shared memory
  gpu.shared_bytes = 32768;
  CHECK(names(64, way_range::all).size() < 6);
  CHECK(names(32, way_range::all).size() == 6);
}

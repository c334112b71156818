// Launch rules of troupe.Projections on fabricated devices: when one kernel does it all, and how parts follow each
// other.
#include "launch/parameters.hpp"
#include "support/catch.hpp"
#include "support/projection_calls.hpp"

#include <set>

using namespace troupe;
using namespace troupe::testing;

namespace {

uint32_t steps_of(const launch_list& list) {
  uint32_t steps = 0;
  for (const launch& l : list.launches)
    steps = std::max(steps, l.step + 1);
  return steps;
}

} // namespace

TEST_CASE("few rows are one dispatch, whose teams cover all columns", "[launch][projections]") {
  const gpu_features gpu = projection_gpu();
  for (const int64_t rows : {1, 2, 4}) {
    const launch_list list = decoder_call(rows).lists(gpu).at(0);
    CHECK(list.name == "projections");
    REQUIRE(list.launches.size() == 1);
    const launch& l = list.launches[0];
    CHECK(l.shader == "projections.f16");
    const int64_t teams = l.constants.at(0) / l.constants.at(1), columns = l.constants.at(2);
    CHECK(l.groups[0] * teams * columns >= 768 + 256 + 256);
    CHECK(l.constants.at(3) == rows);
    // first slots and columns of the parts, after eight words
    CHECK(l.params.at(8) == 0);
    CHECK(int64_t{l.params.at(12)} == 768 / columns);
    CHECK(int64_t{l.params.at(16)} == 1024 / columns);
    CHECK(l.params.at(17) == 256);
    std::set<uint32_t> written;
    for (const launch_binding& b : l.bindings)
      if (b.written)
        written.insert(b.index);
    CHECK(written == std::set<uint32_t>{0, 1, 2});
  }
}

TEST_CASE("more rows are the parts, the products side by side after the norm", "[launch][projections]") {
  const gpu_features gpu = projection_gpu();
  const launch_lists lists = decoder_call(5).lists(gpu);
  REQUIRE_FALSE(lists.empty());
  for (const launch_list& list : lists) {
    CHECK(list.name.find("layer_norm") == 0);
    CHECK(steps_of(list) >= 2);
    for (const launch& l : list.launches) {
      const bool norm = l.shader.find("layer_norm") == 0;
      CHECK((l.step == 0) == norm);
    }
    REQUIRE_FALSE(list.scratch.empty());
    CHECK(list.scratch[0] == 5 * 768 * 2); // the rows that the norm hands on
    CHECK(list.packed.size() == 3);
  }
}

TEST_CASE("rows that do not fit into a group's memory are not normalised there", "[launch][projections]") {
  gpu_features gpu = projection_gpu();
  const auto first = [&](int64_t rows, int64_t hidden) {
    return decoder_call(rows, hidden, {64}).lists(gpu).at(0).name;
  };
  CHECK(first(1, 8192) == "projections");
  CHECK(first(4, 8192).find("layer_norm") == 0);
  gpu.shared_bytes = 16384;
  CHECK(first(1, 8192).find("layer_norm") == 0);
}

TEST_CASE("teams are whole subgroups; a device without their arithmetic has the plain kernel",
          "[launch][projections]") {
  gpu_features gpu = projection_gpu();
  const auto names = [&] {
    std::set<std::string> found;
    for (const launch_list& list : decoder_call(1).lists(gpu))
      if (list.name.find("projections") == 0) {
        found.insert(list.name);
        CHECK((list.name.ends_with("plain") || list.launches[0].constants.at(1) % gpu.subgroup_size == 0));
      }
    return found;
  };
  for (const uint32_t size : {8u, 32u, 64u, 128u}) {
    gpu.subgroup_size = size;
    CHECK(names() == std::set<std::string>{"projections", "projections.plain"});
  }
  gpu.subgroup_arithmetic = false;
  CHECK(names() == std::set<std::string>{"projections.plain"});
}

TEST_CASE("a group of one row is whole teams, pairs of them if they share the row", "[launch][projections]") {
  gpu_features gpu = projection_gpu();
  const int64_t hidden = GENERATE(256, 768, 2048, 8192);
  for (const uint32_t size : {8u, 16u, 32u, 64u, 128u})
    for (const bool packed : {false, true})
      for (const bool rotated : {false, true}) {
        INFO("subgroups of " << size << ", " << hidden << (packed ? ", packed" : "") << (rotated ? ", rotated" : ""));
        gpu.subgroup_size = size;
        decoder_call call = packed ? packed_call(1, hidden, {hidden, 256, 256}, 32) : decoder_call(1, hidden);
        for (const launch_list& list : (rotated ? call.rotate() : call).lists(gpu))
          if (list.launches.size() == 1) {
            const uint32_t threads = list.launches[0].constants.at(0), lanes = list.launches[0].constants.at(1);
            INFO(list.name << ", lanes " << lanes << " of " << threads);
            CHECK((threads == 128 || threads == 256 || (packed && threads == 512)));
            CHECK(threads % (rotated ? 2 * lanes : std::min(2 * lanes, 256u)) == 0);
          }
      }
}

TEST_CASE("four products take two dispatches of one step", "[launch][projections]") {
  const launch_list list = decoder_call(1, 768, {64, 64, 64, 32}).lists(projection_gpu()).at(0);
  CHECK(list.launches.size() == 2);
  CHECK(steps_of(list) == 1);
  CHECK(list.packed.size() == 4);
}

TEST_CASE("weights beyond a binding's limit are multiplied part by part", "[launch][projections]") {
  gpu_features gpu = projection_gpu();
  gpu.max_binding_bytes = 1 << 20;
  const launch_lists lists = decoder_call(1).lists(gpu);
  REQUIRE_FALSE(lists.empty());
  CHECK(lists[0].name.find("layer_norm") == 0);
}

TEST_CASE("rotated columns are dealt out by pairs, each to two teams of a group", "[launch][projections]") {
  gpu_features gpu = projection_gpu();
  for (const int64_t queries : {64, 768, 16384}) {
    const launch_list list = decoder_call(1, 4096, {queries, 256, 255}).rotate().lists(gpu).at(0);
    CHECK(list.name == "projections");
    REQUIRE(list.launches.size() == 1);
    const launch& l = list.launches[0];
    const uint32_t teams = l.constants.at(0) / l.constants.at(1), columns = l.constants.at(2);
    CHECK(teams % 2 == 0);
    CHECK((columns == 2) == (queries == 16384));
    CHECK((l.constants.at(8) & 7 * shader::projections_rotated) == 3 * shader::projections_rotated);
    for (const size_t first : {8, 12, 16})
      CHECK(l.params.at(first) % 2 == 0);
    CHECK(l.bindings.size() == 16);
  }
}

TEST_CASE("results of more rows are rotated where they are, last", "[launch][projections]") {
  const launch_lists lists = decoder_call(7).rotate().lists(projection_gpu());
  REQUIRE_FALSE(lists.empty());
  for (const launch_list& list : lists) {
    CHECK(list.name.find("projections") == std::string::npos);
    CHECK(list.scratch.at(0) == 7 * 768 * 2);
    size_t rotations = 0;
    for (const launch& l : list.launches)
      if (l.shader == "rotary.f16") {
        ++rotations;
        CHECK(l.step + 1 == steps_of(list));
        CHECK(l.bindings.at(0).from == launch_binding::source::output);
        CHECK(l.bindings.at(0).index == l.bindings.at(4).index);
        CHECK_FALSE(l.bindings.at(0).written);
        CHECK(l.bindings.at(4).written);
      }
    CHECK(rotations == 2);
  }
  CHECK_THROWS_AS(decoder_call(7).rotate(2).lists(projection_gpu()), error);
  CHECK_THROWS_AS(decoder_call(2).rotate(2).lists(projection_gpu()), error);
}

namespace {

/// A product with bias and residual, and a norm of its rows.
struct normed_call {
  attributes attrs = attrs_of({{"products", int64_t{1}}, {"last_norm", std::string("LayerNormalization")}});
  std::vector<operand> inputs, outputs;

  normed_call(int64_t rows, int64_t depth, int64_t columns, dtype type = dtype::float16, bool sums = true) {
    const operand result{.type = type, .dims = {1, rows, columns}};
    inputs = {{.type = type, .dims = {1, rows, depth}}, {}, {}, constant_operand({depth, columns}, type), {}, {}};
    inputs.insert(inputs.end(), {constant_operand({columns}, type), result, constant_operand({columns}, type),
                                 constant_operand({columns}, type)});
    outputs = {result};
    if (sums)
      outputs.push_back(result);
  }

  launch_lists lists(const gpu_features& gpu, way_range ways = way_range::usual) const {
    return troupe_launches("Projections", {attrs, inputs, outputs, gpu, ways});
  }
};

gpu_features gpu_with_matrices() {
  gpu_features gpu = projection_gpu();
  gpu.cooperative_matrix = gpu.group_matrices = true;
  return gpu;
}

std::set<uint32_t> outputs_written_by(const launch& l) {
  std::set<uint32_t> written;
  for (const launch_binding& b : l.bindings)
    if (b.written && b.from == launch_binding::source::output)
      written.insert(b.index);
  return written;
}

} // namespace

TEST_CASE("a product that is split anyway normalises its rows where it adds its parts", "[launch][projections]") {
  for (const bool sums : {false, true}) {
    const launch_list list = normed_call(197, 3072, 768, dtype::float16, sums).lists(gpu_with_matrices()).at(0);
    CHECK(list.name == "matmul_cooperative.normed");
    REQUIRE(list.launches.size() == 2);
    const launch &product = list.launches[0], &last = list.launches[1];
    CHECK(product.groups[2] > 1);
    CHECK(outputs_written_by(product).empty());
    CHECK(last.shader == "split_norm.f16");
    CHECK(last.step == 1);
    CHECK(last.groups == std::array<uint32_t, 3>{197, 1, 1}); // a row each
    CHECK(outputs_written_by(last) == (sums ? std::set<uint32_t>{0, 1} : std::set<uint32_t>{0}));
    CHECK((last.constants.at(8) & shader::split_norm_sums) == (sums ? shader::split_norm_sums : 0));
    CHECK(list.scratch.size() == 1); // the sum is stored nowhere if no node reads it
  }
  CHECK(normed_call(128, 768, 768, dtype::float32).lists(projection_gpu()).at(0).name == "matmul.normed");
}

TEST_CASE("a product that is not split, or of few rows, has its norm after it as ever", "[launch][projections]") {
  const gpu_features gpu = gpu_with_matrices();
  const auto first = [&](int64_t rows, int64_t depth) { return normed_call(rows, depth, 768).lists(gpu).at(0); };
  for (const int64_t rows : {128, 1024}) {
    INFO(rows);
    CHECK(first(rows, 768).name == "matmul_cooperative+layer_norm");
  }
  CHECK(first(6304, 3072).name == "matmul.matrices+layer_norm");
  for (const int64_t rows : {1, 2, 4}) {
    CHECK(first(rows, 3072).name == "projections+layer_norm");
    CHECK(steps_of(first(rows, 3072)) == 2);
  }
}

TEST_CASE("a product is split for its norm where that takes less than a launch of the norm's own",
          "[launch][projections]") {
  const gpu_features gpu = gpu_with_matrices();
  const auto first = [&](int64_t rows, dtype type = dtype::float16) {
    return normed_call(rows, 768, 768, type).lists(gpu).at(0);
  };
  for (const int64_t rows : {161, 197, 224}) {
    CHECK(first(rows).name == "matmul_cooperative.normed");
    CHECK(first(rows).launches[0].groups[2] > 1);
  }
  CHECK(first(1024).name == "matmul_cooperative+layer_norm");
  CHECK(first(1024, dtype::float32).name == "matmul+layer_norm");
  CHECK(first(128, dtype::float32).name == "matmul.normed");
}

TEST_CASE("a product with a norm after it takes the tile that it would take without", "[launch][projections]") {
  const gpu_features gpu = gpu_with_matrices();
  for (const int64_t rows : {5, 64, 128, 6304})
    for (const int64_t depth : {768, 3072})
      for (const dtype type : {dtype::float16, dtype::float32}) {
        INFO(rows << " rows of " << depth);
        normed_call call(rows, depth, 768, type);
        const launch_list list = call.lists(gpu).at(0);
        attributes none;
        const launch_list alone =
            troupe_launches(
                "MatMul",
                {none, {call.inputs[0], call.inputs[3], call.inputs[6], call.inputs[7]}, {call.outputs[0]}, gpu})
                .at(0);
        CHECK(list.launches.size() == 2); // a product and its norm, or parts and their sum
        if (list.name.ends_with(".normed") && alone.launches.size() == 1)
          continue; // split for its norm
        CHECK(list.launches[0].shader == alone.launches[0].shader);
        CHECK(list.launches[0].groups == alone.launches[0].groups);
      }
}

TEST_CASE("rows that a team's registers do not hold are normalised by themselves", "[launch][projections]") {
  const auto first = [](int64_t columns) {
    return normed_call(128, 4096, columns, dtype::float32).lists(projection_gpu()).at(0).name;
  };
  CHECK(first(8192) == "matmul.normed");
  CHECK(first(8196) == "matmul+layer_norm");
  CHECK(first(4097) == "matmul+layer_norm"); // single elements
}

TEST_CASE("all ways of a normed product are tiles that split and those of the product", "[launch][projections]") {
  std::set<std::string> names;
  for (const launch_list& list : normed_call(197, 3072, 768).lists(gpu_with_matrices(), way_range::all)) {
    names.insert(list.name);
    if (list.name.ends_with(".normed")) {
      CHECK(list.tile.find('*') != std::string::npos);
      CHECK(list.launches.back().shader == "split_norm.f16");
    }
  }
  CHECK(names.contains("matmul_cooperative.normed"));
  CHECK(names.contains("matmul.matrices+layer_norm"));
}

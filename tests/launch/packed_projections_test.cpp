// Launch rules of troupe.Projections by packed weights: which kernel has them, and how columns are dealt out to teams.
#include "support/catch.hpp"
#include "support/projection_calls.hpp"

using namespace troupe;
using namespace troupe::testing;

TEST_CASE("codes in whole vectors are one dispatch of three parts", "[launch][projections]") {
  const gpu_features gpu = projection_gpu();
  for (const int64_t columns : {256, 2048, 32000, 1 << 20}) {
    const launch_list list = packed_call(1, 2048, {columns, 256, 100}, 32).lists(gpu).at(0);
    REQUIRE(list.launches.size() == 1);
    const launch& l = list.launches[0];
    CHECK(l.shader == "nbits_vectors.f16");
    CHECK(l.bindings.size() == 22);
    const int64_t teams = l.constants.at(0) / l.constants.at(1), each = l.constants.at(2);
    CHECK(int64_t{l.groups[0]} * l.groups[1] * teams * each >= columns + 356);
  }
}

TEST_CASE("a lane loads all its vectors of codes at once, if they are few", "[launch][projections]") {
  for (const int64_t depth : {64, 2048, 5632, 11008, 16384}) {
    const launch l = packed_call(1, depth, {512}, 32).lists(projection_gpu()).at(0).launches.at(0);
    REQUIRE(l.shader == "nbits_vectors.f16");
    const int64_t vectors = depth / 32, lanes = l.constants.at(1), unroll = l.constants.at(4);
    INFO(depth << ": " << lanes << " lanes, " << unroll);
    CHECK(lanes * unroll >= vectors);
    CHECK(lanes * (unroll - 1) < vectors);
    CHECK(unroll * l.constants.at(2) <= 8);
  }
}

TEST_CASE("teams of codes: four a group or more, two columns where they are many, one vector at once where they fill "
          "the device",
          "[launch][projections]") {
  gpu_features gpu = projection_gpu();
  for (const uint32_t largest : {256u, 384u, 1024u})
    for (const int64_t depth : {64, 2048, 5632, 16384}) {
      gpu.max_group_size = largest;
      const launch l = packed_call(1, depth, {512}, 32).lists(gpu).at(0).launches.at(0);
      INFO("groups of " << largest << ", " << depth);
      REQUIRE(l.shader == "nbits_vectors.f16");
      CHECK(l.constants.at(0) <= largest);
      CHECK(l.constants.at(0) / l.constants.at(1) >= 4);
    }
  const auto teams = [&](int64_t columns) {
    const launch l = packed_call(1, 2048, {columns}, 32).lists(gpu).at(0).launches.at(0);
    return std::pair(l.constants.at(2), l.constants.at(4)); // columns of a team, vectors at once
  };
  CHECK(teams(2048) == std::pair(1u, 2u));
  CHECK(teams(6144) == std::pair(2u, 2u));
  CHECK(teams(32000) == std::pair(2u, 1u));
}

TEST_CASE("columns that are no whole vectors, and more rows, have the kernel of words", "[launch][projections]") {
  const auto shader = [](int64_t rows, int64_t depth, int64_t block) {
    return packed_call(rows, depth, {64}, block).lists(projection_gpu()).at(0).launches.at(0).shader;
  };
  CHECK(shader(1, 96, 16) == "nbits_vectors.f16");
  CHECK(shader(1, 80, 16) == "matmul_nbits.f16"); // 40 bytes a column
  CHECK(shader(2, 4096, 32) == "matmul_nbits.f16");
  CHECK(shader(3, 4096, 32) == "matmul_nbits.f16");
  CHECK(shader(4, 8192, 32).find("layer_norm") == 0);
  gpu_features gpu = projection_gpu();
  gpu.integer_dot = false; // which rows of float16 are multiplied by
  CHECK(packed_call(1, 96, {64}, 32).lists(gpu).at(0).launches.at(0).shader == "matmul_nbits.f16");
  gpu.subgroup_arithmetic = false;
  CHECK(packed_call(1, 96, {64}, 32).lists(gpu).at(0).launches.at(0).shader == "matmul_nbits.f16_plain");
}

// Parameters of kernels as constants of their code. That kernels compute the same so is tested by all kernel cases
// (support/kernel_case.cpp).
#include "vulkan/block_constants.hpp"

#include "support/catch.hpp"
#include "vulkan/shader_library.hpp"
#include "vulkan/spirv.hpp"

#include <fmt/format.h>
#include <numeric>
#include <set>

using namespace troupe;
using namespace troupe::vulkan;

namespace {

constexpr uint32_t first_mark = 0x5eed0000, most_words = 128;

/// A block of words that no shader has among its constants.
std::vector<uint32_t> marked_words() {
  std::vector<uint32_t> words(most_words);
  std::iota(words.begin(), words.end(), first_mark);
  return words;
}

struct counted {
  std::set<uint32_t> loaded; // ids that loads give
  std::set<uint32_t> marked; // words of the block that are constants
  std::set<uint32_t> made;   // their ids
};

counted count(std::span<const uint32_t> code) {
  counted found;
  spirv::for_each_instruction(code, [&](spirv::instruction i) {
    REQUIRE(!i.empty());
    if (spirv::opcode(i) == spv::OpLoad)
      found.loaded.insert(i[2]);
    if (spirv::opcode(i) == spv::OpConstant && i[3] - first_mark < most_words) {
      found.marked.insert(i[3] - first_mark);
      found.made.insert(i[2]);
    }
  });
  return found;
}

} // namespace

TEST_CASE("parameters at known places become constants, others do not", "[vulkan]") {
  size_t all = 0;
  for (const embedded_shader& shader : embedded_shaders()) {
    INFO(std::string(shader.name));
    const std::vector<uint32_t> folded = with_block_constants(shader.code, marked_words());
    const counted before = count(shader.code), after = count(folded);
    std::set<uint32_t> gone;
    std::set_difference(before.loaded.begin(), before.loaded.end(), after.loaded.begin(), after.loaded.end(),
                        std::inserter(gone, gone.end()));
    CHECK(before.marked.empty());
    CHECK(std::includes(before.loaded.begin(), before.loaded.end(), after.loaded.begin(), after.loaded.end()));
    // A load is of a number, which is a constant now, or of a vector, which is made of some that have new ids.
    const uint32_t first_new = shader.code[spirv::bound_word];
    CHECK(std::all_of(after.made.begin(), after.made.end(),
                      [&](uint32_t id) { return id >= first_new || gone.contains(id); }));
    CHECK(
        std::all_of(after.made.begin(), after.made.end(), [&](uint32_t id) { return id < folded[spirv::bound_word]; }));
    CHECK(gone.empty() == after.marked.empty());
    all += gone.size();
  }
  CHECK(all > 1000);
}

TEST_CASE("products whose subgroups have many sums read their depth where they run", "[vulkan][pieces]") {
  constexpr uint32_t rows = 0, depth = 2; // product_parameters::m and k
  const auto constants_of = [](const std::string& kernel) {
    return count(with_block_constants(find_shader(kernel), marked_words())).marked;
  };
  for (const std::string_view kernel : {"matmul_cooperative", "conv_cooperative"})
    for (const auto& [tile, reads_depth] : {std::pair{"f16_1x2", false},
                                            {"f16_2x2", false},
                                            {"f16_4x2", true},
                                            {"f16_4x4", true},
                                            {"f32_1x2", false},
                                            {"f32_2x2", true}}) {
      CAPTURE(kernel, tile);
      const std::set<uint32_t> constants = constants_of(fmt::format("{}.{}", kernel, tile));
      CHECK(constants.contains(rows));
      CHECK(constants.contains(depth) == !reads_depth);
    }
  CHECK(constants_of("quantized_matmul_cooperative.i8_2x2").contains(depth));
  CHECK(!constants_of("quantized_matmul_cooperative.i8_4x2").contains(depth));
}

TEST_CASE("a word is where the block has it", "[vulkan]") {
  const std::vector<uint32_t> words = marked_words();
  // Its block is one number, how many elements there are.
  const counted cast = count(with_block_constants(find_shader("fill.w32"), words));
  CHECK(cast.marked.contains(0));
  // Words that a block does not have are still loaded.
  CHECK(with_block_constants(find_shader("fill.w32"), {}).size() == find_shader("fill.w32").size());
}

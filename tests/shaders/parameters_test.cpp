// Parameter blocks (shaders/parameters) as C++ and as GPUs lay them out.
#include "launch/parameters.hpp"
#include "support/catch.hpp"
#include "support/spirv.hpp"
#include "vulkan/shader_library.hpp"

using namespace troupe;

TEST_CASE("blocks of shaders have no gaps, as in C++", "[shader]") {
  for (const auto& kernel : vulkan::embedded_shaders()) {
    INFO(kernel.name << ": add the unused members that std140 leaves room for");
    CHECK(test::has_gapless_parameters(kernel.code).value_or(false));
  }
}

TEST_CASE("a block's words are its members in order", "[shader]") {
  shader::pad block{.count = int64_t{1} << 32 | 7, .rank = size_t{2}, .fill_given = true};
  block.axes[0] = {5, -1, 3, 1};
  block.axes[1][2] = 9;
  const std::vector<uint32_t> words = words_of(block);
  REQUIRE(words.size() == 8 + 4 * std::size(block.axes));
  CHECK(std::vector(words.begin(), words.begin() + 16) ==
        std::vector<uint32_t>{7, 2, 0, 1, 0, 0, 0, 0, 5, UINT32_MAX, 3, 1, 0, 0, 9, 0});
  CHECK(words_of(shader::lrn{.beta = 1.f}).at(6) == 0x3f800000);
}

// Columns with packed weights: this processor's fastest functions beside the plain ones.
#include "cpu/packed_column.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

using namespace troupe;

TEST_CASE("columns of packed weights are the plain function's", "[cpu][quantised]") {
  std::minstd_rand random(11);
  std::uniform_int_distribution<int> codes(0, 255);
  std::uniform_real_distribution<float> numbers(-1, 1);
  for (const int64_t bits : {4, 8})
    for (const int64_t block : {16, 32, 128})
      for (const int64_t rows : {1, 2, 3, 4})
        for (const float middle : {0.f, 8.f, 128.f}) {
          INFO(bits << " bits, blocks of " << block << ", " << rows << " rows, less " << middle);
          const int64_t blocks = 3, count = 5, step = blocks * block, y_step = count + 2;
          std::vector<uint8_t> packed(static_cast<size_t>(count * step * bits / 8));
          std::vector<float> scales(static_cast<size_t>(count * blocks)), a(static_cast<size_t>(rows * step));
          for (uint8_t& code : packed)
            code = static_cast<uint8_t>(codes(random));
          for (std::vector<float>* v : {&scales, &a})
            for (float& number : *v)
              number = numbers(random);
          const packed_columns columns{packed.data(), scales.data(), count, blocks, block, middle};
          std::vector<float> want(static_cast<size_t>(rows * y_step), 77), got = want;
          plain_columns_function(bits)(columns, a.data(), step, rows, want.data(), y_step);
          columns_function_for(bits, block)(columns, a.data(), step, rows, got.data(), y_step);
          float worst = 0;
          for (size_t i = 0; i < want.size(); ++i)
            worst = std::max(worst, std::abs(got[i] - want[i]) / (1 + std::abs(want[i])));
          CHECK(worst < 1e-3f);
          CHECK(got[static_cast<size_t>(count)] == 77); // bytes after the columns stay
        }
}

// The arithmetic of troupe.ToFloat16.
#pragma once

#include "troupe/float16.hpp"

#include <cstdint>

namespace troupe {

/// Rounds `n` floats to float16; finite ones beyond its range become its largest.
void to_float16_row(const float* from, float16* to, int64_t n);

} // namespace troupe

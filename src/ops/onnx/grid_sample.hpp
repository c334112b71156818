// What a GridSample asks for.
#pragma once

#include "graph/attributes.hpp"

#include <cstdint>

namespace troupe {

enum class sample_mode : uint8_t { nearest, linear, cubic };
enum class sample_padding : uint8_t {
  zeros,
  border,
  reflection,
  border_taps // each element that a place reads, not the place: what com.microsoft's bicubic sampling does
};
/// The attribute's word for `border_taps`, which is no model's.
inline constexpr const char* border_of_taps = "border of taps";

struct sampling {
  sample_mode mode;
  sample_padding padding;
  bool align_corners;
};

/// Reads the attributes; throws `errc::invalid_model` for others than the operator has.
sampling parse_sampling(const attributes& attrs);

} // namespace troupe

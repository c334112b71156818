// What operators that take strings apart share (text.cpp, tokenizer.cpp).
#pragma once

#include "ops/op.hpp"

#include <optional>
#include <string_view>

namespace troupe {

/// The parts of one string, which they point into.
using text_parts = std::vector<std::string_view>;

/// Returns the code point of UTF-8 that begins at `at` and moves on; nullopt, one byte on, where there is none.
std::optional<char32_t> next_code_point(std::string_view text, size_t& at);

/// Output 0 has the dims of input 0 and one more, as long as the most parts of a string.
void infer_parts(infer_context& c);

/// Writes output 0 of such an operator: the parts of each string, and `filler` after them where others have more.
/// Throws `errc::invalid_input` if these are too many.
void give_parts(kernel_context& c, std::span<const text_parts> all, std::string_view filler);

} // namespace troupe

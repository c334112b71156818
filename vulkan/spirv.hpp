// SPIR-V as a list of instructions. Pure.
#pragma once

#include <spirv/unified1/spirv.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe::spirv {

/// Words before the first instruction; which of them is more than all ids.
inline constexpr size_t header_words = 5, bound_word = 3;

using instruction = std::span<const uint32_t>;

inline uint32_t opcode(instruction i) {
  return i[0] & spv::OpCodeMask;
}

/// The first word of an instruction of `words` words.
constexpr uint32_t first_word(spv::Op what, size_t words) {
  return static_cast<uint32_t>(words) << spv::WordCountShift | what;
}

/// Calls `f` with every instruction of a module.
template <class F>
void for_each_instruction(std::span<const uint32_t> code, F&& f) {
  for (size_t at = header_words; at < code.size(); at += code[at] >> spv::WordCountShift)
    f(code.subspan(at, code[at] >> spv::WordCountShift));
}

/// The uniform block of a kernel's parameters: its variable and its struct; 0 if there is none. Another block at the
/// same place, which leaves the first words out, is none.
struct parameter_block {
  uint32_t variable = 0, type = 0;
};
parameter_block parameter_block_of(std::span<const uint32_t> code);

} // namespace troupe::spirv

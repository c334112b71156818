// SPIR-V as a list of instructions, and the numbers of its specification that are used here. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe::spirv {

/// Opcodes.
enum op : uint32_t {
  op_name = 5,
  op_ext_inst = 12,
  op_type_int = 21,
  op_type_float = 22,
  op_type_vector = 23,
  op_type_array = 28,
  op_type_struct = 30,
  op_type_pointer = 32,
  op_constant = 43,
  op_constant_composite = 44,
  op_function = 54,
  op_variable = 59,
  op_load = 61,
  op_access_chain = 65,
  op_decorate = 71,
  op_member_decorate = 72,
  op_add = 129,
  op_subtract = 131,
  op_multiply = 133,
  op_divide = 136,
  op_vector_times_scalar = 142,
};

inline constexpr uint32_t decoration_array_stride = 6, decoration_offset = 35, decoration_no_contraction = 42,
                          storage_uniform = 2;
/// Words before the first instruction; which of them is more than all ids.
inline constexpr size_t header_words = 5, bound_word = 3;

using instruction = std::span<const uint32_t>;

inline uint32_t opcode(instruction i) {
  return i[0] & 0xffffu;
}

/// The first word of an instruction of so many words.
constexpr uint32_t first_word(op what, size_t words) {
  return static_cast<uint32_t>(words) << 16 | what;
}

/// Calls `f` with every instruction of a module.
template <class F>
void for_each_instruction(std::span<const uint32_t> code, F&& f) {
  for (size_t at = header_words; at < code.size(); at += code[at] >> 16)
    f(code.subspan(at, code[at] >> 16));
}

/// The uniform block of a kernel's parameters: its variable and its struct; 0 if there is none. Another block at the
/// same place, which leaves the first words out, is none.
struct parameter_block {
  uint32_t variable = 0, type = 0;
};
parameter_block parameter_block_of(std::span<const uint32_t> code);

} // namespace troupe::spirv

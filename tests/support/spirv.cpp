#include "support/spirv.hpp"

#include "vulkan/spirv.hpp"

#include <spirv/unified1/GLSL.std.450.h>

#include <bit>
#include <optional>
#include <set>
#include <string_view>

namespace troupe::test {
namespace {

using namespace spirv;

bool is_root(instruction i) {
  return opcode(i) == spv::OpExtInst && (i[4] == GLSLstd450Sqrt || i[4] == GLSLstd450InverseSqrt);
}

void append(std::vector<uint32_t>& code, spv::Op what, std::initializer_list<uint32_t> words) {
  code.push_back(first_word(what, words.size() + 1));
  code.insert(code.end(), words);
}

/// The types of a module and their layout in it.
struct type_layouts {
  std::map<uint32_t, instruction> definitions;
  std::map<uint32_t, uint32_t> strides;                      // of arrays
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> offsets; // of members

  /// Bytes of a type; nullopt if there is a gap in it.
  std::optional<uint32_t> bytes(uint32_t type) const {
    const instruction i = definitions.at(type);
    switch (opcode(i)) {
      case spv::OpTypeVector: return *bytes(i[2]) * i[3];
      case spv::OpTypeArray:
        return bytes(i[2]) == strides.at(type) ? std::optional(strides.at(type) * definitions.at(i[3])[3])
                                               : std::nullopt;
      case spv::OpTypeStruct: return struct_bytes(i);
      default: return i[2] / 8;
    }
  }

private:
  std::optional<uint32_t> struct_bytes(instruction i) const {
    uint32_t end = 0;
    for (uint32_t member = 0; member + 2 < i.size(); ++member) {
      const auto size = bytes(i[member + 2]);
      if (!size || offsets.at({i[1], member}) != end)
        return std::nullopt;
      end += *size;
    }
    return end;
  }
};

} // namespace

std::optional<bool> has_gapless_parameters(std::span<const uint32_t> code) {
  type_layouts layouts;
  for_each_instruction(code, [&](instruction i) {
    const uint32_t what = opcode(i);
    if (what >= spv::OpTypeInt && what <= spv::OpTypePointer)
      layouts.definitions[i[1]] = i;
    else if (what == spv::OpConstant)
      layouts.definitions[i[2]] = i;
    else if (what == spv::OpDecorate && i[2] == spv::DecorationArrayStride)
      layouts.strides[i[1]] = i[3];
    else if (what == spv::OpMemberDecorate && i[3] == spv::DecorationOffset)
      layouts.offsets[{i[1], i[2]}] = i[4];
  });
  const parameter_block block = parameter_block_of(code);
  if (block.variable == 0)
    return std::nullopt;
  return layouts.bytes(block.type).has_value();
}

std::map<std::string, inexact_instructions> inexact_functions(std::span<const uint32_t> code) {
  std::map<uint32_t, std::string> names;
  std::set<uint32_t> apart; // not to be contracted
  std::map<std::string, inexact_instructions> found;
  inexact_instructions* function = nullptr;
  for_each_instruction(code, [&](instruction i) {
    const uint32_t what = opcode(i);
    if (what == spv::OpName) {
      const std::string_view name(reinterpret_cast<const char*>(&i[2]));
      names[i[1]] = name.substr(0, name.find('('));
    } else if (what == spv::OpDecorate && i[2] == spv::DecorationNoContraction) {
      apart.insert(i[1]);
    } else if (what == spv::OpFunction) {
      function = &found[names[i[2]]];
    } else if (what == spv::OpFDiv) {
      ++function->divisions;
    } else if (is_root(i)) {
      ++function->roots;
    } else if ((what == spv::OpFAdd || what == spv::OpFSub || what == spv::OpFMul) && !apart.contains(i[2])) {
      ++function->contractable;
    }
  });
  return found;
}

std::vector<uint32_t> with_poor_division(std::span<const uint32_t> code, float factor) {
  std::vector<uint32_t> made(code.begin(), code.begin() + header_words);
  uint32_t next_id = code[bound_word];
  uint32_t scalar = 0, factor_id = 0; // of float32
  std::set<uint32_t> vectors;
  for_each_instruction(code, [&](instruction i) {
    const size_t at = made.size();
    made.insert(made.end(), i.begin(), i.end());
    const uint32_t what = opcode(i);
    if (what == spv::OpTypeFloat && i[2] == 32) {
      scalar = i[1];
      factor_id = next_id++;
      append(made, spv::OpConstant, {scalar, factor_id, std::bit_cast<uint32_t>(factor)});
    } else if (what == spv::OpTypeVector && i[2] == scalar) {
      vectors.insert(i[1]);
    } else if ((what == spv::OpFDiv || is_root(i)) && (i[1] == scalar || vectors.contains(i[1]))) {
      made[at + 2] = next_id++;
      append(made, i[1] == scalar ? spv::OpFMul : spv::OpVectorTimesScalar, {i[1], i[2], made[at + 2], factor_id});
    }
  });
  made[bound_word] = next_id;
  return made;
}

} // namespace troupe::test

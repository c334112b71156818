#include "vulkan/block_constants.hpp"

#include "vulkan/spirv.hpp"

#include <optional>
#include <unordered_map>

namespace troupe::vulkan {
namespace {

using namespace spirv;

/// What a module says of its types, and where the block is.
struct module_facts {
  std::unordered_map<uint32_t, instruction> types; // by id
  std::unordered_map<uint32_t, uint32_t> integers; // values of constants
  std::unordered_map<uint32_t, uint32_t> strides;  // of arrays
  std::unordered_map<uint64_t, uint32_t> offsets;  // by struct and member
  const parameter_block block;

  static uint64_t member(uint32_t type, uint32_t index) { return uint64_t{type} << 32 | index; }

  explicit module_facts(std::span<const uint32_t> code) : block(parameter_block_of(code)) {
    for_each_instruction(code, [&](instruction i) {
      switch (opcode(i)) {
        case spv::OpTypeInt:
        case spv::OpTypeFloat:
        case spv::OpTypeVector:
        case spv::OpTypeArray:
        case spv::OpTypeStruct:
        case spv::OpTypePointer: types[i[1]] = i; break;
        case spv::OpConstant:
          if (i.size() == 4)
            integers[i[2]] = i[3];
          break;
        case spv::OpDecorate:
          if (i[2] == spv::DecorationArrayStride)
            strides[i[1]] = i[3];
          break;
        case spv::OpMemberDecorate:
          if (i[3] == spv::DecorationOffset)
            offsets[member(i[1], i[2])] = i[4];
          break;
        default: break;
      }
    });
  }

  /// Bytes from the begin of the block to what an access chain names; nullopt if it is not a part of it, or computed.
  std::optional<uint32_t> offset_of(instruction chain) const {
    if (chain[3] != block.variable)
      return std::nullopt;
    uint32_t type = block.type, offset = 0;
    for (const uint32_t index : chain.subspan(4)) {
      const auto known = integers.find(index);
      const auto found = types.find(type);
      if (known == integers.end() || found == types.end())
        return std::nullopt;
      const instruction t = found->second;
      if (opcode(t) == spv::OpTypeStruct) {
        offset += offsets.at(member(type, known->second));
        type = t[2 + known->second];
      } else if (opcode(t) == spv::OpTypeArray) {
        offset += strides.at(type) * known->second;
        type = t[2];
      } else if (opcode(t) == spv::OpTypeVector) {
        offset += 4 * known->second;
        type = t[2];
      } else {
        return std::nullopt;
      }
    }
    return offset;
  }
};

bool is_number(instruction type) {
  return (opcode(type) == spv::OpTypeInt || opcode(type) == spv::OpTypeFloat) && type[2] == 32;
}

class rewriter {
public:
  rewriter(std::span<const uint32_t> code, std::span<const uint32_t> words)
      : code_(code), words_(words), facts_(code) {}

  std::vector<uint32_t> run() {
    if (facts_.block.variable == 0)
      return {code_.begin(), code_.end()};
    for_each_instruction(code_, [&](instruction i) {
      if (opcode(i) == spv::OpAccessChain)
        if (const auto offset = facts_.offset_of(i))
          places_[i[2]] = *offset / 4;
    });
    next_id_ = code_[bound_word];
    std::vector<uint32_t> before, functions;
    bool in_functions = false;
    for_each_instruction(code_, [&](instruction i) {
      in_functions |= opcode(i) == spv::OpFunction;
      if (opcode(i) == spv::OpLoad && make_constant(i))
        return;
      std::vector<uint32_t>& to = in_functions ? functions : before;
      to.insert(to.end(), i.begin(), i.end());
    });
    std::vector<uint32_t> out(code_.begin(), code_.begin() + header_words);
    out[bound_word] = next_id_;
    out.insert(out.end(), before.begin(), before.end());
    out.insert(out.end(), constants_.begin(), constants_.end());
    out.insert(out.end(), functions.begin(), functions.end());
    return out;
  }

private:
  /// Makes a constant of what a load loads; returns false if that is not known, or no number or vector of numbers.
  bool make_constant(instruction load) {
    const auto place = places_.find(load[3]);
    const auto type = facts_.types.find(load[1]);
    if (place == places_.end() || type == facts_.types.end())
      return false;
    const instruction t = type->second;
    if (is_number(t) && place->second < words_.size()) {
      append({first_word(spv::OpConstant, 4), load[1], load[2], words_[place->second]});
      return true;
    }
    if (opcode(t) != spv::OpTypeVector || !is_number(facts_.types.at(t[2])) || place->second + t[3] > words_.size())
      return false;
    std::vector<uint32_t> composite{first_word(spv::OpConstantComposite, 3 + t[3]), load[1], load[2]};
    for (uint32_t i = 0; i < t[3]; ++i) {
      append({first_word(spv::OpConstant, 4), t[2], next_id_, words_[place->second + i]});
      composite.push_back(next_id_++);
    }
    constants_.insert(constants_.end(), composite.begin(), composite.end());
    return true;
  }

  void append(std::initializer_list<uint32_t> words) { constants_.insert(constants_.end(), words); }

  const std::span<const uint32_t> code_, words_;
  const module_facts facts_;
  std::unordered_map<uint32_t, uint32_t> places_; // words from the begin of the block, by access chain
  std::vector<uint32_t> constants_;
  uint32_t next_id_ = 0;
};

} // namespace

std::vector<uint32_t> with_block_constants(std::span<const uint32_t> code, std::span<const uint32_t> words) {
  return rewriter(code, words).run();
}

} // namespace troupe::vulkan

#include "vulkan/spirv.hpp"

#include <unordered_map>
#include <unordered_set>

namespace troupe::spirv {

parameter_block parameter_block_of(std::span<const uint32_t> code) {
  parameter_block found;
  std::unordered_set<uint32_t> whole;             // structs whose first member is at the begin
  std::unordered_map<uint32_t, uint32_t> targets; // of pointers
  for_each_instruction(code, [&](instruction i) {
    switch (opcode(i)) {
      case spv::OpMemberDecorate:
        if (i[2] == 0 && i[3] == spv::DecorationOffset && i[4] == 0)
          whole.insert(i[1]);
        break;
      case spv::OpTypePointer: targets[i[1]] = i[3]; break;
      case spv::OpVariable:
        if (i[3] == spv::StorageClassUniform && whole.contains(targets.at(i[1])))
          found = {i[2], targets.at(i[1])};
        break;
      default: break;
    }
  });
  return found;
}

} // namespace troupe::spirv

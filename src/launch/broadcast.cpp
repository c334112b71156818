#include "launch/broadcast.hpp"

#include "launch/parameters.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr int64_t group_size = 256;

/// Returns the parameters as the words of a block of `shaders/parameters`.
template <class Block>
std::vector<uint32_t> parameters(const operand_walk& walk, int64_t count, const std::vector<float>& numbers) {
  Block block{.count = count, .rank = walk.dims.size()};
  for (size_t axis = 0; axis < walk.dims.size(); ++axis) {
    block.dims[axis / 4][axis % 4] = walk.dims[axis];
    for (size_t k = 0; k < walk.strides.size(); ++k)
      block.strides[2 * k + axis / 4][axis % 4] = walk.strides[k][axis];
  }
  for (size_t i = 0; i < numbers.size(); ++i)
    block.numbers[i / 4][i % 4] = numbers[i];
  return words_of(block);
}

constexpr size_t few_operands = 3;

} // namespace

std::vector<uint32_t> broadcast_parameters(const operand_walk& walk, size_t operands, int64_t count,
                                           const std::vector<float>& numbers) {
  return operands > few_operands ? parameters<shader::broadcast_chain>(walk, count, numbers)
                                 : parameters<shader::broadcast>(walk, count, numbers);
}

uint32_t walk_modes(const operand_walk& walk) {
  uint32_t modes = 0;
  for (size_t i = 0; i < walk.strides.size(); ++i)
    modes |= static_cast<uint32_t>(mode_of(walk, i)) << (2 * i);
  return modes;
}

size_t present_inputs(const gpu_call& call) {
  return static_cast<size_t>(
      std::count_if(call.inputs.begin(), call.inputs.end(), [](const operand& o) { return o.present(); }));
}

launch_lists launch_broadcast(const gpu_call& call, const std::string& shader, size_t operands,
                              const std::vector<uint32_t>& constants, const std::vector<float>& numbers,
                              int64_t elements_each) {
  launch_builder b(call, shader.substr(0, shader.find('.')));
  std::vector<operand> given;
  std::vector<launch_binding> bindings;
  for (size_t i = 0; i < call.inputs.size(); ++i)
    if (call.has_input(i)) {
      given.push_back(call.inputs[i]);
      bindings.push_back(b.in(i));
    }
  if (given.empty() || given.size() > operands)
    return {};
  const operand_walk walk = walk_of(call.outputs[0], given);
  if (walk.dims.size() > max_walk_rank)
    return {};
  bindings.resize(operands, bindings[0]);
  bindings.push_back(b.out(0));
  const int64_t count = call.outputs[0].size();
  launch& l = b.add(shader, flat_groups(count, group_size * elements_each, call.gpu), std::move(bindings));
  l.constants = {walk_modes(walk)};
  l.constants.insert(l.constants.end(), constants.begin(), constants.end());
  l.params = broadcast_parameters(walk, operands, count, numbers);
  return single_list(b);
}

} // namespace troupe

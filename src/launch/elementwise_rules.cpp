// Which step, or which integer function, elementwise operators with attributes or any number of operands are.
#include "launch/integer.hpp"
#include "launch/launches.hpp"
#include "ops/activation.hpp"
#include "tensor/convert.hpp"

#include <limits>

namespace troupe {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// Steps that combine all inputs from the left with `code`.
std::vector<gpu_elementwise_step> combine_steps(size_t inputs, elementwise_code code) {
  std::vector<gpu_elementwise_step> steps;
  if (inputs == 1)
    steps.push_back({static_cast<uint32_t>(gpu_step::same)});
  for (size_t i = 1; i < inputs; ++i)
    steps.push_back(
        {static_cast<uint32_t>(code), static_cast<int32_t>(i == 1 ? 0 : inputs + i - 2), static_cast<int32_t>(i)});
  return steps;
}

template <elementwise_code Code>
launch_lists combine_launches(const gpu_call& call) {
  return launch_chain(call, combine_steps(call.inputs.size(), Code), {});
}

/// Integers: up to three operands.
template <elementwise_code Code, integer_code Integer>
launch_lists limit_launches(const gpu_call& call) {
  if (types::floats & set_of(call.outputs.at(0).type))
    return combine_launches<Code>(call);
  return launch_integers(call, call.inputs.size() == 1 ? integer_code::same : Integer);
}

} // namespace

launch_lists leaky_relu_launches(const gpu_call& call) {
  return launch_with_attributes<elementwise_code::leaky_relu>(call, {{"alpha", 0.01f}});
}

launch_lists elu_launches(const gpu_call& call) {
  return launch_with_attributes<elementwise_code::elu>(call, {{"alpha", 1.f}});
}

launch_lists selu_launches(const gpu_call& call) {
  return launch_with_attributes<gpu_step::selu>(call, {{"alpha", selu_alpha}, {"gamma", selu_gamma}});
}

launch_lists selu_1_launches(const gpu_call& call) {
  return launch_with_attributes<gpu_step::selu>(call, {{"alpha", selu_1_alpha}, {"gamma", selu_1_gamma}});
}

launch_lists celu_launches(const gpu_call& call) {
  return launch_with_attributes<gpu_step::celu>(call, {{"alpha", 1.f}});
}

launch_lists thresholded_relu_launches(const gpu_call& call) {
  return launch_with_attributes<gpu_step::thresholded_relu>(call, {{"alpha", 1.f}});
}

launch_lists hard_sigmoid_launches(const gpu_call& call) {
  return launch_with_attributes<elementwise_code::hard_sigmoid>(call, {{"alpha", 0.2f}, {"beta", 0.5f}});
}

launch_lists swish_launches(const gpu_call& call) {
  return launch_with_attributes<elementwise_code::swish>(call, {{"alpha", 1.f}});
}

launch_lists shrink_launches(const gpu_call& call) {
  return launch_with_attributes<gpu_step::shrink>(call, {{"lambd", 0.5f}, {"bias", 0.f}});
}

launch_lists gelu_launches(const gpu_call& call) {
  const std::string approximate = call.attrs.text("approximate", "none");
  if (approximate == "tanh")
    return launch_step<elementwise_code::gelu_tanh>(call);
  return approximate == "none" ? launch_step<elementwise_code::gelu>(call) : launch_lists{};
}

launch_lists clip_1_launches(const gpu_call& call) {
  return launch_with_attributes<elementwise_code::clip>(call, {{"min", -infinity}, {"max", infinity}});
}

/// Bounds are inputs of one element; floats have infinities in place of those that are absent.
launch_lists clip_launches(const gpu_call& call) {
  const bool low = call.has_input(1), high = call.has_input(2);
  if ((low && call.inputs[1].size() != 1) || (high && call.inputs[2].size() != 1))
    return {};
  if (!(types::floats & set_of(call.outputs.at(0).type)))
    return launch_integers(call, low && high ? integer_code::clip
                                 : low       ? integer_code::raise
                                 : high      ? integer_code::lower
                                             : integer_code::same);
  const gpu_elementwise_step step{static_cast<uint32_t>(elementwise_code::clip), 0, low ? 1 : -1,
                                  high ? (low ? 2 : 1) : -2};
  return launch_chain(call, {step}, {-infinity, infinity});
}

launch_lists modulo_launches(const gpu_call& call) {
  return call.attrs.integer("fmod", 0) != 0
             ? launch_numeric<gpu_step::truncated_modulo, integer_code::truncated_modulo>(call)
             : launch_numeric<gpu_step::modulo, integer_code::modulo>(call);
}

launch_lists bit_shift_launches(const gpu_call& call) {
  const std::string direction = call.attrs.text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    return {};
  return launch_integers(call, direction == "LEFT" ? integer_code::shift_left : integer_code::shift_right);
}

/// A lone constant exponent may have another type than the base.
launch_lists power_launches(const gpu_call& call) {
  const operand& exponent = call.inputs.at(1);
  if (exponent.type == call.inputs[0].type || !exponent.constant || !exponent.constant->leaf.defined() ||
      exponent.size() != 1)
    return launch_step<elementwise_code::power>(call);
  const gpu_call base{call.attrs, {call.inputs[0]}, call.outputs, call.gpu};
  return launch_with_constants(base, elementwise_code::power,
                               {static_cast<float>(to_double(exponent.constant->leaf.view()).at(0))});
}

launch_lists sum_launches(const gpu_call& call) {
  return combine_launches<elementwise_code::add>(call);
}

launch_lists mean_launches(const gpu_call& call) {
  const size_t inputs = call.inputs.size();
  auto steps = combine_steps(inputs, elementwise_code::add);
  const auto sum = static_cast<int32_t>(inputs + steps.size() - 1);
  steps.push_back({static_cast<uint32_t>(elementwise_code::divide), sum, -1});
  return launch_chain(call, steps, {static_cast<float>(inputs)});
}

launch_lists max_launches(const gpu_call& call) {
  return limit_launches<elementwise_code::maximum, integer_code::maximum>(call);
}

launch_lists min_launches(const gpu_call& call) {
  return limit_launches<elementwise_code::minimum, integer_code::minimum>(call);
}

} // namespace troupe

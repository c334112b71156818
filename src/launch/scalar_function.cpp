// How GPUs run scalar functions, and elementwise operators that are several of them or depend on more than attributes.
#include "launch/elementwise.hpp"
#include "launch/launch_rules.hpp"
#include "launch/movement.hpp"
#include "tensor/convert.hpp"

namespace troupe {
namespace {

/// Steps that combine all inputs from the left.
std::vector<elementwise_step> combine_steps(size_t inputs, scalar_code code) {
  std::vector<elementwise_step> steps;
  if (inputs == 1)
    steps.push_back({scalar_code::same});
  for (size_t i = 1; i < inputs; ++i)
    steps.push_back({code, static_cast<int32_t>(i == 1 ? 0 : inputs + i - 2), static_cast<int32_t>(i)});
  return steps;
}

/// Launches of a function of two operands one of which is a constant of one element: a number of the program, which no
/// invocation loads. Empty if neither is.
launch_lists launch_with_number(const gpu_call& call, scalar_code code) {
  for (const size_t i : {1, 0}) {
    const operand& o = call.inputs[i];
    const tensor number = o.size() == 1 ? known_elements(o) : tensor{};
    if (!number.defined())
      continue;
    gpu_call other{call.attrs, call.inputs, call.outputs, call.gpu};
    other.inputs[i] = {};
    return launch_chain(
        other, {{{code, i == 1 ? 0 : -1, i == 1 ? -1 : 0}}, {static_cast<float>(to_double(number.view()).at(0))}});
  }
  return {};
}

/// Launches of the function of two operands on the first two inputs, on its result and the third …
launch_lists combine_launches(const gpu_call& call, scalar_code code) {
  const size_t inputs = call.inputs.size();
  if (types::integers & set_of(call.outputs.at(0).type)) // up to three operands
    return launch_integers(call, inputs == 1 ? scalar_code::same : code);
  if (call.outputs[0].type == dtype::float64)
    return inputs <= 2 || code == scalar_code::minimum || code == scalar_code::maximum
               ? launch_doubles(call, inputs == 1 ? scalar_code::same : code)
               : launch_lists{};
  if (inputs == 2)
    if (launch_lists lists = launch_with_number(call, code); !lists.empty())
      return lists;
  return launch_chain(call, {combine_steps(inputs, code), {}});
}

launch_lists scalar_launches(const gpu_call& call, const scalar_function& row) {
  const auto f = scalar_call_of(row, call.attrs);
  if (!f || !(row.types & set_of(call.outputs.at(0).type)))
    return {};
  if (f->values == 2)
    return combine_launches(call, f->code);
  if (types::integers & set_of(call.outputs.at(0).type))
    return f->numbers.empty() ? launch_integers(call, f->code) : launch_lists{};
  if (call.outputs[0].type == dtype::float64)
    return launch_doubles(call, f->code, f->numbers);
  return launch_chain(call, single_step(*f));
}

template <size_t Row>
launch_lists scalar_rule(const gpu_call& call) {
  return scalar_launches(call, scalar_functions[Row]);
}

template <size_t... Row>
std::vector<implementation<launch_rule>> rules_of(std::index_sequence<Row...>) {
  std::vector<implementation<launch_rule>> rules;
  const auto add = [&](const scalar_function& f, launch_rule rule) {
    if (f.since > 0)
      rules.push_back({f.domain, f.name, rule, f.since});
  };
  (add(scalar_functions[Row], scalar_rule<Row>), ...);
  return rules;
}

/// From opset 11 on bounds are inputs of one element; the type's lowest and largest number stand for those that are
/// absent.
launch_lists clip_launches(const gpu_call& call) {
  const bool low = call.has_input(1), high = call.has_input(2);
  if ((low && call.inputs[1].size() != 1) || (high && call.inputs[2].size() != 1))
    return {};
  if (types::integers & set_of(call.outputs.at(0).type))
    return launch_integers(call, low && high ? scalar_code::clip
                                 : low       ? scalar_code::maximum
                                 : high      ? scalar_code::minimum
                                             : scalar_code::same);
  if (call.outputs[0].type == dtype::float64) {
    if (high && !low) // the second operand is always the lower bound
      return {};
    constexpr float unbounded =
        std::numeric_limits<float>::quiet_NaN(); // a float does not hold a double's largest number
    return launch_doubles(call, scalar_code::clip, std::vector<float>(low && high ? 0 : low ? 1 : 2, unbounded));
  }
  const auto largest = static_cast<float>(largest_number(call.outputs[0].type));
  const elementwise_step step{scalar_code::clip, 0, low ? 1 : -1, high ? (low ? 2 : 1) : -2};
  return launch_chain(call, {{step}, {-largest, largest}});
}

launch_lists bit_shift_launches(const gpu_call& call) {
  const std::string direction = call.attrs.text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    return {};
  return launch_integers(call, direction == "LEFT" ? scalar_code::shift_left : scalar_code::shift_right);
}

/// Until opset 6 a slope of one dim runs along the channels.
launch_lists old_prelu_launches(const gpu_call& call) {
  const size_t rank = call.inputs.at(0).dims.size();
  gpu_call aligned{call.attrs, call.inputs, call.outputs, call.gpu};
  shape& slope = aligned.inputs.at(1).dims;
  if (slope.size() == 1 && rank >= 2)
    slope.resize(rank - 1, 1);
  return combine_launches(aligned, scalar_code::leaky_relu);
}

/// Integers to the power of their own type; of floats a lone constant exponent may have another type than the base.
launch_lists power_launches(const gpu_call& call) {
  const operand& exponent = call.inputs.at(1);
  if (exponent.type == call.inputs[0].type && (types::integers & set_of(exponent.type)))
    return launch_integers(call, scalar_code::pow);
  if (exponent.type == call.inputs[0].type || !exponent.constant || !exponent.constant->leaf.defined())
    return {};
  return launch_with_number(call, scalar_code::pow);
}

launch_lists mean_launches(const gpu_call& call) {
  const size_t inputs = call.inputs.size();
  auto steps = combine_steps(inputs, scalar_code::add);
  const auto sum = static_cast<int32_t>(inputs + steps.size() - 1);
  steps.push_back({scalar_code::divide, sum, -1});
  return launch_chain(call, {steps, {static_cast<float>(inputs)}});
}

} // namespace

std::vector<implementation<launch_rule>> scalar_rules() {
  return rules_of(std::make_index_sequence<scalar_functions.size()>());
}

extern constinit const launch_rows scalar_function_rules = {
    {"", "BitShift", bit_shift_launches}, {"", "Clip", clip_launches, 11}, {"", "Mean", mean_launches},
    {"", "PRelu", old_prelu_launches},    {"", "Pow", power_launches, 7},
};

} // namespace troupe

// Elementwise chains, produced by fusion: a program of up to 16 steps (ops/composed/fused_elementwise.hpp) at every
// output position.
//
// The kernel runs the program a block of elements at a time, a loop a step. Operands are of one float type;
// intermediates are float (double for double). Every input broadcasts to the output.
#include "ops/composed/fused_elementwise.hpp"

#include "base/parallel.hpp"
#include "ops/families.hpp"
#include "ops/infer.hpp"
#include "ops/onnx/elementwise.hpp"
#include "ops/operand_walk.hpp"
#include "ops/scalar_formulas.hpp"

namespace troupe {
namespace {

constexpr int64_t block = 512;
constexpr int64_t grain = 16 * 1024;

operand operand_of(const const_view& v) {
  return {.type = v.type, .dims = shape(v.dims.begin(), v.dims.end())};
}

/// Elements [begin, end) of the output; `inputs` are of type T and walked as `walk` says.
template <class T>
void run_chain(const elementwise_program& program, const operand_walk& walk, const kernel_context& c, int64_t begin,
               int64_t end) {
  using C = compute_type<T>;
  const size_t inputs = c.input_count(), steps = program.steps.size(), constants = program.constants.size();
  std::vector<C> buffers((inputs + steps + constants) * block);
  // A block each for the inputs, the results and the constants.
  const auto at = [&](int64_t operand) {
    const int64_t slot = operand >= 0 ? operand : static_cast<int64_t>(inputs + steps) - 1 - operand;
    return buffers.data() + slot * block;
  };
  for (size_t k = 0; k < constants; ++k)
    std::fill_n(at(-1 - static_cast<int64_t>(k)), block, static_cast<C>(program.constants[k]));
  for (; begin < end; begin += block) {
    const int64_t n = std::min(block, end - begin);
    auto result = static_cast<int64_t>(inputs);
    for (size_t i = 0; i < inputs; ++i)
      gather(walk, i, c.input(i).as<T>(), begin, n, at(static_cast<int64_t>(i)));
    for (const elementwise_step& s : program.steps)
      with_formula<exact_math, &takes<T>>(s.code,
                                          [x = at(s.a), y = at(s.b), z = at(s.c), to = at(result++), n](auto formula) {
                                            for (int64_t i = 0; i < n; ++i)
                                              to[i] = formula(x[i], y[i], z[i]);
                                          });
    std::transform(at(result - 1), at(result - 1) + n, c.output(0).as<T>() + begin,
                   [](C v) { return static_cast<T>(v); });
  }
}

void reference(kernel_context& c) {
  const elementwise_program program = parse_elementwise(c.attrs(), c.input_count());
  const mutable_view& y = c.output(0);
  std::vector<operand> inputs;
  for (size_t i = 0; i < c.input_count(); ++i)
    inputs.push_back(operand_of(c.input(i)));
  const operand_walk walk = walk_of({.type = y.type, .dims = shape(y.dims.begin(), y.dims.end())}, inputs);
  visit_float(y.type, [&]<class T>(type_tag<T>) {
    parallel_for(y.size(), grain, [&](int64_t begin, int64_t end) { run_chain<T>(program, walk, c, begin, end); });
  });
}

void infer(infer_context& c) {
  parse_elementwise(c.attrs(), c.input_count());
  infer_broadcast(c);
}

op_cost cost(const attributes& attrs, const call_shapes& s) {
  double flops = 0;
  for (const elementwise_step& step : parse_elementwise(attrs, s.inputs.size()).steps)
    flops += function_of(step.code).flops;
  return cost_per_element(s, flops);
}

constexpr auto table = std::to_array<op_def>({
    op_row("Elementwise", 1, infer, reference,
           {.domain = "troupe",
            .inputs = {1, 255},
            .types = types::floats,
            .alias = aliasing::in_place,
            .layouts = layout_support::broadcasting,
            .cost = cost}),
});

} // namespace

elementwise_program single_step(const scalar_call& call) {
  const auto operand = [&](int32_t k) {
    return k < call.values ? k : k < function_of(call.code).operands ? call.values - k - 1 : 0;
  };
  return {{{call.code, operand(0), operand(1), operand(2)}}, call.numbers};
}

elementwise_program parse_elementwise(const attributes& attrs, size_t inputs) {
  elementwise_program program;
  const auto steps = attrs.integers("steps");
  program.constants = attrs.reals("constants", {});
  if (steps.empty() || steps.size() % 4 != 0 || steps.size() > 4 * max_elementwise_steps ||
      program.constants.size() > 64)
    fail(errc::invalid_model, "attribute 'steps' must hold 1 to {} steps of four integers", max_elementwise_steps);
  for (size_t i = 0; i < steps.size(); i += 4) {
    const auto code = static_cast<size_t>(steps[i]);
    if (code >= scalar_code_count || !(scalar_functions[code].types & types::floats))
      fail(errc::invalid_model, "unknown elementwise step {}", steps[i]);
    elementwise_step step{static_cast<scalar_code>(code)};
    for (int k = 0; k < scalar_functions[code].operands; ++k) {
      const int64_t operand = steps[i + 1 + static_cast<size_t>(k)];
      if (operand < -static_cast<int64_t>(program.constants.size()) || operand >= static_cast<int64_t>(inputs + i / 4))
        fail(errc::invalid_model, "elementwise step {} reads operand {}, which does not exist", i / 4, operand);
      (k == 0 ? step.a : k == 1 ? step.b : step.c) = static_cast<int32_t>(operand);
    }
    program.steps.push_back(step);
  }
  return program;
}

attributes to_attributes(const elementwise_program& program) {
  std::vector<int64_t> steps;
  for (const elementwise_step& s : program.steps)
    for (int64_t number : {static_cast<int64_t>(s.code), int64_t{s.a}, int64_t{s.b}, int64_t{s.c}})
      steps.push_back(number);
  attributes attrs;
  attrs.set("steps", std::move(steps));
  if (!program.constants.empty())
    attrs.set("constants", program.constants);
  return attrs;
}

extern constinit const op_table composed_fused_elementwise_ops = table;

} // namespace troupe

// Elementwise chains, produced by fusion: a program of up to 16 steps (ops/fused_elementwise.hpp) at every output position.
//
// The kernel interprets the program a block of elements at a time, so that each step is one tight loop over cached buffers.
// Operands are of one float type; intermediates are float (double for double). Every input broadcasts to the output.
#include "ops/fused_elementwise.hpp"

#include "base/parallel.hpp"
#include "ops/activation.hpp"
#include "ops/families.hpp"
#include "ops/infer.hpp"

#include <cmath>

namespace troupe {
namespace {

constexpr int64_t block = 512;
constexpr int64_t grain = 16 * 1024;

struct code_name {
  std::string_view op_type;
  elementwise_code code;
};

using enum elementwise_code;

constexpr auto names = std::to_array<code_name>({
    {"Add", add},       {"Sub", subtract},          {"Mul", multiply},         {"Div", divide},
    {"Pow", power},     {"Min", minimum},           {"Max", maximum},          {"Neg", negate},
    {"Abs", absolute},  {"Reciprocal", reciprocal}, {"Sqrt", square_root},     {"Exp", exponential},
    {"Log", logarithm}, {"Erf", error_function},    {"Tanh", tangent_h},       {"Sin", sine},
    {"Cos", cosine},    {"Floor", floor},           {"Ceil", ceiling},         {"Softplus", softplus},
    {"Relu", relu},     {"Sigmoid", sigmoid},       {"HardSwish", hard_swish},
});

/// One loop a step: y[i] = f(a[i], b[i]).
template <class C, class F>
void binary(const C* a, const C* b, C* y, int64_t n, F f) {
  for (int64_t i = 0; i < n; ++i)
    y[i] = f(a[i], b[i]);
}

template <class C, class F>
void unary(const C* a, C* y, int64_t n, F f) {
  for (int64_t i = 0; i < n; ++i)
    y[i] = f(a[i]);
}

/// Copies, then applies an activation without parameters or with one that is the same everywhere.
template <class C>
void activate(activation_kind kind, const C* a, C* y, int64_t n, C alpha = 0, C beta = 0) {
  std::copy_n(a, n, y);
  apply(activation{kind, static_cast<float>(alpha), static_cast<float>(beta)}, y, n);
}

template <class C>
void run_binary(elementwise_code code, const C* a, const C* b, C* y, int64_t n) {
  switch (code) {
    case add: return binary(a, b, y, n, [](C p, C q) { return p + q; });
    case subtract: return binary(a, b, y, n, [](C p, C q) { return p - q; });
    case multiply: return binary(a, b, y, n, [](C p, C q) { return p * q; });
    case divide: return binary(a, b, y, n, [](C p, C q) { return p / q; });
    case power: return binary(a, b, y, n, [](C p, C q) { return std::pow(p, q); });
    // A NaN on either side wins.
    case minimum: return binary(a, b, y, n, [](C p, C q) { return p < q || p != p ? p : q; });
    case maximum: return binary(a, b, y, n, [](C p, C q) { return p > q || p != p ? p : q; });
    default: fail(errc::internal, "elementwise: not a binary step");
  }
}

template <class C>
void run_unary(elementwise_code code, const C* a, C* y, int64_t n) {
  switch (code) {
    case negate: return unary(a, y, n, [](C p) { return -p; });
    case absolute: return unary(a, y, n, [](C p) { return std::abs(p); });
    case reciprocal: return unary(a, y, n, [](C p) { return 1 / p; });
    case square_root: return unary(a, y, n, [](C p) { return std::sqrt(p); });
    case exponential: return unary(a, y, n, [](C p) { return std::exp(p); });
    case logarithm: return unary(a, y, n, [](C p) { return std::log(p); });
    case error_function: return unary(a, y, n, [](C p) { return std::erf(p); });
    case tangent_h: return unary(a, y, n, [](C p) { return std::tanh(p); });
    case sine: return unary(a, y, n, [](C p) { return std::sin(p); });
    case cosine: return unary(a, y, n, [](C p) { return std::cos(p); });
    case elementwise_code::floor: return unary(a, y, n, [](C p) { return std::floor(p); });
    case ceiling: return unary(a, y, n, [](C p) { return std::ceil(p); });
    case softplus:
      return unary(a, y, n, [](C p) { return p > 20 ? p + std::log1p(std::exp(-p)) : std::log1p(std::exp(p)); });
    case relu: return activate(activation_kind::relu, a, y, n);
    case sigmoid: return activate(activation_kind::sigmoid, a, y, n);
    case hard_swish: return activate(activation_kind::hard_swish, a, y, n);
    case gelu: return activate(activation_kind::gelu, a, y, n);
    case gelu_tanh: return activate(activation_kind::gelu_tanh, a, y, n);
    default: fail(errc::internal, "elementwise: not a unary step");
  }
}

template <class C>
void run_step(elementwise_code code, const C* a, const C* b, const C* c, C* y, int64_t n) {
  switch (code) {
    case clip:
      for (int64_t i = 0; i < n; ++i) {
        const C low = a[i] < b[i] ? b[i] : a[i];
        y[i] = low > c[i] ? c[i] : low;
      }
      return;
    case hard_sigmoid:
      for (int64_t i = 0; i < n; ++i) {
        const C gate = b[i] * a[i] + c[i], low = gate < 0 ? C(0) : gate;
        y[i] = low > 1 ? C(1) : low;
      }
      return;
    case leaky_relu: return binary(a, b, y, n, [](C p, C q) { return p < 0 ? p * q : p; });
    case swish: return binary(a, b, y, n, [](C p, C q) { return p / (1 + std::exp(-q * p)); });
    case elu: return binary(a, b, y, n, [](C p, C q) { return p < 0 ? q * std::expm1(p) : p; });
    default: operand_count(code) == 2 ? run_binary(code, a, b, y, n) : run_unary(code, a, y, n);
  }
}

/// An input's strides along the collapsed output dims.
struct walk {
  const void* data;
  shape strides;
  bool contiguous, single;
};

/// Output dims and input strides with neighbouring dims joined wherever every input walks them alike.
struct loop_nest {
  shape dims;
  std::vector<walk> inputs;

  explicit loop_nest(const kernel_context& c) {
    const auto out = c.output(0).dims;
    std::vector<shape> strides;
    for (size_t i = 0; i < c.input_count(); ++i)
      strides.push_back(broadcast_strides(c.input(i).dims, out));
    std::vector<shape> joined(strides.size());
    for (size_t axis = 0; axis < out.size(); ++axis) {
      if (out[axis] == 1)
        continue;
      bool joins = !dims.empty();
      for (size_t i = 0; joins && i < strides.size(); ++i)
        joins = joined[i].back() == strides[i][axis] * out[axis];
      joins ? dims.back() *= out[axis] : (dims.push_back(out[axis]), 0);
      for (size_t i = 0; i < strides.size(); ++i)
        joins ? joined[i].back() = strides[i][axis] : (joined[i].push_back(strides[i][axis]), 0);
    }
    for (size_t i = 0; i < strides.size(); ++i) {
      const bool single = c.input(i).size() == 1;
      const bool contiguous = joined[i].empty() || (joined[i].size() == 1 && joined[i][0] == 1);
      inputs.push_back({c.input(i).data, joined[i], contiguous && !single, single});
    }
  }
};

/// Writes elements [begin, begin + n) of a broadcast input to `to`.
template <class T, class C>
void gather(const loop_nest& nest, const walk& in, int64_t begin, int64_t n, C* to) {
  const T* from = static_cast<const T*>(in.data);
  const size_t rank = nest.dims.size();
  const int64_t inner = rank ? nest.dims[rank - 1] : 1, step = rank ? in.strides[rank - 1] : 0;
  for (int64_t done = 0; done < n;) {
    const int64_t position = begin + done, column = position % inner;
    int64_t row = position / inner, offset = column * step;
    for (size_t axis = rank - 1; axis-- > 0; row /= nest.dims[axis])
      offset += row % nest.dims[axis] * in.strides[axis];
    const int64_t run = std::min(inner - column, n - done);
    if (step == 0)
      std::fill_n(to + done, run, static_cast<C>(from[offset]));
    else
      for (int64_t i = 0; i < run; ++i)
        to[done + i] = static_cast<C>(from[offset + i * step]);
    done += run;
  }
}

/// The interpreter of one thread: a buffer for each operand.
template <class T>
class interpreter {
  using C = std::conditional_t<std::is_same_v<T, double>, double, float>;

public:
  interpreter(const elementwise_program& program, const loop_nest& nest)
      : program_(program), nest_(nest), inputs_(nest.inputs.size()),
        slots_(inputs_ + program.steps.size() + program.constants.size()), buffers_(slots_.size() * block) {
    for (size_t i = 0; i < slots_.size(); ++i)
      slots_[i] = buffers_.data() + i * block;
    const size_t constants = inputs_ + program.steps.size();
    for (size_t k = 0; k < program.constants.size(); ++k)
      std::fill_n(own(constants + k), block, static_cast<C>(program.constants[k]));
    for (size_t i = 0; i < inputs_; ++i)
      if (nest.inputs[i].single)
        std::fill_n(own(i), block, static_cast<C>(*static_cast<const T*>(nest.inputs[i].data)));
  }

  void run(T* y, int64_t begin, int64_t n) {
    for (size_t i = 0; i < inputs_; ++i)
      load(i, begin, n);
    for (size_t k = 0; k < program_.steps.size(); ++k) {
      const elementwise_step& s = program_.steps[k];
      C* to = own(inputs_ + k);
      if constexpr (std::is_same_v<T, C>)
        if (k + 1 == program_.steps.size())
          to = y + begin;
      run_step(s.code, at(s.a), at(s.b), at(s.c), to, n);
    }
    if constexpr (!std::is_same_v<T, C>) {
      const C* last = own(inputs_ + program_.steps.size() - 1);
      for (int64_t i = 0; i < n; ++i)
        y[begin + i] = static_cast<T>(last[i]);
    }
  }

private:
  C* own(size_t slot) { return buffers_.data() + slot * block; }
  const C* at(int32_t operand) const {
    return slots_[operand >= 0 ? static_cast<size_t>(operand)
                               : inputs_ + program_.steps.size() + static_cast<size_t>(-1 - operand)];
  }
  void load(size_t i, int64_t begin, int64_t n) {
    const walk& in = nest_.inputs[i];
    if (in.single)
      return;
    if constexpr (std::is_same_v<T, C>)
      if (in.contiguous) {
        slots_[i] = static_cast<const T*>(in.data) + begin;
        return;
      }
    gather<T>(nest_, in, begin, n, own(i));
  }

  const elementwise_program& program_;
  const loop_nest& nest_;
  size_t inputs_;
  std::vector<const C*> slots_;
  std::vector<C> buffers_;
};

void reference(kernel_context& c) {
  const elementwise_program program = parse_elementwise(c.attrs(), c.input_count());
  const loop_nest nest(c);
  visit_float(c.output(0).type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* y = c.output(0).as<T>();
    parallel_for(c.output(0).size(), grain, [&](int64_t begin, int64_t end) {
      interpreter<T> run(program, nest);
      for (int64_t i = begin; i < end; i += block)
        run.run(y, i, std::min(block, end - i));
    });
  });
}

void infer(infer_context& c) {
  parse_elementwise(c.attrs(), c.input_count());
  infer_broadcast(c);
}

/// A flop a step and element, ten for the transcendental ones.
op_cost cost(const attributes& attrs, const call_shapes& s) {
  double flops = 0;
  for (const elementwise_step& step : parse_elementwise(attrs, s.inputs.size()).steps)
    flops += step.code < power || step.code == clip || step.code == relu ? 1 : 10;
  double bytes = static_cast<double>(bytes_of(s.output_types.at(0), volume(s.outputs.at(0))));
  for (size_t i = 0; i < s.inputs.size(); ++i)
    bytes += static_cast<double>(bytes_of(s.input_types[i], volume(s.inputs[i])));
  return {flops * static_cast<double>(volume(s.outputs[0])), bytes};
}

constexpr auto table = std::to_array<op_def>({
    {.domain = "troupe",
     .name = "Elementwise",
     .since = 1,
     .inputs = {1, 255},
     .types = types::floats,
     .alias = aliasing::in_place,
     .layouts = layout_support::broadcasting,
     .infer = infer,
     .reference = reference,
     .cost = cost},
});

} // namespace

int operand_count(elementwise_code code) {
  if (code <= maximum)
    return 2;
  if (code <= gelu_tanh)
    return 1;
  return code <= hard_sigmoid ? 3 : 2;
}

std::optional<elementwise_code> elementwise_code_of(std::string_view op_type) {
  const auto it = std::find_if(names.begin(), names.end(), [&](const code_name& n) { return n.op_type == op_type; });
  return it == names.end() ? std::nullopt : std::optional(it->code);
}

elementwise_program parse_elementwise(const attributes& attrs, size_t inputs) {
  elementwise_program program;
  const auto steps = attrs.integers("steps");
  program.constants = attrs.reals("constants", {});
  if (steps.empty() || steps.size() % 4 != 0 || steps.size() > 4 * max_elementwise_steps ||
      program.constants.size() > 64)
    fail(errc::invalid_model, "attribute 'steps' must hold 1 to {} steps of four integers", max_elementwise_steps);
  for (size_t i = 0; i < steps.size(); i += 4) {
    if (steps[i] < 0 || steps[i] > static_cast<int64_t>(elu))
      fail(errc::invalid_model, "unknown elementwise step {}", steps[i]);
    elementwise_step step{static_cast<elementwise_code>(steps[i])};
    for (int k = 0; k < operand_count(step.code); ++k) {
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

std::span<const op_def> fused_elementwise_ops() {
  return table;
}

} // namespace troupe

// Elementwise operators and fused chains of them on floats: one pass over memory, a block of elements at a time, each step a
// vectorised loop over cached buffers.
//
// Works in memory order, so that every operand may be plain or channels-last; an input that neither lies like the output nor is
// repeated along its innermost axis is gathered element by element.
#include "ops/fused_elementwise.hpp"

#include "base/parallel.hpp"
#include "cpu/fast_functions.hpp"
#include "cpu/kernels.hpp"
#include "cpu/vector_math.hpp"
#include "ops/operand_walk.hpp"

#include <cmath>

namespace troupe {
namespace {

using enum elementwise_code;

/// Elements of a block: a few buffers of it fit the first-level cache.
constexpr int64_t block = 1024;
/// Elements a thread should have.
constexpr int64_t grain_cheap = 64 * 1024, grain_costly = 8 * 1024;

template <class F>
void map1(const float* a, float* y, int64_t n, F f) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i)
    y[i] = f(a[i]);
}

template <class F>
void map2(const float* a, const float* b, float* y, int64_t n, F f) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i)
    y[i] = f(a[i], b[i]);
}

template <class F>
void map3(const float* a, const float* b, const float* c, float* y, int64_t n, F f) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i)
    y[i] = f(a[i], b[i], c[i]);
}

/// What has no vector form yet.
template <class F>
void each(const float* a, float* y, int64_t n, F f) {
  for (int64_t i = 0; i < n; ++i)
    y[i] = f(a[i]);
}

void run_binary(elementwise_code code, const float* a, const float* b, float* y, int64_t n) {
  switch (code) {
    case add: return map2(a, b, y, n, [](float p, float q) { return p + q; });
    case subtract: return map2(a, b, y, n, [](float p, float q) { return p - q; });
    case multiply: return map2(a, b, y, n, [](float p, float q) { return p * q; });
    case divide: return map2(a, b, y, n, [](float p, float q) { return p / q; });
    case minimum: return map2(a, b, y, n, [](float p, float q) { return p < q || p != p ? p : q; });
    case maximum: return map2(a, b, y, n, [](float p, float q) { return p > q || p != p ? p : q; });
    case leaky_relu: return map2(a, b, y, n, [](float p, float q) { return p < 0 ? p * q : p; });
    case swish: return map2(a, b, y, n, [](float p, float q) { return p * fast::sigmoid(q * p); });
    case elu: return map2(a, b, y, n, [](float p, float q) { return p < 0 ? q * (fast::exp(p) - 1.f) : p; });
    case power:
      for (int64_t i = 0; i < n; ++i)
        y[i] = std::pow(a[i], b[i]);
      return;
    default: fail(errc::internal, "elementwise: not a binary step");
  }
}

void run_unary(elementwise_code code, const float* a, float* y, int64_t n) {
  const auto activate = [&](activation_kind kind) { fast::activate({kind, 0, 0}, a, y, n); };
  switch (code) {
    case negate: return map1(a, y, n, [](float p) { return -p; });
    case absolute: return map1(a, y, n, [](float p) { return std::abs(p); });
    case reciprocal: return map1(a, y, n, [](float p) { return 1.f / p; });
    case square_root: return map1(a, y, n, [](float p) { return std::sqrt(p); });
    case exponential: return map1(a, y, n, [](float p) { return fast::exp(p); });
    case error_function: return map1(a, y, n, [](float p) { return fast::erf(p); });
    case tangent_h: return map1(a, y, n, [](float p) { return fast::tanh(p); });
    case logarithm: return each(a, y, n, [](float p) { return std::log(p); });
    case sine: return each(a, y, n, [](float p) { return std::sin(p); });
    case cosine: return each(a, y, n, [](float p) { return std::cos(p); });
    case elementwise_code::floor: return map1(a, y, n, [](float p) { return std::floor(p); });
    case ceiling: return map1(a, y, n, [](float p) { return std::ceil(p); });
    case softplus:
      return each(a, y, n, [](float p) { return p > 20 ? p + std::log1p(std::exp(-p)) : std::log1p(std::exp(p)); });
    case relu: return activate(activation_kind::relu);
    case sigmoid: return activate(activation_kind::sigmoid);
    case hard_swish: return activate(activation_kind::hard_swish);
    case gelu: return activate(activation_kind::gelu);
    case gelu_tanh: return activate(activation_kind::gelu_tanh);
    default: fail(errc::internal, "elementwise: not a unary step");
  }
}

void run_step(elementwise_code code, const float* a, const float* b, const float* c, float* y, int64_t n) {
  if (code == clip)
    return map3(a, b, c, y, n, [](float p, float q, float r) {
      const float low = p < q ? q : p;
      return low > r ? r : low;
    });
  if (code == hard_sigmoid)
    return map3(a, b, c, y, n, [](float p, float q, float r) {
      const float gate = q * p + r, low = gate < 0 ? 0.f : gate;
      return low > 1 ? 1.f : low;
    });
  if (operand_count(code) == 2)
    return run_binary(code, a, b, y, n);
  run_unary(code, a, y, n);
}

bool is_costly(elementwise_code code) {
  return code == power || code == divide ||
         (code >= square_root && code != elementwise_code::floor && code != ceiling && code != relu && code != clip &&
          code != leaky_relu);
}

/// An input's walk along the output's elements in memory order.
struct walk {
  shape strides;
  bool contiguous = false, single = false;
};

class elementwise_kernel final : public kernel {
public:
  elementwise_kernel(const kernel_request& r, elementwise_program program) : program_(std::move(program)) {
    inputs_ = r.inputs.size();
    set_walks(r);
    size_ = volume(dims_);
    for (walk& w : walks_) {
      w.single = std::all_of(w.strides.begin(), w.strides.end(), [](int64_t s) { return s == 0; });
      w.contiguous = !w.single && dims_.size() == 1 && w.strides[0] == 1;
    }
    const size_t fixed = inputs_ + program_.constants.size();
    fills_.resize(fixed * block);
    for (size_t k = 0; k < program_.constants.size(); ++k)
      std::fill_n(fills_.data() + (inputs_ + k) * block, block, program_.constants[k]);
    bool costly = false;
    for (const elementwise_step& s : program_.steps)
      costly |= is_costly(s.code);
    grain_ = costly ? grain_costly : grain_cheap;
  }

  void run(const kernel_run& r) override {
    for (size_t i = 0; i < inputs_; ++i)
      if (walks_[i].single)
        std::fill_n(fills_.data() + i * block, std::min(block, size_), *r.input<float>(i));
    parallel_for(size_, grain_, [&](int64_t begin, int64_t end) { run_range(r, begin, end); });
  }

private:
  /// Output dims and input strides in memory order, the outermost first.
  void set_walks(const kernel_request& r) {
    operand_walk w = walk_of(r.outputs[0], r.inputs);
    dims_.assign(w.dims.rbegin(), w.dims.rend());
    for (const shape& strides : w.strides)
      walks_.push_back({{strides.rbegin(), strides.rend()}});
  }

  void run_range(const kernel_run& r, int64_t begin, int64_t end) const {
    const size_t steps = program_.steps.size();
    thread_local std::vector<float> buffers;
    thread_local std::vector<const float*> slots;
    buffers.resize(std::max(buffers.size(), (inputs_ + steps) * block));
    slots.resize(inputs_ + steps);
    for (int64_t at = begin; at < end; at += block) {
      const int64_t n = std::min(block, end - at);
      for (size_t i = 0; i < inputs_; ++i)
        slots[i] = load(i, r.input<float>(i), at, n, buffers.data() + i * block);
      for (size_t k = 0; k < steps; ++k) {
        float* to = k + 1 == steps ? r.output<float>(0) + at : buffers.data() + (inputs_ + k) * block;
        const elementwise_step& s = program_.steps[k];
        run_step(s.code, operand_at(slots, s.a), operand_at(slots, s.b), operand_at(slots, s.c), to, n);
        slots[inputs_ + k] = to;
      }
    }
  }

  const float* operand_at(const std::vector<const float*>& slots, int32_t code) const {
    return code >= 0 ? slots[static_cast<size_t>(code)]
                     : fills_.data() + (inputs_ + static_cast<size_t>(-1 - code)) * block;
  }

  /// Returns elements [begin, begin + n) of input `i`, in place where they lie together, else copied to `to`.
  const float* load(size_t i, const float* from, int64_t begin, int64_t n, float* to) const {
    const walk& w = walks_[i];
    if (w.single)
      return fills_.data() + i * block;
    if (w.contiguous)
      return from + begin;
    const int64_t inner = dims_.back(), step = w.strides.back();
    for (int64_t done = 0; done < n;) {
      const int64_t position = begin + done, column = position % inner;
      int64_t row = position / inner, offset = column * step;
      for (size_t axis = dims_.size() - 1; axis-- > 0; row /= dims_[axis])
        offset += row % dims_[axis] * w.strides[axis];
      const int64_t count = std::min(inner - column, n - done);
      if (step == 0)
        std::fill_n(to + done, count, from[offset]);
      else if (step == 1)
        std::copy_n(from + offset, count, to + done);
      else
        for (int64_t j = 0; j < count; ++j)
          to[done + j] = from[offset + j * step];
      done += count;
    }
    return to;
  }

  elementwise_program program_;
  size_t inputs_ = 0;
  shape dims_; // in memory order, joined
  std::vector<walk> walks_;
  int64_t size_ = 0, grain_ = grain_cheap;
  std::vector<float> fills_; // a block of each single-element input and constant
};

/// The program of a single operator; nullopt for those that are none.
std::optional<elementwise_program> program_of(const kernel_request& r) {
  const std::string& op = r.call.op_type;
  if (r.call.domain == "troupe")
    return parse_elementwise(r.call.attrs, r.inputs.size());
  if (op == "Gelu")
    return elementwise_program{{{r.call.attrs.text("approximate", "none") == "tanh" ? gelu_tanh : gelu}}, {}};
  if (op == "Swish")
    return elementwise_program{{{swish, 0, -1}}, {r.call.attrs.real("alpha", 1)}};
  if (op == "LeakyRelu")
    return elementwise_program{{{leaky_relu, 0, -1}}, {r.call.attrs.real("alpha", 0.01f)}};
  if (op == "HardSigmoid")
    return elementwise_program{{{hard_sigmoid, 0, -1, -2}},
                               {r.call.attrs.real("alpha", 0.2f), r.call.attrs.real("beta", 0.5f)}};
  const auto code = elementwise_code_of(op);
  if (!code || operand_count(*code) != static_cast<int>(r.inputs.size()))
    return std::nullopt;
  // Operands that the operator does not have stay 0, a slot that is always there.
  const int count = operand_count(*code);
  return elementwise_program{{{*code, 0, count > 1 ? 1 : 0, count > 2 ? 2 : 0}}, {}};
}

} // namespace

kernel_ptr make_elementwise(const kernel_request& r) {
  const bool all_present =
      std::all_of(r.inputs.begin(), r.inputs.end(), [](const operand& in) { return in.present(); });
  if (r.outputs.size() != 1 || !r.all_of_type(dtype::float32) || volume(r.outputs[0].dims) == 0 || !all_present)
    return nullptr;
  auto program = program_of(r);
  if (!program || program->steps.empty())
    return nullptr;
  return std::make_unique<elementwise_kernel>(r, *std::move(program));
}

} // namespace troupe

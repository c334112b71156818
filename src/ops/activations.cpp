// Activation functions: y[i] = f(x[i]) with parameters from attributes (Clip from opset 11: from inputs; PRelu: a
// broadcast slope). NaN goes through every one of them.
#include "ops/activation.hpp"
#include "ops/elementwise.hpp"
#include "ops/families.hpp"
#include "ops/infer.hpp"
#include "tensor/convert.hpp"

namespace troupe {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// max(x, 0): the comparison is false for NaN.
void relu(kernel_context& c) {
  map_numeric(c, [](auto x) {
    if constexpr (std::is_unsigned_v<decltype(x)>)
      return x;
    else
      return x < 0 ? decltype(x)(0) : x;
  });
}

/// σ(x) = 1 / (1 + e^-x)
template <class T>
T logistic(T x) {
  return 1 / (1 + std::exp(-x));
}

/// ln(1 + e^x) without overflow.
template <class T>
T softplus_of(T x) {
  return (x > 0 ? x : T(0)) + (x != x ? x : std::log1p(std::exp(-std::abs(x))));
}

void sigmoid(kernel_context& c) {
  map_float(c, [](auto x) { return logistic(x); });
}

void softplus(kernel_context& c) {
  map_float(c, [](auto x) { return softplus_of(x); });
}

void softsign(kernel_context& c) {
  map_float(c, [](auto x) { return x / (1 + std::abs(x)); });
}

void mish(kernel_context& c) {
  map_float(c, [](auto x) { return x * std::tanh(softplus_of(x)); });
}

void swish(kernel_context& c) {
  const float alpha = c.attrs().real("alpha", 1.f);
  map_float(c, [=](auto x) { return x * logistic(alpha * x); });
}

void leaky_relu(kernel_context& c) {
  const float alpha = c.attrs().real("alpha", 0.01f);
  map_float(c, [=](auto x) { return x < 0 ? alpha * x : x; });
}

void thresholded_relu(kernel_context& c) {
  const float alpha = c.attrs().real("alpha", 1.f);
  map_float(c, [=](auto x) { return x > alpha || x != x ? x : decltype(x)(0); });
}

void elu(kernel_context& c) {
  const float alpha = c.attrs().real("alpha", 1.f);
  map_float(c, [=](auto x) { return x < 0 ? alpha * std::expm1(x) : x; });
}

/// max(0, x) + min(0, α (e^(x/α) - 1))
void celu(kernel_context& c) {
  const float alpha = c.attrs().real("alpha", 1.f);
  map_float(c, [=](auto x) {
    using T = decltype(x);
    const T tail = alpha * std::expm1(x / alpha);
    return (x < 0 ? T(0) : x) + (tail < 0 ? tail : T(0));
  });
}

void selu_with(kernel_context& c, float default_alpha, float default_gamma) {
  const float alpha = c.attrs().real("alpha", default_alpha), gamma = c.attrs().real("gamma", default_gamma);
  map_float(c, [=](auto x) { return gamma * (x > 0 ? x : alpha * std::expm1(x)); });
}

void selu(kernel_context& c) {
  selu_with(c, selu_alpha, selu_gamma);
}

void selu_1(kernel_context& c) {
  selu_with(c, selu_1_alpha, selu_1_gamma);
}

/// Limits to [0, 1].
template <class T>
T unit(T x) {
  return x < 0 ? T(0) : x > 1 ? T(1) : x;
}

void hard_sigmoid(kernel_context& c) {
  const float alpha = c.attrs().real("alpha", 0.2f), beta = c.attrs().real("beta", 0.5f);
  map_float(c, [=](auto x) { return unit(alpha * x + beta); });
}

void hard_swish(kernel_context& c) {
  map_float(c, [](auto x) { return x * unit(x / 6 + decltype(x)(0.5)); });
}

/// x Φ(x), Φ by erf or by tanh(√(2/π) (x + 0.044715 x³))
void gelu(kernel_context& c) {
  const std::string approximate = c.attrs().text("approximate", "none");
  if (approximate == "none")
    return map_float(c, [](auto x) {
      using T = decltype(x);
      return T(0.5) * x * (1 + std::erf(x * T(0.70710678118654752440)));
    });
  if (approximate != "tanh")
    fail(errc::invalid_model, "attribute 'approximate' is '{}', not 'none' or 'tanh'", approximate);
  map_float(c, [](auto x) {
    using T = decltype(x);
    return T(0.5) * x * (1 + std::tanh(T(0.79788456080286535588) * (x + T(0.044715) * x * x * x)));
  });
}

/// x + bias below -λ, x - bias above λ, 0 between; integers are computed in float (double where 32 bits and more).
void shrink(kernel_context& c) {
  const float lambda = c.attrs().real("lambd", 0.5f), bias = c.attrs().real("bias", 0.f);
  map_numeric(c, [=](auto x) {
    using T = decltype(x);
    using work = std::conditional_t<std::is_same_v<T, float> || (sizeof(T) < 4), float, double>;
    const work v = static_cast<work>(x);
    const work y = v < -lambda ? v + bias : v > lambda ? v - bias : v != v ? v : work(0);
    if constexpr (std::is_integral_v<T>)
      return to_integer<T>(y);
    else
      return y;
  });
}

void infer_prelu(infer_context& c) {
  c.set_output(0, common_type(c), c.dims(0));
}

void prelu_with(kernel_context& c, const const_view& slope) {
  visit_numeric(c.input(0).type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    zip<T, T, T>(c.input(0), slope, c.output(0), [](auto x, auto s) {
      using C = decltype(x);
      if constexpr (std::is_unsigned_v<C>)
        return x;
      else if constexpr (std::is_integral_v<C>)
        return x < 0 ? static_cast<C>(static_cast<wrapping<C>>(x) * static_cast<wrapping<C>>(s)) : x;
      else
        return x < 0 ? s * x : x;
    });
  });
}

void prelu(kernel_context& c) {
  prelu_with(c, c.input(1));
}

/// Until opset 6 a slope of one dim runs along the channels, axis 1.
void prelu_1(kernel_context& c) {
  const const_view& slope = c.input(1);
  const size_t rank = c.input(0).dims.size();
  if (slope.dims.size() != 1 || rank < 2)
    return prelu_with(c, slope);
  shape dims(rank, 1);
  dims[1] = slope.dims[0];
  prelu_with(c, {slope.type, dims, slope.data});
}

template <class T>
void clip_to(kernel_context& c, T low, T high) {
  using C = compute_type<T>;
  const C lo = low, hi = high;
  // The order of the two comparisons gives `high` everywhere if low > high, as NumPy's clip does.
  map_elements(c.input(0).as<T>(), c.output(0).as<T>(), c.output(0).size(), [=](C x) {
    const C raised = x < lo ? lo : x;
    return raised > hi ? hi : raised;
  });
}

template <class T>
T lowest_of() {
  if constexpr (std::is_integral_v<T>)
    return std::numeric_limits<T>::min();
  else
    return T(-std::numeric_limits<compute_type<T>>::infinity());
}

template <class T>
T highest_of() {
  if constexpr (std::is_integral_v<T>)
    return std::numeric_limits<T>::max();
  else
    return T(std::numeric_limits<compute_type<T>>::infinity());
}

void clip(kernel_context& c) {
  visit_numeric(c.input(0).type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    clip_to<T>(c, single_element<T>(c, 1, lowest_of<T>()), single_element<T>(c, 2, highest_of<T>()));
  });
}

/// Until opset 10 the bounds are attributes.
void clip_1(kernel_context& c) {
  const float low = c.attrs().real("min", -infinity), high = c.attrs().real("max", infinity);
  visit_float(c.input(0).type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    clip_to<T>(c, T(low), T(high));
  });
}

constexpr op_def activation_row(std::string_view name, int64_t since, void (*reference)(kernel_context&),
                                dtype_set element_types = types::floats) {
  return {.name = name,
          .since = since,
          .types = element_types,
          .alias = aliasing::in_place,
          .layouts = layout_support::agnostic,
          .infer = infer_same,
          .reference = reference};
}

/// A row whose function takes many flops.
constexpr op_def costly_activation(std::string_view name, int64_t since, void (*reference)(kernel_context&)) {
  op_def def = activation_row(name, since, reference);
  def.cost = transcendental_cost;
  return def;
}

constexpr op_def prelu_row(int64_t since, void (*reference)(kernel_context&)) {
  op_def def = activation_row("PRelu", since, reference, types::numeric);
  def.inputs = {2, 2};
  def.infer = infer_prelu;
  if (since < 7) { // a slope of one dim is neither the output's dims nor a single element
    def.layouts = layout_support::plain;
  }
  return def;
}

constexpr op_def clip_row() {
  op_def def = activation_row("Clip", 11, clip, types::numeric);
  def.inputs.max = 3;
  return def;
}

constexpr auto activation_rows = std::to_array<op_def>({
    activation_row("Relu", 1, relu, types::numeric),
    costly_activation("Sigmoid", 1, sigmoid),
    activation_row("LeakyRelu", 1, leaky_relu),
    costly_activation("Elu", 1, elu),
    costly_activation("Selu", 1, selu_1),
    costly_activation("Selu", 6, selu),
    costly_activation("Celu", 12, celu),
    activation_row("ThresholdedRelu", 10, thresholded_relu),
    activation_row("HardSigmoid", 1, hard_sigmoid),
    activation_row("HardSwish", 14, hard_swish),
    costly_activation("Softplus", 1, softplus),
    activation_row("Softsign", 1, softsign),
    costly_activation("Mish", 18, mish),
    costly_activation("Swish", 24, swish),
    costly_activation("Gelu", 20, gelu),
    activation_row("Shrink", 9, shrink, types::numeric),
    prelu_row(1, prelu_1),
    prelu_row(7, prelu),
    activation_row("Clip", 1, clip_1),
    clip_row(),
});

} // namespace

std::span<const op_def> activation_ops() {
  return activation_rows;
}

} // namespace troupe

#include "ops/activation.hpp"

#include <array>
#include <numbers>

namespace troupe {
namespace {

constexpr std::array<std::string_view, 11> activation_names = {
    "", "Relu", "Clip", "Sigmoid", "Tanh", "HardSwish", "HardSigmoid", "LeakyRelu", "Swish", "Gelu", "GeluTanh"};

template <class T, class F>
void map(T* x, int64_t count, F f) {
  for (int64_t i = 0; i < count; ++i)
    x[i] = f(x[i]);
}

} // namespace

std::string_view to_string(activation_kind kind) {
  return activation_names[static_cast<size_t>(kind)];
}

activation parse_activation(const attributes& attrs) {
  const std::string name = attrs.text("activation", "");
  const auto it = std::find(activation_names.begin(), activation_names.end(), name);
  if (it == activation_names.end())
    fail(errc::invalid_model, "unknown activation '{}'", name);
  return {static_cast<activation_kind>(it - activation_names.begin()), attrs.real("activation_alpha", 0),
          attrs.real("activation_beta", 0)};
}

void set_activation(attributes& attrs, const activation& act) {
  if (act.kind == activation_kind::none)
    return;
  attrs.set("activation", std::string(to_string(act.kind)));
  attrs.set("activation_alpha", act.alpha);
  attrs.set("activation_beta", act.beta);
}

template <class T>
void apply(const activation& act, T* x, int64_t count) {
  const T alpha = act.alpha, beta = act.beta;
  // Comparisons are written so that NaN stays NaN.
  switch (act.kind) {
    case activation_kind::none: return;
    case activation_kind::relu: return map(x, count, [](T v) { return v < 0 ? T(0) : v; });
    case activation_kind::clip:
      return map(x, count, [=](T v) {
        v = v < alpha ? alpha : v;
        return v > beta ? beta : v;
      });
    case activation_kind::sigmoid: return map(x, count, [](T v) { return 1 / (1 + std::exp(-v)); });
    case activation_kind::tanh: return map(x, count, [](T v) { return std::tanh(v); });
    case activation_kind::hard_swish:
      return map(x, count, [](T v) {
        T gate = v / 6 + T(0.5);
        gate = gate < 0 ? T(0) : gate;
        return v * (gate > 1 ? T(1) : gate);
      });
    case activation_kind::hard_sigmoid:
      return map(x, count, [=](T v) {
        T gate = alpha * v + beta;
        gate = gate < 0 ? T(0) : gate;
        return gate > 1 ? T(1) : gate;
      });
    case activation_kind::leaky_relu: return map(x, count, [=](T v) { return v < 0 ? alpha * v : v; });
    case activation_kind::swish: return map(x, count, [=](T v) { return v / (1 + std::exp(-alpha * v)); });
    case activation_kind::gelu:
      return map(x, count, [](T v) { return v / 2 * (1 + std::erf(v / std::numbers::sqrt2_v<T>)); });
    case activation_kind::gelu_tanh: {
      const T scale = std::sqrt(2 / std::numbers::pi_v<T>);
      return map(x, count, [=](T v) { return v / 2 * (1 + std::tanh(scale * (v + T(0.044715) * v * v * v))); });
    }
  }
}

template void apply<float>(const activation&, float*, int64_t);
template void apply<double>(const activation&, double*, int64_t);

} // namespace troupe

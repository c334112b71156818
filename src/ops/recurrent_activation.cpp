#include "ops/recurrent_activation.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace troupe {
namespace {

struct known_activation {
  std::string_view name; // lower case: exporters disagree about capitals
  int parameters;        // 0, 1 (alpha) or 2 (alpha and beta)
  double alpha, beta;    // defaults
  double (*function)(double, double, double);
};

constexpr auto known = std::to_array<known_activation>({
    {"sigmoid", 0, 0, 0, [](double x, double, double) { return 1 / (1 + std::exp(-x)); }},
    {"tanh", 0, 0, 0, [](double x, double, double) { return std::tanh(x); }},
    {"relu", 0, 0, 0, [](double x, double, double) { return x < 0 ? 0 : x; }},
    {"softsign", 0, 0, 0, [](double x, double, double) { return x / (1 + std::abs(x)); }},
    {"softplus", 0, 0, 0, [](double x, double, double) { return x > 30 ? x : std::log1p(std::exp(x)); }},
    {"leakyrelu", 1, 0.01, 0, [](double x, double a, double) { return x < 0 ? a * x : x; }},
    {"thresholdedrelu", 1, 1, 0, [](double x, double a, double) { return x > a ? x : 0; }},
    {"elu", 1, 1, 0, [](double x, double a, double) { return x < 0 ? a * std::expm1(x) : x; }},
    {"affine", 2, 1, 0, [](double x, double a, double b) { return a * x + b; }},
    {"scaledtanh", 2, 1, 1, [](double x, double a, double b) { return a * std::tanh(b * x); }},
    {"hardsigmoid", 2, 0.2, 0.5, [](double x, double a, double b) { return std::clamp(a * x + b, 0.0, 1.0); }},
});

const known_activation& find_activation(std::string name) {
  for (char& letter : name)
    letter = letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  for (const known_activation& k : known)
    if (k.name == name)
      return k;
  fail(errc::unsupported, "unknown activation '{}'", name);
}

} // namespace

std::vector<cell_activation> parse_activations(const attributes& attrs, const std::vector<std::string>& defaults,
                                               int64_t directions) {
  std::vector<std::string> names = attrs.texts("activations", {});
  if (names.empty())
    for (int64_t d = 0; d < directions; ++d)
      names.insert(names.end(), defaults.begin(), defaults.end());
  if (names.size() != defaults.size() * static_cast<size_t>(directions))
    fail(errc::invalid_model, "{} activations, but {} are needed", names.size(),
         defaults.size() * static_cast<size_t>(directions));
  const std::vector<float> alphas = attrs.reals("activation_alpha", {}), betas = attrs.reals("activation_beta", {});
  size_t next_alpha = 0, next_beta = 0;
  std::vector<cell_activation> result;
  for (const std::string& name : names) {
    const known_activation k = find_activation(name);
    cell_activation a{k.function, k.alpha, k.beta};
    if (k.parameters >= 1 && next_alpha < alphas.size())
      a.alpha = alphas[next_alpha++];
    if (k.parameters >= 2 && next_beta < betas.size())
      a.beta = betas[next_beta++];
    result.push_back(a);
  }
  return result;
}

} // namespace troupe

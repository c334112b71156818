#include "ops/onnx/recurrent_activation.hpp"

#include "ops/scalar_formulas.hpp"

namespace troupe {
namespace {

/// Exporters disagree about capitals.
std::string in_lower_case(std::string_view name) {
  std::string lower(name);
  for (char& letter : lower)
    letter = letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  return lower;
}

constexpr bool is_activation(const scalar_function& f) {
  return takes<double>(f) && f.values() == 1 && !f.name.empty();
}

const scalar_function& find_activation(const std::string& name) {
  for (const scalar_function& f : scalar_functions)
    if (is_activation(f) && in_lower_case(f.name) == in_lower_case(name))
      return f;
  fail(errc::invalid_model, "attribute 'activations' has '{}', which is none", name);
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
    const scalar_function& f = find_activation(name);
    cell_activation a{nullptr, f.attribute_operands[0].otherwise, f.attribute_operands[1].otherwise};
    with_formula<exact_math, &is_activation>(f.code, [&](auto formula) {
      a.function = [](double x, double alpha, double beta) { return decltype(formula)()(x, alpha, beta); };
    });
    if (f.operands >= 2 && next_alpha < alphas.size())
      a.alpha = alphas[next_alpha++];
    if (f.operands >= 3 && next_beta < betas.size())
      a.beta = betas[next_beta++];
    result.push_back(a);
  }
  return result;
}

} // namespace troupe

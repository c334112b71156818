#include "ops/activation.hpp"

#include "ops/scalar_formulas.hpp"

#include <algorithm>

namespace troupe {

activation parse_activation(const attributes& attrs) {
  const std::string name = attrs.text("activation", "");
  const auto row = std::ranges::find_if(scalar_functions,
                                        [&](const scalar_function& f) { return f.ends_products && f.name == name; });
  if (row == scalar_functions.end())
    fail(errc::invalid_model, "unknown activation '{}'", name);
  return {row->code, attrs.real("activation_alpha", 0), attrs.real("activation_beta", 0)};
}

void set_activation(attributes& attrs, const activation& act) {
  if (act.code == scalar_code::same)
    return;
  attrs.set("activation", std::string(function_of(act.code).name));
  attrs.set("activation_alpha", act.alpha);
  attrs.set("activation_beta", act.beta);
}

template <class T>
void apply(const activation& act, T* x, int64_t count) {
  with_formula<exact_math, &ends_products>(act.code, [=](auto f) {
    for (int64_t i = 0; i < count; ++i)
      x[i] = f(x[i], T(act.alpha), T(act.beta));
  });
}

template void apply<float>(const activation&, float*, int64_t);
template void apply<double>(const activation&, double*, int64_t);

} // namespace troupe

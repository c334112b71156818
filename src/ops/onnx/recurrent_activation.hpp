// Activation functions of recurrent cells.
#pragma once

#include "graph/attributes.hpp"

namespace troupe {

/// f(x, alpha, beta), chosen by the operator's attribute `activations`.
struct cell_activation {
  double (*function)(double x, double alpha, double beta) = nullptr;
  double alpha = 0, beta = 0;

  double operator()(double x) const { return function(x, alpha, beta); }
};

/// Returns the activations of all directions, `defaults.size()` each; attributes activation_alpha and activation_beta
/// are consumed in order by the functions that have such a parameter. Throws `errc::invalid_model` on a wrong number of
/// names, and on one that is none.
std::vector<cell_activation> parse_activations(const attributes& attrs, const std::vector<std::string>& defaults,
                                               int64_t directions);

} // namespace troupe

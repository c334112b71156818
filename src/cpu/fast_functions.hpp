// Vectorised loops over floats: activations and softmax, with the accuracy of vector_math.hpp.
#pragma once

#include "ops/activation.hpp"

namespace troupe::fast {

/// y[i] = act(x[i]); x and y may be the same.
void activate(const activation& act, const float* x, float* y, int64_t count);

/// y[i] = f(a[i], b[i], c[i]) for the function of a code; y may be an operand.
void run_step(scalar_code code, const float* a, const float* b, const float* c, float* y, int64_t count);

/// x[i] = e^(x[i] − max) / Σ; a row of −inf alone gives NaN, as in ONNX.
void softmax_row(float* x, int64_t count);

/// Returns the largest element, −inf for none; NaN may be missed.
float maximum(const float* x, int64_t count);

float sum(const float* x, int64_t count);
/// Σ (x[i] − mean)²
float sum_of_squares(const float* x, int64_t count, float mean);
/// Σ a[i] · b[i]
float dot(const float* a, const float* b, int64_t count);

} // namespace troupe::fast

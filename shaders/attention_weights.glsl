// The softmax of attention: what a score weighs beside the largest one so far.
#ifndef TROUPE_ATTENTION_WEIGHTS
#define TROUPE_ATTENTION_WEIGHTS

#include "activation.glsl"

/// e^x for x ≤ 0 (relative error grows with |x|, where it no longer counts); NaN stays.
float weight_of(float x) {
  if (exact_isnan(x))
    return x;
  return x < -87.0 ? 0.0 : exp(x);
}

/// What weights are relative to: `top`, the largest score; without one all weights are zero.
float base_of(float top) { return top == -infinity ? 0.0 : top; }

#endif

// Joins what attention of splits of the keys has left in `partial`, [splits][rows][2 + width] of largest score, sum of
// weights and of weighted values: Y = Σ e^(mᵢ − m) oᵢ / Σ e^(mᵢ − m) lᵢ, m the largest mᵢ. A shader that includes it
// declares `partial`.
#include "attention_weights.glsl"

/// Returns what all splits have of an element of row `line` of `all_rows`, each of `step` floats: the sum of the
/// weights and of the weighted values.
vec2 join_splits(uint line, uint element, uint splits, uint all_rows, uint step) {
  const uint AHEAD = 8; // splits that are on their way together
  float top = -infinity, sum = 0.0, result = 0.0;
  for (uint first = 0; first < splits; first += AHEAD) {
    float tops[AHEAD], sums[AHEAD], values[AHEAD];
    [[unroll]] for (uint i = 0; i < AHEAD; ++i) {
      const uint at = (min(first + i, splits - 1) * all_rows + line) * step;
      tops[i] = partial[at];
      sums[i] = partial[at + 1];
      values[i] = partial[at + 2 + element];
    }
    float largest = top;
    [[unroll]] for (uint i = 0; i < AHEAD; ++i)
      largest = tops[i] > largest ? tops[i] : largest; // the last split once more changes nothing
    const float base = base_of(largest), shrink = fast_exp(top - base);
    top = largest;
    sum *= shrink;
    result *= shrink;
    [[unroll]] for (uint i = 0; i < AHEAD; ++i)
      if (first + i < splits) {
        const float weight = fast_exp(tops[i] - base);
        sum = fma(weight, sums[i], sum);
        result = fma(weight, values[i], result);
      }
  }
  return vec2(sum, result);
}

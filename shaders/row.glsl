// A row of elements that a team (team.glsl) reads once: the first ITEMS vectors of every invocation stay in registers,
// those after them are read again in every pass. A row has `size` elements, `inner` apart; WIDTH is 4 where rows are
// whole vectors. A kernel whose rows are laid out otherwise defines VECTOR_AT(k), where vector k of a row starts.
#ifndef VECTOR_AT
#define VECTOR_AT(k) (row_start + (k) * WIDTH * inner)
#endif
layout(constant_id = 4) const uint ITEMS = 1;
layout(constant_id = 5) const uint WIDTH = 1;

layout(set = 0, binding = 1, std430) readonly buffer source { T x[]; };
layout(set = 0, binding = 1, std430) readonly buffer source_vectors { T4 x4[]; };
layout(set = 0, binding = 2, std430) writeonly buffer target { T y[]; };
layout(set = 0, binding = 2, std430) writeonly buffer target_vectors { T4 y4[]; };

vec4 kept[ITEMS];
uint row_start;   // element
uint row_vectors; // 0 if the team has no row

/// Returns vector k of the row; only its first WIDTH components count.
vec4 load_vector(uint k) {
  const uint at = VECTOR_AT(k);
  return WIDTH == 4 ? vec4(x4[at / 4]) : vec4(float(x[at]), 0, 0, 0);
}

void store_vector(uint k, vec4 v) {
  const uint at = VECTOR_AT(k);
  if (WIDTH == 4)
    y4[at / 4] = T4(v);
  else
    y[at] = T(v.x);
}

/// Reads what is kept of the row that starts at an element.
void keep_row(uint start, uint vectors) {
  row_start = start;
  row_vectors = vectors;
  [[unroll]] for (uint i = 0; i < ITEMS; ++i)
    if (lane + i * lanes < row_vectors)
      kept[i] = load_vector(lane + i * lanes);
}

#ifndef OWN_ROWS
void open_row(uint row, bool present) {
  keep_row(inner == 1 ? row * size : row / inner * size * inner + row % inner, present ? size / WIDTH : 0);
}
#endif

/// Runs a statement (no comma outside parentheses) for every vector v, with its index k; CHANGE keeps what the
/// statement leaves in v.
#define EACH_VECTOR(CHANGE, STATEMENT)                                       \
  {                                                                          \
    [[unroll]] for (uint i = 0; i < ITEMS; ++i) {                            \
      const uint k = lane + i * lanes;                                       \
      if (k < row_vectors) {                                                 \
        vec4 v = kept[i];                                                    \
        STATEMENT                                                            \
        if (CHANGE)                                                          \
          kept[i] = v;                                                       \
      }                                                                      \
    }                                                                        \
    for (uint k = lane + ITEMS * lanes; k < row_vectors; k += lanes) {       \
      vec4 v = load_vector(k);                                               \
      STATEMENT                                                              \
    }                                                                        \
  }
#define EACH_ELEMENT [[unroll]] for (uint e = 0; e < WIDTH; ++e)

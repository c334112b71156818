// The rows that projections.glsl multiplies: read as vectors, normalised, and kept in the group's memory.
#ifndef TROUPE_PROJECTION_ROWS
#define TROUPE_PROJECTION_ROWS

/// Element i of a vector.
float element(VECTOR v, uint i) {
#ifdef TROUPE_f16
  return unpackHalf2x16(v[i / 2u])[i % 2u];
#else
  return v[i];
#endif
}

VECTOR vector_of(float e[WIDTH]) {
#ifdef TROUPE_f16
  VECTOR v;
  [[unroll]] for (uint i = 0u; i < 4u; ++i)
    v[i] = packFloat2x16(f16vec2(float16_t(e[2u * i]), float16_t(e[2u * i + 1u])));
  return v;
#else
  return vec4(e[0], e[1], e[2], e[3]);
#endif
}

/// The vector of row `row` of an array [rows, DEPTH] that begins at element v · WIDTH of it; zeros beyond the row's
/// end.
#define VECTOR_OF(ELEMENTS, VECTORS_OF_IT, row, v)                                        \
  if (DEPTH % WIDTH == 0u)                                                                \
    return v < DEPTH / WIDTH ? VECTORS_OF_IT[row * (DEPTH / WIDTH) + v] : VECTOR(0);      \
  float e[WIDTH];                                                                         \
  [[unroll]] for (uint i = 0u; i < WIDTH; ++i)                                            \
    e[i] = v * WIDTH + i < DEPTH ? float(ELEMENTS[row * DEPTH + v * WIDTH + i]) : 0.0;    \
  return vector_of(e);

VECTOR source_vector(uint row, uint v) {
  VECTOR_OF(x, x_vectors, row, v)
}
VECTOR scale_vector(uint v) {
  VECTOR_OF(norm_scale, scale_vectors, 0u, v)
}
VECTOR shift_vector(uint v) {
  VECTOR_OF(norm_shift, shift_vectors, 0u, v)
}

/// Vector v < VECTORS of a row as it is multiplied.
VECTOR row_vector(uint row, uint v) {
  return KEEPS_ROWS ? kept_rows[KEPT_AT(row, v)] : source_vector(row, v);
}

/// The sum over the group. `slot` (0 or 1) must differ from that of the sum before.
float group_sum(float sum, uint slot) {
#ifdef PLAIN
  group_sums[id] = sum;
  barrier();
  for (uint reach = THREADS / 2u; reach > 0u; reach /= 2u) {
    if (id < reach)
      group_sums[id] += group_sums[id + reach];
    barrier();
  }
  sum = group_sums[0];
  barrier();
  return sum;
#else
  sum = subgroupAdd(sum);
  if (gl_SubgroupInvocationID == 0u)
    group_sums[slot * (THREADS / 2u) + gl_SubgroupID] = sum;
  barrier();
  sum = group_sums[slot * (THREADS / 2u)]; // each adds up all of them: sooner done than another sum over the subgroup
  for (uint i = 1u; i < gl_NumSubgroups; ++i)
    sum += group_sums[slot * (THREADS / 2u) + i];
  return sum;
#endif
}

/// What an invocation has of a row, and of scale and shift, the same for all rows.
VECTOR own[ITEMS], own_scale[ITEMS], own_shift[ITEMS];

void ask_for_row(uint row) {
  [[unroll]] for (uint item = 0u; item < ITEMS; ++item)
    own[item] = source_vector(row, id + item * THREADS);
}

void ask_for_rows() {
  if (!KEEPS_ROWS)
    return;
  ask_for_row(0u);
  if (NORMALISED)
    [[unroll]] for (uint item = 0u; item < ITEMS; ++item) {
      own_scale[item] = scale_vector(id + item * THREADS);
      if ((FLAGS & projections_shift) != 0u)
        own_shift[item] = shift_vector(id + item * THREADS);
    }
}

/// Keeps vector v of a row, if there is such.
#ifdef PUTS_DOWN // of the including kernel
void put_down(uint row, uint v, VECTOR vector);
#else
void put_down(uint row, uint v, VECTOR vector) {
  if (v < VECTORS)
    kept_rows[KEPT_AT(row, v)] = vector;
}
#endif

/// Puts row `row` down, which has been asked for, normalised if it shall be, and asks for the next one.
void keep_row(uint row) {
  VECTOR now[ITEMS];
  [[unroll]] for (uint item = 0u; item < ITEMS; ++item)
    now[item] = own[item];
  if (row + 1u < ROWS)
    ask_for_row(row + 1u);
  if (NORMALISED) {
    float mean = 0.0, square = 0.0;
    if (NORM == rows_layer_norm) {
      [[unroll]] for (uint item = 0u; item < ITEMS; ++item)
        [[unroll]] for (uint i = 0u; i < WIDTH; ++i)
          mean += element(now[item], i);
      mean = group_sum(mean, 0u) / float(DEPTH);
    }
    [[unroll]] for (uint item = 0u; item < ITEMS; ++item)
      [[unroll]] for (uint i = 0u; i < WIDTH; ++i)
        if (NORM == rows_rms_norm || (id + item * THREADS) * WIDTH + i < DEPTH) { // beyond the end a row is zero
          const float distance = element(now[item], i) - mean;
          square = fma(distance, distance, square);
        }
    const uint slot = NORM == rows_layer_norm ? 1u : row % 2u;
    const float factor = 1.0 / sqrt(group_sum(square, slot) / float(DEPTH) + epsilon);
    [[unroll]] for (uint item = 0u; item < ITEMS; ++item) {
      float e[WIDTH]; // scale and shift are zeros beyond the row's end
      [[unroll]] for (uint i = 0u; i < WIDTH; ++i) {
        e[i] = (element(now[item], i) - mean) * factor * element(own_scale[item], i);
        if ((FLAGS & projections_shift) != 0u)
          e[i] += element(own_shift[item], i);
      }
      now[item] = vector_of(e);
    }
  }
  [[unroll]] for (uint item = 0u; item < ITEMS; ++item)
    put_down(row, id + item * THREADS, now[item]);
}

void keep_rows() {
  if (!KEEPS_ROWS)
    return;
  for (uint row = 0u; row < ROWS; ++row)
    keep_row(row);
  barrier();
}

#endif

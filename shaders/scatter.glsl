// What ScatterElements and ScatterND do with an element and its update. Variants named after words (w32 …) replace,
// those named after types reduce.
#include "types.glsl"
#include "common.glsl"
#include "indices.glsl"
#include "parameters/scatter.h"

layout(local_size_x = 256) in;
layout(constant_id = 0) const uint reduction = scatter_none;

layout(set = 0, binding = 1, std430) readonly buffer picked { uint indices[]; };
layout(set = 0, binding = 2, std430) readonly buffer updating { T updates[]; };
layout(set = 0, binding = 3, std430) buffer target { T y[]; };

#if defined(A)
#if defined(TROUPE_f32) || defined(TROUPE_f16)
bool is_nan(A x) { return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u; }
#elif defined(TROUPE_f64)
#include "double_math.glsl"
bool is_nan(A x) { return exact_isnan(x); }
#else
bool is_nan(A x) { return false; }
#endif

T combined(A old, A update) {
  switch (reduction) {
    case scatter_add: return T(old + update);
    case scatter_mul: return T(old * update);
    case scatter_min: return T(update < old || is_nan(update) ? update : old);
    default: return T(old < update || is_nan(update) ? update : old);
  }
}

void put(uint at, uint from) { y[at] = combined(A(y[at]), A(updates[from])); }
#else
void put(uint at, uint from) { y[at] = updates[from]; }
#endif

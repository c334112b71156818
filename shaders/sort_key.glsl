// Elements as unsigned numbers that are ordered as they are: both zeros are equal, NaN comes last.
#ifndef TROUPE_SORT_KEY
#define TROUPE_SORT_KEY
#include "activation.glsl"

#ifdef TROUPE_i32
bool is_not_a_number(T v) { return false; }
uint sort_key(T v) { return uint(v) ^ 0x80000000u; }
#else
bool is_not_a_number(T v) { return exact_isnan(float(v)); }
uint sort_key(T element) {
  const float v = float(element);
  if (exact_isnan(v))
    return 0xffffffffu;
  const uint bits = v == 0.0 ? 0u : floatBitsToUint(v);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}
#endif

#endif

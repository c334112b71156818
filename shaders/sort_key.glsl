// Elements as unsigned numbers that are ordered as they are: both zeros are equal, NaN comes last.
#ifndef TROUPE_SORT_KEY
#define TROUPE_SORT_KEY

#if defined(TROUPE_f64)
#include "double_math.glsl"
#define KEY uint64_t
bool is_not_a_number(T v) { return exact_isnan(v); }
KEY sort_key(T v) {
  const uint64_t sign = uint64_t(1) << 63, bits = v == 0.0lf ? uint64_t(0) : packUint2x32(unpackDouble2x32(v));
  return exact_isnan(v) ? ~uint64_t(0) : ((bits & sign) != 0 ? ~bits : bits | sign);
}
#elif defined(TROUPE_i64)
#define KEY uint64_t
bool is_not_a_number(T v) { return false; }
KEY sort_key(T v) { return uint64_t(v) ^ (uint64_t(1) << 63); }
#elif defined(TROUPE_u64)
#define KEY uint64_t
bool is_not_a_number(T v) { return false; }
KEY sort_key(T v) { return v; }
#elif defined(TROUPE_f32) || defined(TROUPE_f16)
#include "activation.glsl"
#define KEY uint
bool is_not_a_number(T v) { return exact_isnan(float(v)); }
KEY sort_key(T element) {
  const float v = float(element);
  if (exact_isnan(v))
    return 0xffffffffu;
  const uint bits = v == 0.0 ? 0u : floatBitsToUint(v);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}
#else
#define KEY uint
bool is_not_a_number(T v) { return false; }
#if defined(TROUPE_u32) || defined(TROUPE_u16) || defined(TROUPE_u8)
KEY sort_key(T v) { return uint(v); }
#else
KEY sort_key(T v) { return uint(int(v)) ^ 0x80000000u; }
#endif
#endif

#endif

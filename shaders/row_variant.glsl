// TYPE_plain variants: kernels of teams (team.glsl) without subgroup arithmetic.
#if defined(TROUPE_f32_plain)
#define TROUPE_f32 1
#define PLAIN
#elif defined(TROUPE_f16_plain)
#define TROUPE_f16 1
#define PLAIN
#elif defined(TROUPE_i32_plain)
#define TROUPE_i32 1
#define PLAIN
#define INTEGERS
#elif defined(TROUPE_i64_plain)
#define TROUPE_i64 1
#define PLAIN
#define INTEGERS
#elif defined(TROUPE_u8_plain)
#define TROUPE_u8 1
#define PLAIN
#define INTEGERS
#elif defined(TROUPE_u32_plain)
#define TROUPE_u32 1
#define PLAIN
#define INTEGERS
#elif defined(TROUPE_u64_plain)
#define TROUPE_u64 1
#define PLAIN
#define INTEGERS
#elif defined(TROUPE_i16_plain)
#define TROUPE_i16 1
#define PLAIN
#define INTEGERS
#elif defined(TROUPE_u16_plain)
#define TROUPE_u16 1
#define PLAIN
#define INTEGERS
#elif defined(TROUPE_i8_plain)
#define TROUPE_i8 1
#define PLAIN
#define INTEGERS
#elif defined(TROUPE_f64_plain)
#define TROUPE_f64 1
#define PLAIN
#endif

// How many matrices a subgroup computes, down and across, by variant. See gemm_cooperative.glsl.
#if defined(TROUPE_f16_1x1) || defined(TROUPE_i8_1x1)
#define DOWN 1
#define ACROSS 1
#elif defined(TROUPE_f16_1x2) || defined(TROUPE_i8_1x2)
#define DOWN 1
#define ACROSS 2
#elif defined(TROUPE_f16_2x2) || defined(TROUPE_i8_2x2)
#define DOWN 2
#define ACROSS 2
#elif defined(TROUPE_f16_4x2) || defined(TROUPE_i8_4x2)
#define DOWN 4
#define ACROSS 2
#endif

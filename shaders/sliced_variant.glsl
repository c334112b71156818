// f32_sliced variants: products whose groups share depths among slices (gemm_tiled.glsl).
#ifdef TROUPE_f32_sliced
#define TROUPE_f32
#define SLICED
#endif

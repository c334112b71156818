#version 450
// Matrix products of strided operands by cooperative matrices: float16, or float32 in pieces, with float sums. See
// gemm_cooperative.glsl.
// Variants: f16_1x1 f16_1x2 f16_1x3 f16_4x4 f16_2x2 f16_4x2 f32_1x2 f32_2x2
// Compiled twice: see group_matrix.glsl.
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#include "cooperative_variant.glsl"
#include "subgroup_matrix.glsl"
#include "gemm.glsl"
#include "matmul_operand.glsl"
#include "gemm_cooperative.glsl"

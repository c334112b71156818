#version 450
// Convolution as an implicit matrix product by cooperative matrices: float16, float sums. See gemm_cooperative.glsl.
// Variants: f16
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_NV_cooperative_matrix : require
#define EIGHT_WIDE
#include "gemm.glsl"
#define VECTOR uvec4
#include "conv_operand.glsl"
#include "gemm_cooperative.glsl"

#version 450
// Matrix products of bytes with scales (src/ops/composed/fused_quantized.cpp) by cooperative matrices. See
// gemm_cooperative.glsl.
// Variants: i8_1x1 i8_1x2 i8_2x2 i8_4x2
// Compiled twice: see group_matrix.glsl.
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#define BYTE_MATRICES
#include "cooperative_variant.glsl"
#include "subgroup_matrix.glsl"
#include "gemm.glsl"
#include "quantized_matmul_operand.glsl"
#include "gemm_cooperative.glsl"

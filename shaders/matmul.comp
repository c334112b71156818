#version 450
// Matrix products of strided operands: MatMul, Gemm and convolutions that are plain products. See gemm_tiled.glsl.
// Variants: f32 f16 f32_sliced
#extension GL_GOOGLE_include_directive : require
#include "sliced_variant.glsl"
#include "gemm.glsl"
#define VECTOR T4
#include "matmul_operand.glsl"
#include "gemm_tiled.glsl"

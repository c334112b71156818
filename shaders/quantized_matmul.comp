#version 450
// Matrix products of bytes with scales (src/ops/composed/fused_quantized.cpp). See gemm_tiled.glsl.
// The variant says how four bytes are multiplied: dot by an instruction of the device's, plain one by one.
// Variants: plain dot
#extension GL_GOOGLE_include_directive : require
#include "gemm.glsl"
#include "quantized_matmul_operand.glsl"
#include "gemm_tiled.glsl"

#version 450
// Convolution as an implicit matrix product, any layout, groups and up to three spatial axes. See gemm_tiled.glsl.
// Variants: f32 f16 f32_sliced
#extension GL_GOOGLE_include_directive : require
#include "sliced_variant.glsl"
#include "gemm.glsl"
#define VECTOR T4
#include "conv_operand.glsl"
#include "gemm_tiled.glsl"

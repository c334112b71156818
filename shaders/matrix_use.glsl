// What matrices of SPV_KHR_cooperative_matrix need, whoever holds them (subgroup_matrix.glsl, group_matrix.glsl).
#extension GL_EXT_spirv_intrinsics : require
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model

const uint left_use = 0u, right_use = 1u, sum_use = 2u;

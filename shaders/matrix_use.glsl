// What matrices of SPV_KHR_cooperative_matrix need, whether a subgroup (subgroup_matrix.glsl) or a group
// (group_matrix.glsl) holds them.
#extension GL_EXT_spirv_intrinsics : require
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model

const uint left_use = 0u, right_use = 1u, sum_use = 2u;

// Matrices that a subgroup holds and multiplies: SPV_KHR_cooperative_matrix, written as GL_EXT_spirv_intrinsics, since
// the oldest glslang that builds troupe does not know it.
//
// A matrix is made for its use, as the left or right factor or as sums; so it is in registers as the device multiplies
// it. A kernel declares MATRIX_A, MATRIX_B and SUM_MATRIX; see group_matrix.glsl for TYPE_F16 and its like.
#include "matrix_use.glsl"

const uint subgroup_scope = 3u, matrix_lines = 16u, byte_depths = 32u;
const uint by_rows = 0u, by_columns = 1u;

#define SUBGROUP_MATRIX(type, rows, columns, use) \
  spirv_type(extensions = ["SPV_KHR_cooperative_matrix"], capabilities = [6022], id = 4456, type, subgroup_scope, \
             rows, columns, use)

// Operands of loads and stores of shared memory, by which others see what was stored before a barrier (Vulkan's memory
// model): MakePointerVisible or MakePointerAvailable for the group, and NonPrivatePointer.
#define SHARED_OPERANDS spirv_literal uint operands, uint seen_by
#define FROM_SHARED 0x30u, 2u
#define TO_SHARED 0x28u, 2u

// Matrices that a whole group holds and multiplies: SPV_KHR_cooperative_matrix with SPV_NV_cooperative_matrix2 and
// SPV_NV_tensor_addressing, written as GL_EXT_spirv_intrinsics, since the oldest glslang that builds troupe does not
// know them.
//
// A kernel declares the instructions that it needs for its own types. Operands of a type must be constants, so sizes
// are `const uint`. Some operands are ids of the module that GLSL cannot name: TYPE_F16 and TYPE_F32, and FUNCTION_f
// for a function f that an instruction calls for each element. compile_twice.py reads them from a first compilation,
// whose module is of no use, and compiles again with the right ones: a number there changes no id.
#include "matrix_use.glsl"

const uint group_scope = 2u;
const uint two_dims = 2u, not_clamped = 0u, clamp_to_zero = 1u, second_dim = 1u, first_dim = 0u;
const bool without_dims = false;

#define GROUP_MATRIX_MODULE \
  extensions = ["SPV_KHR_cooperative_matrix", "SPV_NV_cooperative_matrix2", "SPV_NV_tensor_addressing"], \
  capabilities = [6022, 5433, 5439]
#define GROUP_MATRIX(type, rows, columns, use) \
  spirv_type(GROUP_MATRIX_MODULE, id = 4456, type, group_scope, rows, columns, use)

// Where a matrix is in a buffer: sizes and steps of two dims, of which a tile is a slice. What is beyond the sizes is
// read as zero and not written.
#define LAYOUT spirv_type(GROUP_MATRIX_MODULE, id = 5370, two_dims, clamp_to_zero)
#define TURNED spirv_type(GROUP_MATRIX_MODULE, id = 5371, two_dims, without_dims, second_dim, first_dim)
spirv_instruction(id = 5372) LAYOUT new_layout();
spirv_instruction(id = 5373) LAYOUT with_sizes(LAYOUT of, uint rows, uint columns);
spirv_instruction(id = 5374) LAYOUT with_steps(LAYOUT of, uint row, uint column);
spirv_instruction(id = 5375) LAYOUT slice(LAYOUT of, uint row, uint rows, uint column, uint columns);
spirv_instruction(id = 5377) TURNED turned();
// The same of rows that are one after another, for slices that are wholly inside.
#define UNBOUNDED spirv_type(GROUP_MATRIX_MODULE, id = 5370, two_dims, not_clamped)
spirv_instruction(id = 5372) UNBOUNDED new_unbounded();
spirv_instruction(id = 5373) UNBOUNDED unbounded_sizes(UNBOUNDED of, uint rows, uint columns);
spirv_instruction(id = 5375) UNBOUNDED unbounded_slice(UNBOUNDED of, uint row, uint rows, uint column, uint columns);

// Rows of `columns` elements that are `step` elements apart. A macro: glslang lets no function of GLSL return such a
// type.
#define rows_of(rows, columns, step) with_steps(with_sizes(new_layout(), rows, columns), step, 1u)

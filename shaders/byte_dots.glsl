// Dot products of four bytes each, packed into words (SPV_KHR_integer_dot_product), on devices that have them.
#ifndef TROUPE_BYTE_DOTS
#define TROUPE_BYTE_DOTS

#extension GL_EXT_spirv_intrinsics : require

// OpSDot, OpUDot and OpSUDot, 0: packed. The mixed one's first has signs.
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6018, 6019], id = 4450)
int packed_signed(uint a, uint b, spirv_literal int format);
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6018, 6019], id = 4451)
uint packed_unsigned(uint a, uint b, spirv_literal int format);
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6018, 6019], id = 4452)
int packed_mixed(uint a, uint b, spirv_literal int format);

int dot_signed(uint a, uint b) { return packed_signed(a, b, 0); }
uint dot_unsigned(uint a, uint b) { return packed_unsigned(a, b, 0); }
int dot_mixed(uint a, uint b) { return packed_mixed(a, b, 0); }

#endif

// Words of four bytes: their parts, and their products.
#ifndef TROUPE_BYTES
#define TROUPE_BYTES

#extension GL_EXT_control_flow_attributes : enable
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require

/// The four signed bytes of a word.
ivec4 signed_bytes(uint word) {
  const int bits = int(word);
  return ivec4(bitfieldExtract(bits, 0, 8), bitfieldExtract(bits, 8, 8), bitfieldExtract(bits, 16, 8), bits >> 24);
}

/// The four unsigned bytes of a word.
ivec4 unsigned_bytes(uint word) {
  return ivec4(word & 255u, (word >> 8u) & 255u, (word >> 16u) & 255u, word >> 24u);
}

/// A word of the low bytes of four numbers.
uint word_of(ivec4 v) {
  const uvec4 low = uvec4(v) & 255u;
  return low.x | low.y << 8u | low.z << 16u | low.w << 24u;
}

/// A byte's signed number; of an unsigned one 128 less, so that it is the signed number of the byte with its first bit
/// turned.
int centred_byte(uint bits, bool is_unsigned) {
  return is_unsigned ? int(bits) - 128 : int(bits << 24u) >> 24;
}

#endif

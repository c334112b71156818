// How packed weights have their zero points (nbits.glsl, matmul_nbits.comp).
#ifndef TROUPE_NBITS_ZEROS
#define TROUPE_NBITS_ZEROS

#include "block.h"

/// None, packed like the codes, one element each.
CONSTANT zeros_absent = 0, zeros_packed = 1, zeros_whole = 2;

#endif

// Kinds of operands and results of quantized_elementwise.comp: chain_kind_bits each, a type and whether there is a zero
// point.
#include "block.h"

CONSTANT chain_float = 0, chain_uint8 = 1, chain_int8 = 2;
CONSTANT chain_zero = 4;
CONSTANT chain_kind_bits = 3;

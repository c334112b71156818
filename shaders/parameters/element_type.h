// Element types of convert.comp and small_floats.glsl, numbered as in ONNX.
#ifndef TROUPE_ELEMENT_TYPE
#define TROUPE_ELEMENT_TYPE
#include "block.h"

CONSTANT type_float32 = 1, type_uint8 = 2, type_int8 = 3, type_uint16 = 4, type_int16 = 5, type_int32 = 6,
    type_int64 = 7;
CONSTANT type_boolean = 9, type_float16 = 10, type_float64 = 11, type_uint32 = 12, type_uint64 = 13, type_bfloat16 = 16;
CONSTANT type_e4m3fn = 17, type_e4m3fnuz = 18, type_e5m2 = 19, type_e5m2fnuz = 20, type_uint4 = 21, type_int4 = 22;

#endif

// The scalar functions' numbers: scalar_add, scalar_subtract …
#ifndef TROUPE_SCALAR
#define TROUPE_SCALAR

#define SCALAR(name, number) const uint scalar_##name = number;
#include "scalar_codes.h"
#undef SCALAR

#endif

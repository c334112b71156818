#include "base/trim_heap.hpp"

#include <cstdlib>
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace troupe {

void trim_heap() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

} // namespace troupe

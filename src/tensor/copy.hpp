// Values in memory of their own.
#pragma once

#include "troupe/tensor.hpp"

namespace troupe {

/// Returns the same value in memory of its own, down to the elements of sequences and optionals. A caller may change or
/// free the memory of an input when its run has ended; what outlasts the run needs a copy.
tensor copy_of(const tensor& source);

} // namespace troupe

// One function a family file: its table of rows. For registry.cpp.
#pragma once

#include "ops/op.hpp"

namespace troupe {

std::span<const op_def> unary_ops();

} // namespace troupe

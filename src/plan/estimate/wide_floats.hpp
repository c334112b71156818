// Which floats of 16 bits a device computes in float32, and which nodes can be computed so (place/widen.hpp does it).
#pragma once

#include "plan/plan.hpp"

namespace troupe {

/// Returns the types that a device stores as models state them, but computes in float32: float16 and bfloat16 on CPUs,
/// bfloat16 on GPUs that can convert it.
dtype_set wide_types(const device_info& device);
dtype_set wide_types(const gpu_features& gpu);

/// Returns whether a node computes with operand `i`, of that type, in float32 if it is of a type in `narrow`. What the
/// host must know keeps its type.
bool is_narrow_operand(const node& n, size_t i, dtype type, dtype_set narrow);

/// Returns a float32 copy of a weight, by a recipe.
weight_ptr widened(const weight_ptr& w);

/// Returns whether a node hands elements on as they are: only such operators take truth values and numbers alike. (A
/// reduction takes both, too, but computes, as its costs say.)
bool moves_elements(const node& n);

/// Returns whether a node reads floats of types in `narrow`, gives nothing else, and gives float32 if they are
/// float32. The graph must be inferred.
bool has_wide_form(const graph& g, const node& n, dtype_set narrow);

} // namespace troupe

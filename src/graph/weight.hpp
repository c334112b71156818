// Weight recipes: how a constant of the rewritten graph comes from the model's initializers.
//
// A recipe is a leaf (bytes in memory or in the mapped model file) or one step, an operator's reference kernel, over
// other recipes. Folding (the model's own operators; small results become leaves at once), precision (ToFloat16) and
// packing for a kernel, on GPUs and CPUs alike (Pack), are such steps, each over what the one before made. A recipe is
// immutable plain data with a content key, of its leaves and all its steps: so plans can name weights without holding
// their bytes, a device makes equal weights once whichever session wants them, and it materialises only what it runs,
// straight from the mapped file.
#pragma once

#include "base/hash.hpp"
#include "graph/attributes.hpp"

namespace troupe {

struct op_def;
struct weight;

/// Returns a hash of a tensor's type, dims and bytes: wherever equal tensors are stored, theirs are equal.
hash128 content_hash(const tensor& bytes);

using weight_ptr = std::shared_ptr<const weight>;

/// A constant, not necessarily computed yet (see the top of this file).
struct weight {
  dtype type = dtype::undefined;
  shape dims;
  hash128 key; // of the content
  /// The bytes of a leaf; undefined if there is a step.
  tensor leaf;
  /// The operator that computes this weight, null for a leaf.
  const op_def* step = nullptr;
  attributes step_attributes;
  std::vector<weight_ptr> step_inputs; // null if an optional input is absent
  uint32_t step_output = 0;            // which of the step's outputs this weight is

  /// Makes a leaf. Its key is a hash of type, dims and bytes; a leaf over 1 MiB that has a `source` (file identity,
  /// offset, length) is identified by that instead, since hashing it would cost a pass over the file.
  static weight_ptr from_tensor(tensor bytes, const std::string& source = "");
};

} // namespace troupe

// Inputs without elements, whose dims contradict those of other inputs.
#pragma once

#include "troupe/results.hpp"

#include <vector>

namespace troupe::ort {

/// Gives inputs without elements the sizes that the model's other inputs have for names of their dims.
///
/// ONNX Runtime compares no names, and skips values without elements where it joins some. Clients rely on it: the
/// first, empty cache of transformers.js's decoders is [0, heads, 0, size], also where the tokens are a batch of 1.
/// Such a 0 becomes the one size that inputs with elements have for its name, if the input has no elements then either.
void settle_empty(named_tensors& inputs, const std::vector<value_info>& declared);

} // namespace troupe::ort

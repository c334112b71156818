// A decoder whose keys and values grow by a token a step, as tests drive it.
#pragma once

#include "troupe/session.hpp"

#include <algorithm>
#include <array>

namespace troupe::test {

/// Inputs of a step after `past` tokens, keys and values aside.
inline named_tensors decoder_step_inputs(int64_t step, int64_t past) {
  tensor mask(dtype::int64, {1, past + 1});
  std::fill_n(mask.mutable_data<int64_t>(), mask.size(), 1);
  return {{"input_ids", tensor::of<int64_t>({1, 1}, std::array{1 + step * 37 % 900})},
          {"attention_mask", mask},
          {"position_ids", tensor::of<int64_t>({1, 1}, std::array{past})}};
}

/// Binds the keys and values that a step makes to those that the next one takes.
inline std::vector<output_binding> cache_pairs(const session& model) {
  std::vector<output_binding> pairs;
  for (const value_info& o : model.outputs())
    if (o.name.starts_with("present_"))
      pairs.push_back({o.name, "past_" + o.name.substr(8)});
  return pairs;
}

} // namespace troupe::test

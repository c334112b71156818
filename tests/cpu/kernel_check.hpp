// Runs a fast CPU kernel and the operator's reference on the same operands.
#pragma once

#include "cpu/kernel_list.hpp"

#include <random>

namespace troupe::testing {

/// A call of an operator with random operands, run through one row of the kernel list.
class kernel_check {
public:
  kernel_check(std::string domain, std::string op, attributes attrs = {});

  /// Appends an input of random floats in [low, high]; a constant one is given as a weight. `l` is how the fast kernel
  /// sees it.
  kernel_check& input(shape dims, bool constant = false, layout l = layout::plain, float low = -1, float high = 1);
  /// Appends a given input.
  kernel_check& input(tensor value, bool constant = false, layout l = layout::plain);
  /// Appends an input of random bytes of all values.
  kernel_check& bytes(dtype type, shape dims, bool constant = false, layout l = layout::plain);
  /// Appends a single element.
  kernel_check& scalar(dtype type, float value);
  kernel_check& absent();
  /// Output `i` is channels-last.
  kernel_check& channels_last_output() {
    output_layout_ = layout::channels_last;
    return *this;
  }

  /// Returns the largest |fast − reference| / (atol + rtol · |reference|) over all outputs; infinity if the kernel
  /// reads beyond its inputs' dims or leaves elements unwritten (they are NaN before), throws if row `kernel` does not
  /// take the call.
  double worst(std::string_view kernel, double rtol = 1e-4, double atol = 1e-5, size_t outputs = 1);

private:
  node call_;
  std::vector<tensor> inputs_;
  std::vector<bool> constant_;
  std::vector<layout> layouts_;
  layout output_layout_ = layout::plain;
  std::minstd_rand random_{42};
};

/// Returns the elements of a plain tensor of rank ≥ 3 in channels-last order, under the same dims, and back.
tensor to_channels_last(const tensor& plain);
tensor from_channels_last(const tensor& reordered);

} // namespace troupe::testing

// SPIR-V as the tests look at it: which functions of a kernel divide, the kernel as a GPU computes it that divides
// badly, and if its parameters are.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe::test {

/// Float instructions of one function whose rounding is not IEEE's on every GPU.
struct inexact_instructions {
  int divisions = 0, roots = 0;
  int contractable = 0; // sums and products that a driver may put into one operation
};

/// Returns them for every function of a module, by its name in GLSL without its parameters.
std::map<std::string, inexact_instructions> inexact_functions(std::span<const uint32_t> code);

/// Returns whether the uniform block of a module, of several that with all words, has no gap between its members, as
/// its struct in C++ has none; nullopt if there is no block.
std::optional<bool> has_gapless_parameters(std::span<const uint32_t> code);

/// Returns the module with every float32 quotient and square root multiplied by `factor`: with 1 ± 2^-23 a GPU as bad
/// as Vulkan allows. Zeros, infinities and NaN stay.
std::vector<uint32_t> with_poor_division(std::span<const uint32_t> code, float factor);

} // namespace troupe::test

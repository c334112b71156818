// Parameters that never change, as constants of the kernel: a compiler that knows them leaves out what they decide, and no invocation waits for them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::vulkan {

/// Returns whether a kernel needs a number that the driver does not know: whether it has a specialisation constant of this id.
bool hides_parameters(std::span<const uint32_t> code);
inline constexpr uint32_t hides_parameters_id = 100;

/// Returns the SPIR-V `code` with every load of a number or vector of its uniform block, at a place that is known, replaced by what `words` hold there. Loads at
/// places that are computed stay; so the block must hold the words too. A kernel that hides its
/// parameters stays as it is. Pure.
std::vector<uint32_t> with_block_constants(std::span<const uint32_t> code, std::span<const uint32_t> words);

} // namespace troupe::vulkan

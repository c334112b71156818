// Parameters that never change, as constants of the kernel: a compiler that knows them leaves out what they decide, and
// no invocation waits for them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::vulkan {

/// Returns the SPIR-V `code` with every load of a number or vector of its uniform block, at a place that is known,
/// replaced by what `words` hold there. Loads at places that are computed stay, and those of a second block at the same
/// place that leaves the first words out, by which a kernel reads a number that its compiler had better not know; so
/// the block must hold the words too. Pure.
std::vector<uint32_t> with_block_constants(std::span<const uint32_t> code, std::span<const uint32_t> words);

} // namespace troupe::vulkan

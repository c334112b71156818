// What a run of a chunk leaves: values promised to peers before they are there, values filled when they are.
#pragma once

#include "vulkan/direct_copies.hpp"

namespace troupe::vulkan {

/// Fills what kernels write to staging memory with NaN, as the arena is.
void poison_results(const recorded_chunk& r);

/// Promises the values that `prepare_copies` has found can be (`run_values::promised`), and says in `values.peers` what
/// the submission is to signal. Peers read them only after that has been submitted.
void promise_values(const installed_chunk& c, const bound_plan& bound, const recorded_chunk& r,
                    const std::shared_ptr<peer_timeline>& own, run_values& values);

/// Fills all others when the chunk is complete, in tensors that `make` makes where they were staged. Returns the bytes
/// that have come to the host's memory, those of promised values included.
int64_t fill_downloads(const installed_chunk& c, const bound_plan& bound, const recorded_chunk& r,
                       const arena_slot& slot, const tensor_maker& make, run_values& values);

/// Takes the times of moves out that did not happen, because a value is, or stays, on the GPU.
void forget_stayed(const installed_chunk& c, const residents& own, const chunk_work& work,
                   std::vector<device_timing>& timings);

} // namespace troupe::vulkan

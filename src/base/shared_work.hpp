// Work of some microseconds that one thread shares with those which are awake at the moment, because they look for something else again and again.
// Waking a thread takes 20 to 90 µs on a virtual machine; one core writes 588 KiB to a GPU's memory in 50.
//
// Thread-safety: any thread may share and help. One shares at a time; another that wants to meanwhile does its work alone.
#pragma once

#include <cstdint>
#include <functional>

namespace troupe {

/// Calls `body(begin, end)` on disjoint ranges of at most `grain` elements that cover [0, count), on this thread and those that `help`. All have
/// ended when it returns. `body` must not throw.
void share_work(int64_t count, int64_t grain, const std::function<void(int64_t begin, int64_t end)>& body);

/// Takes ranges of what another thread shares until none is left; returns at once if nobody shares.
void help() noexcept;

} // namespace troupe

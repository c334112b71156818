// The calls of the C library by which threads wait and read clocks: those of a virtual thread go to the scheduler, all
// others to the library. virtual_threads.cpp, virtual_locks.cpp and virtual_clocks.cpp define these functions. The
// linker takes the functions of a program before those of shared libraries, so the C++ library, CAF and OpenSSL call
// these, too; what else the program defines is hidden from libraries.
#pragma once

#include "universe/scheduler.hpp"

#include <algorithm>
#include <ctime>
#include <dlfcn.h>

namespace troupe::universe {

/// The clocks begin here, so that no time of the system is in a run.
inline constexpr int64_t steady_begin_ns = 1'000'000'000'000, system_begin_ns = 1'700'000'000'000'000'000;

inline scheduler* all = nullptr;
inline thread_local virtual_thread* me = nullptr; // null: the thread is not virtual

/// Returns a function of the C library in the version that programs of today are linked with.
template <class Function>
Function* real(Function*, const char* name, const char* version = nullptr) {
  void* found = version ? dlvsym(RTLD_NEXT, name, version) : dlsym(RTLD_NEXT, name);
  return reinterpret_cast<Function*>(found);
}
#define REAL(name, ...)                                                                                                \
  ([] {                                                                                                                \
    static auto* const found = troupe::universe::real(static_cast<decltype(&name)>(nullptr), #name, ##__VA_ARGS__);    \
    return found;                                                                                                      \
  }())

/// Whether the calling thread is virtual.
inline bool is_virtual() {
  return me != nullptr;
}

inline int64_t ns_of(const timespec& t) {
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

inline timespec timespec_of(int64_t ns) {
  return {.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
}

inline int64_t begin_of(clockid_t clock) {
  return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE ? system_begin_ns : steady_begin_ns;
}

/// Returns when a time of a clock is, in virtual time.
inline int64_t until(clockid_t clock, const timespec* at) {
  return at ? std::max<int64_t>(ns_of(*at) - begin_of(clock), 0) : never_ns;
}

} // namespace troupe::universe

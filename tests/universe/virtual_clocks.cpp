// Clocks, sleeps, random numbers, and futexes: by these std::future, std::atomic::wait and the guards of local statics
// wait.
#include "universe/virtual_call.hpp"

#include <cerrno>
#include <cstdarg>
#include <linux/futex.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

namespace troupe::universe {
namespace {

long futex(uint32_t* word, int what, uint32_t value, const timespec* limit) {
  const bool is_real_time = what & FUTEX_CLOCK_REALTIME;
  switch (what & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET: {
      all->may_switch();
      if (__atomic_load_n(word, __ATOMIC_SEQ_CST) != value) {
        errno = EAGAIN;
        return -1;
      }
      const bool is_absolute = (what & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;
      const int64_t end = !limit        ? never_ns
                          : is_absolute ? until(is_real_time ? CLOCK_REALTIME : CLOCK_MONOTONIC, limit)
                                        : all->now() + ns_of(*limit);
      if (all->wait(word, "futex", end))
        return 0;
      errno = ETIMEDOUT;
      return -1;
    }
    case FUTEX_WAKE:
    case FUTEX_WAKE_BITSET: return static_cast<long>(all->wake(word, value));
    default: errno = ENOSYS; return -1;
  }
}

} // namespace
} // namespace troupe::universe

using namespace troupe::universe; // NOLINT(google-build-using-namespace): what follows must be in no namespace

#pragma GCC visibility push(default)
// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): the C library's names are reserved ones
extern "C" {

int nanosleep(const timespec* length, timespec* rest) {
  return is_virtual() ? (all->wait(&all, "sleep", all->now() + ns_of(*length)), 0) : REAL(nanosleep)(length, rest);
}
int clock_nanosleep(clockid_t clock, int flags, const timespec* t, timespec* rest) {
  if (!is_virtual())
    return REAL(clock_nanosleep)(clock, flags, t, rest);
  all->wait(&all, "sleep", flags & TIMER_ABSTIME ? until(clock, t) : all->now() + ns_of(*t));
  return 0;
}
int usleep(useconds_t us) {
  return is_virtual() ? (all->wait(&all, "sleep", all->now() + int64_t{us} * 1000), 0) : REAL(usleep)(us);
}
int sched_yield() noexcept {
  return is_virtual() ? (all->wait(&all, "yield", all->now() + 1000), 0) : REAL(sched_yield)();
}

int clock_gettime(clockid_t clock, timespec* to) noexcept {
  if (!is_virtual())
    return REAL(clock_gettime)(clock, to);
  all->may_switch();
  *to = timespec_of(begin_of(clock) + all->now());
  return 0;
}
int gettimeofday(timeval* to, void* zone) noexcept {
  if (!is_virtual())
    return REAL(gettimeofday)(to, zone);
  const int64_t us = (system_begin_ns + all->now()) / 1000;
  *to = {.tv_sec = us / 1'000'000, .tv_usec = us % 1'000'000};
  return 0;
}
time_t time(time_t* to) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return to ? *to = now.tv_sec : now.tv_sec;
}

/// It is in messages, whose length the network counts.
pid_t getpid() noexcept {
  return is_virtual() ? 4242 : REAL(getpid)();
}

ssize_t getrandom(void* to, size_t size, unsigned flags) {
  if (!is_virtual())
    return REAL(getrandom)(to, size, flags);
  auto* const bytes = static_cast<uint8_t*>(to);
  std::generate_n(bytes, size, [] { return static_cast<uint8_t>(all->below(256)); });
  return static_cast<ssize_t>(size);
}
int getentropy(void* to, size_t size) {
  return getrandom(to, size, 0) == static_cast<ssize_t>(size) ? 0 : -1;
}

long syscall(long number, ...) noexcept {
  va_list given;
  va_start(given, number);
  long a[6];
  for (long& argument : a)
    argument = va_arg(given, long);
  va_end(given);
  if (is_virtual() && number == SYS_futex)
    return futex(reinterpret_cast<uint32_t*>(a[0]), static_cast<int>(a[1]), static_cast<uint32_t>(a[2]),
                 reinterpret_cast<const timespec*>(a[3]));
  return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

} // extern "C"
// NOLINTEND(readability-inconsistent-declaration-parameter-name)
#pragma GCC visibility pop

// Threads: how they begin and end.
#include "universe/virtual_threads.hpp"

#include "universe/virtual_call.hpp"

#include <csignal>
#include <cstdio>
#include <execinfo.h>
#include <malloc.h>
#include <unistd.h>
#include <utility>

namespace troupe::universe {
namespace {

pthread_key_t ending;

void* run_thread(void* given) {
  me = static_cast<virtual_thread*>(given);
  me->system_id = static_cast<int>(gettid());
  all->await_turn(*me);
  // The destructors of thread-local variables still belong to the thread; those of keys come after them.
  pthread_setspecific(ending, reinterpret_cast<void*>(uintptr_t{1}));
  return me->start(me->argument);
}

void end_at_last(void* round) {
  const auto n = reinterpret_cast<uintptr_t>(round);
  if (n < PTHREAD_DESTRUCTOR_ITERATIONS) {
    pthread_setspecific(ending, reinterpret_cast<void*>(n + 1));
    return;
  }
  virtual_thread* const self = std::exchange(me, nullptr);
  if (self)
    all->end_thread();
}

virtual_thread* find(pthread_t system) {
  for (const auto& t : all->threads())
    if (!t->detached && pthread_equal(t->system, system))
      return t.get();
  return nullptr;
}

void print_calls(int) {
  void* calls[64];
  backtrace_symbols_fd(calls, backtrace(calls, 64), STDERR_FILENO);
}

} // namespace

void begin_virtual_threads(const thread_rules& rules, std::function<void(stuck)> when_stuck) {
  mallopt(M_ARENA_MAX, 1);             // so that addresses do not depend on which thread of the system comes first
  mallopt(M_TRIM_THRESHOLD, 1 << 30);  // pages that go back to the system come again, at a cost
  mallopt(M_MMAP_THRESHOLD, 32 << 20); // the most that it takes
  void* warm[1];
  backtrace(warm, 1); // loads a library
  pthread_key_create(&ending, end_at_last);
  signal(SIGUSR1, print_calls);
  all = new scheduler(rules, std::move(when_stuck));
  me = &all->self();
  me->system = pthread_self();
  me->system_id = static_cast<int>(gettid());
}

int64_t virtual_ns() {
  return all->now();
}
uint64_t order_digest() {
  return all->digest();
}
uint64_t thread_switches() {
  return all->switches();
}

void print_threads() {
  const timespec a_while{.tv_sec = 0, .tv_nsec = 20'000'000};
  for (const auto& t : all->threads()) {
    if (t->ended)
      continue;
    std::fprintf(stderr, "thread %u: %s %p\n", t->number, t->waits_for ? t->call : "can go on", t->waits_for);
    std::fflush(stderr);
    pthread_kill(t->system, SIGUSR1);
    REAL(nanosleep)(&a_while, nullptr);
  }
}

} // namespace troupe::universe

using namespace troupe::universe; // NOLINT(google-build-using-namespace): what follows must be in no namespace

#pragma GCC visibility push(default)
// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): the C library's names are reserved ones
extern "C" {

int pthread_create(pthread_t* made, const pthread_attr_t* how, void* (*start)(void*), void* argument) {
  if (!is_virtual())
    return REAL(pthread_create)(made, how, start, argument);
  virtual_thread& t = all->add();
  t.start = start;
  t.argument = argument;
  int state = PTHREAD_CREATE_JOINABLE;
  if (how)
    pthread_attr_getdetachstate(how, &state);
  t.detached = state == PTHREAD_CREATE_DETACHED;
  const int failed = REAL(pthread_create)(made, how, run_thread, &t);
  t.system = *made;
  if (!failed)
    all->may_switch();
  return failed;
}

int pthread_join(pthread_t which, void** result) {
  if (!is_virtual())
    return REAL(pthread_join)(which, result);
  virtual_thread* const t = find(which);
  while (t && !t->ended)
    all->wait(t, "join");
  if (t)
    t->detached = true; // its handle may be another thread's from now on
  return REAL(pthread_join)(which, result);
}

int pthread_detach(pthread_t which) noexcept {
  if (virtual_thread* const t = is_virtual() ? find(which) : nullptr)
    t->detached = true;
  return REAL(pthread_detach)(which);
}

/// As in the C library, 2 says that it is done.
int pthread_once(pthread_once_t* control, void (*first)()) {
  if (!is_virtual())
    return REAL(pthread_once)(control, first);
  while (*control == 1)
    all->wait(control, "once");
  if (*control == 2)
    return 0;
  *control = 1;
  try {
    first();
  } catch (...) {
    *control = 0;
    all->wake(control);
    throw;
  }
  *control = 2;
  all->wake(control);
  return 0;
}

} // extern "C"
// NOLINTEND(readability-inconsistent-declaration-parameter-name)
#pragma GCC visibility pop

// Locks and condition variables. Their state is in the bytes of the C library's, so that a lock may be taken before
// threads are virtual and released afterwards; who waits knows the scheduler.
#include "universe/virtual_call.hpp"

#include <cerrno>
#include <pthread.h>

namespace troupe::universe {
namespace {

bool try_lock(pthread_mutex_t& m) {
  auto& state = m.__data;
  const int self = static_cast<int>(me->number) + 1;
  if (state.__lock == 0) {
    state.__lock = 1;
    state.__owner = self;
    state.__count = 1;
    return true;
  }
  if ((state.__kind & 3) == PTHREAD_MUTEX_RECURSIVE_NP && state.__owner == self) {
    ++state.__count;
    return true;
  }
  return false;
}

int lock(pthread_mutex_t& m, int64_t until_ns) {
  all->may_switch();
  while (!try_lock(m))
    if (!all->wait(&m, "mutex", until_ns))
      return ETIMEDOUT;
  return 0;
}

void unlock(pthread_mutex_t& m) {
  auto& state = m.__data;
  if ((state.__kind & 3) == PTHREAD_MUTEX_RECURSIVE_NP && --state.__count > 0)
    return;
  state.__lock = 0;
  state.__owner = 0;
  all->wake(&m, 1);
}

int wait(pthread_cond_t& c, pthread_mutex_t& m, int64_t until_ns) {
  unlock(m);
  const bool woken = all->wait(&c, "condition", until_ns);
  while (!try_lock(m))
    all->wait(&m, "mutex");
  return woken ? 0 : ETIMEDOUT;
}

// Of a lock with readers, __readers counts them, and __cur_writer is the writer's number.

bool try_read(pthread_rwlock_t& l) {
  if (l.__data.__cur_writer != 0)
    return false;
  ++l.__data.__readers;
  return true;
}

bool try_write(pthread_rwlock_t& l) {
  if (l.__data.__cur_writer != 0 || l.__data.__readers != 0)
    return false;
  l.__data.__cur_writer = static_cast<int>(me->number) + 1;
  return true;
}

void unlock(pthread_rwlock_t& l) {
  if (l.__data.__cur_writer != 0)
    l.__data.__cur_writer = 0;
  else
    --l.__data.__readers;
  all->wake(&l);
}

} // namespace
} // namespace troupe::universe

using namespace troupe::universe; // NOLINT(google-build-using-namespace): what follows must be in no namespace

#pragma GCC visibility push(default)
// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): the C library's names are reserved ones
extern "C" {

int pthread_mutex_lock(pthread_mutex_t* m) noexcept {
  return is_virtual() ? lock(*m, never_ns) : REAL(pthread_mutex_lock)(m);
}
int pthread_mutex_trylock(pthread_mutex_t* m) noexcept {
  return is_virtual() ? (try_lock(*m) ? 0 : EBUSY) : REAL(pthread_mutex_trylock)(m);
}
int pthread_mutex_timedlock(pthread_mutex_t* m, const timespec* at) noexcept {
  return is_virtual() ? lock(*m, until(CLOCK_REALTIME, at)) : REAL(pthread_mutex_timedlock)(m, at);
}
int pthread_mutex_clocklock(pthread_mutex_t* m, clockid_t clock, const timespec* at) noexcept {
  return is_virtual() ? lock(*m, until(clock, at)) : REAL(pthread_mutex_clocklock)(m, clock, at);
}
int pthread_mutex_unlock(pthread_mutex_t* m) noexcept {
  if (!is_virtual())
    return REAL(pthread_mutex_unlock)(m);
  unlock(*m);
  return 0;
}

int pthread_cond_wait(pthread_cond_t* c, pthread_mutex_t* m) {
  return is_virtual() ? wait(*c, *m, never_ns) : REAL(pthread_cond_wait, "GLIBC_2.3.2")(c, m);
}
int pthread_cond_timedwait(pthread_cond_t* c, pthread_mutex_t* m, const timespec* at) {
  return is_virtual() ? wait(*c, *m, until(CLOCK_REALTIME, at)) : REAL(pthread_cond_timedwait, "GLIBC_2.3.2")(c, m, at);
}
int pthread_cond_clockwait(pthread_cond_t* c, pthread_mutex_t* m, clockid_t clock, const timespec* at) {
  return is_virtual() ? wait(*c, *m, until(clock, at)) : REAL(pthread_cond_clockwait)(c, m, clock, at);
}
int pthread_cond_signal(pthread_cond_t* c) noexcept {
  if (!is_virtual())
    return REAL(pthread_cond_signal, "GLIBC_2.3.2")(c);
  all->wake(c, 1);
  all->may_switch();
  return 0;
}
int pthread_cond_broadcast(pthread_cond_t* c) noexcept {
  if (!is_virtual())
    return REAL(pthread_cond_broadcast, "GLIBC_2.3.2")(c);
  all->wake(c);
  all->may_switch();
  return 0;
}

int pthread_rwlock_rdlock(pthread_rwlock_t* l) noexcept {
  if (!is_virtual())
    return REAL(pthread_rwlock_rdlock)(l);
  all->may_switch();
  while (!try_read(*l))
    all->wait(l, "reader's lock");
  return 0;
}
int pthread_rwlock_tryrdlock(pthread_rwlock_t* l) noexcept {
  return is_virtual() ? (try_read(*l) ? 0 : EBUSY) : REAL(pthread_rwlock_tryrdlock)(l);
}
int pthread_rwlock_wrlock(pthread_rwlock_t* l) noexcept {
  if (!is_virtual())
    return REAL(pthread_rwlock_wrlock)(l);
  all->may_switch();
  while (!try_write(*l))
    all->wait(l, "writer's lock");
  return 0;
}
int pthread_rwlock_trywrlock(pthread_rwlock_t* l) noexcept {
  return is_virtual() ? (try_write(*l) ? 0 : EBUSY) : REAL(pthread_rwlock_trywrlock)(l);
}
int pthread_rwlock_unlock(pthread_rwlock_t* l) noexcept {
  if (!is_virtual())
    return REAL(pthread_rwlock_unlock)(l);
  unlock(*l);
  return 0;
}

} // extern "C"
// NOLINTEND(readability-inconsistent-declaration-parameter-name)
#pragma GCC visibility pop

#include "universe/virtual_disk.hpp"

#include "universe/scheduler.hpp"

#include <cerrno>
#include <dlfcn.h>
#include <fcntl.h>

namespace troupe::universe {
namespace {

double full_chance = 0;

} // namespace

void set_full_disk_chance(double chance) {
  full_chance = chance;
}

} // namespace troupe::universe

#pragma GCC visibility push(default)
extern "C" int posix_fallocate(int file, off_t from, off_t size) {
  using namespace troupe::universe; // NOLINT(google-build-using-namespace): this function must be in no namespace
  constexpr uint64_t parts = 1000;
  scheduler* const all = virtual_scheduler();
  if (all && static_cast<double>(all->below(parts)) < full_chance * static_cast<double>(parts))
    return ENOSPC;
  static const auto real = reinterpret_cast<decltype(&posix_fallocate)>(dlsym(RTLD_NEXT, "posix_fallocate"));
  return real(file, from, size);
}
#pragma GCC visibility pop

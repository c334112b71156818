#include "universe/virtual_disk.hpp"

#include "universe/virtual_call.hpp"

#include <cerrno>
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
  if (is_virtual() && static_cast<double>(all->below(parts)) < full_chance * static_cast<double>(parts))
    return ENOSPC;
  return REAL(posix_fallocate)(file, from, size);
}
#pragma GCC visibility pop

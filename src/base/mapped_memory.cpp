#include "base/mapped_memory.hpp"

#include <cstdint>
#include <map>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>

namespace troupe {
namespace {

struct mappings {
  std::mutex mutex;
  std::map<uintptr_t, size_t> size_by_begin;
};

/// Never destroyed: what static objects have mapped ends when the process does.
mappings& noted() {
  static mappings& all = *new mappings;
  return all;
}

} // namespace

void note_mapped_file(const void* begin, size_t size) {
  mappings& m = noted();
  const std::lock_guard lock(m.mutex);
  m.size_by_begin[reinterpret_cast<uintptr_t>(begin)] = size;
}

void forget_mapped_file(const void* begin) {
  mappings& m = noted();
  const std::lock_guard lock(m.mutex);
  m.size_by_begin.erase(reinterpret_cast<uintptr_t>(begin));
}

void release_mapped_pages(const void* data, size_t size) {
  const auto address = reinterpret_cast<uintptr_t>(data);
  mappings& m = noted();
  // Held during the call, so that the mapping cannot be replaced by other memory meanwhile.
  const std::lock_guard lock(m.mutex);
  auto it = m.size_by_begin.upper_bound(address);
  if (it == m.size_by_begin.begin())
    return;
  --it;
  if (address + size > it->first + it->second)
    return;
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = (address + page - 1) / page * page, end = (address + size) / page * page;
  if (begin < end)
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

} // namespace troupe

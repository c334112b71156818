#include "base/parallel.hpp"

#include "base/shared_work.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <emmintrin.h>
#include <exception>
#include <omp.h>

namespace troupe {

int thread_count() {
  return omp_get_max_threads();
}

single_thread::single_thread(bool wanted) : before_(wanted ? omp_get_max_threads() : 0) {
  if (before_ > 0)
    omp_set_num_threads(1);
}

single_thread::~single_thread() {
  if (before_ > 0)
    omp_set_num_threads(before_);
}

void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
  if (count <= 0)
    return;
  const int64_t parts = std::min<int64_t>(thread_count(), (count + grain - 1) / std::max<int64_t>(grain, 1));
  if (parts <= 1 || omp_in_parallel()) {
    body(0, count);
    return;
  }
  std::exception_ptr first;
#pragma omp parallel num_threads(static_cast <int>(parts))
  {
    // The runtime may grant fewer threads than asked for: split by what it granted.
    const int64_t n = omp_get_num_threads(), i = omp_get_thread_num();
    try {
      if (const int64_t begin = count * i / n, end = count * (i + 1) / n; begin < end)
        body(begin, end);
    } catch (...) {
#pragma omp critical(troupe_parallel_for)
      if (!first)
        first = std::current_exception();
    }
  }
  if (first)
    std::rethrow_exception(first);
}

namespace {

/// Copies past the caches: what is copied is not read here again, and a cache would read each line before it is written.
void stream(std::byte* to, const std::byte* from, int64_t bytes) {
  constexpr int64_t width = sizeof(__m128i), line = 4 * width;
  const auto ahead = std::min(bytes, (width - static_cast<int64_t>(std::bit_cast<uintptr_t>(to) % width)) % width);
  std::memcpy(to, from, static_cast<size_t>(ahead));
  int64_t i = ahead;
  for (; i + line <= bytes; i += line)
    for (int64_t part = i; part < i + line; part += width)
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + part),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + part)));
  _mm_sfence(); // such writes are not in order with others
  std::memcpy(to + i, from + i, static_cast<size_t>(bytes - i));
}

} // namespace

void parallel_copy(void* to, const void* from, int64_t bytes) {
  // Eight read what is in no cache at 45 GB/s, about what a bus carries; more would only spin on cores that others want.
  constexpr int64_t worth_a_thread = int64_t{1} << 20, most_threads = 8, grain = int64_t{128} << 10;
  const int64_t threads =
      std::min({(bytes + worth_a_thread - 1) / worth_a_thread, most_threads, int64_t{thread_count()}});
  share_work(
      bytes, threads > 1 ? grain : bytes,
      [&](int64_t begin, int64_t end) {
        stream(static_cast<std::byte*>(to) + begin, static_cast<const std::byte*>(from) + begin, end - begin);
      },
      static_cast<int>(threads) - 1);
}

} // namespace troupe

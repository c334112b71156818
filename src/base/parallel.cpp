#include "base/parallel.hpp"

#include "base/cpu_feature.hpp"
#include "base/round_up.hpp"
#include "base/shared_work.hpp"
#include "base/usable_cores.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstring>
#include <exception>
#include <immintrin.h>
#include <omp.h>
#include <vector>

namespace troupe {

namespace {

thread_local int most_threads_here = 0; // 0: as many as the process may use

int threads_of_process() {
  static const int threads = std::clamp(omp_get_max_threads(), 1, usable_cores());
  return threads;
}

/// Keeps the first exception of the bodies of a loop.
class first_exception {
public:
  void keep() noexcept {
    if (!kept_.exchange(true))
      first_ = std::current_exception();
  }
  bool kept() const noexcept { return kept_; }
  void rethrow() const {
    if (first_)
      std::rethrow_exception(first_);
  }

private:
  std::atomic<bool> kept_{false};
  std::exception_ptr first_;
};

} // namespace

int thread_count() {
  return most_threads_here > 0 ? most_threads_here : threads_of_process();
}

thread_limit::thread_limit(int most) : before_(most_threads_here) {
  if (most <= 0 || (before_ > 0 && before_ <= most))
    return;
  most_threads_here = most;
  of_libraries_ = omp_get_max_threads();
  omp_set_num_threads(most);
}

thread_limit::~thread_limit() {
  if (of_libraries_ == 0)
    return;
  most_threads_here = before_;
  omp_set_num_threads(of_libraries_);
}

void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
  if (count <= 0)
    return;
  const int64_t threads = thread_count(), most = ceil_div(count, std::max<int64_t>(grain, 1));
  if (threads <= 1 || most <= 1) {
    body(0, count);
    return;
  }
  constexpr int64_t short_of_grain = 4;
  const thread_limit alone(1); // a loop inside of the loop, and what a library would share
  first_exception first;
  share_loop(
      count, std::max<int64_t>(grain / short_of_grain, 1),
      [&](int64_t begin, int64_t end) {
        const thread_limit inside(1);
        try {
          if (!first.kept())
            body(begin, end);
        } catch (...) {
          first.keep();
        }
      },
      static_cast<int>(std::min(threads, most)) - 1);
  first.rethrow();
}

namespace {

/// Copies whole lines past the caches: what is copied is not read here again, and a cache would read each line before
/// it is written. `to` is aligned to lines, `bytes` a multiple of four of them.
using line_copy = void (*)(std::byte* to, const std::byte* from, int64_t bytes);

constexpr int64_t line = 64; // bytes

void stream_by_16(std::byte* to, const std::byte* from, int64_t bytes) {
  constexpr int64_t width = sizeof(__m128i);
  for (int64_t i = 0; i < bytes; i += line)
    for (int64_t part = i; part < i + line; part += width)
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + part),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + part)));
}

/// A core copies what is in no cache at 9 GB/s, by sixteen bytes at 6.8.
[[gnu::target("avx512f")]] void stream_by_line(std::byte* to, const std::byte* from, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 4 * line) {
    const __m512i a = _mm512_loadu_si512(from + i), b = _mm512_loadu_si512(from + i + line);
    const __m512i c = _mm512_loadu_si512(from + i + 2 * line), d = _mm512_loadu_si512(from + i + 3 * line);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i), a);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i + line), b);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i + 2 * line), c);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i + 3 * line), d);
  }
}

/// Copies bytes [begin, end).
void stream(void* target, const void* source, int64_t begin, int64_t end) {
  std::byte* const to = static_cast<std::byte*>(target) + begin;
  const std::byte* const from = static_cast<const std::byte*>(source) + begin;
  const int64_t bytes = end - begin;
  static const line_copy copy = cpu_has(cpu_feature::avx512) ? stream_by_line : stream_by_16;
  const auto past = static_cast<int64_t>(std::bit_cast<uintptr_t>(to) % line);
  const int64_t ahead = std::min(bytes, (line - past) % line);
  const int64_t whole = (bytes - ahead) / (4 * line) * (4 * line);
  std::memcpy(to, from, static_cast<size_t>(ahead));
  copy(to + ahead, from + ahead, whole);
  _mm_sfence(); // such writes are not in order with others
  const int64_t copied = ahead + whole;
  std::memcpy(to + copied, from + copied, static_cast<size_t>(bytes - copied));
}

// Eight threads read what is in no cache at 53 GB/s, what a bus carries; more would only spin on cores that others
// want.
constexpr int64_t worth_a_thread = int64_t{1} << 20, most_threads = 8, grain = int64_t{128} << 10; // bytes

int64_t copying_threads(int64_t bytes) {
  return std::min({ceil_div(bytes, worth_a_thread), most_threads, int64_t{thread_count()}});
}

} // namespace

void parallel_copy(void* to, const void* from, int64_t bytes) {
  const int64_t threads = copying_threads(bytes);
  share_work(
      bytes, threads > 1 ? grain : bytes, [&](int64_t begin, int64_t end) { stream(to, from, begin, end); },
      static_cast<int>(threads) - 1);
}

void parallel_copy(void* to, const void* from, int64_t bytes, const std::function<void(int64_t)>& copied) {
  std::vector<std::atomic<bool>> ended(static_cast<size_t>(ceil_div(bytes, grain)));
  size_t first = 0; // that has not
  share_work(
      bytes, grain,
      [&](int64_t begin, int64_t end) {
        stream(to, from, begin, end);
        ended[static_cast<size_t>(begin / grain)].store(true, std::memory_order_release);
      },
      static_cast<int>(copying_threads(bytes)) - 1,
      [&] {
        while (first < ended.size() && ended[first].load(std::memory_order_acquire))
          ++first;
        copied(std::min(static_cast<int64_t>(first) * grain, bytes));
      });
  copied(bytes);
}

} // namespace troupe

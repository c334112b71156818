// What moving tensors in pieces costs by itself: a link in memory, two threads, each byte copied into a frame and out
// of it.
//
//   bench_pieces [ROUNDS]
//
// Prints, for tensors of several sizes, the median rate over ROUNDS (default 9): as many side by side as fill 256 MiB,
// one way, then both ways at once (sum); and a memcpy of one thread, for comparison.
#include "base/elapsed.hpp"
#include "base/quantile.hpp"
#include "support/link_pair.hpp"
#include "support/piece_end.hpp"

#include <cstdlib>

using namespace troupe;
using namespace troupe::test;
using steady = std::chrono::steady_clock;

namespace {

constexpr int64_t total = 256 << 20;

/// Tensors of one size, touched.
std::vector<tensor> tensors(int64_t bytes) {
  std::vector<tensor> made;
  for (int64_t done = 0; done < total; done += bytes) {
    made.emplace_back(dtype::uint8, shape{bytes});
    std::memset(made.back().mutable_data(), 1, static_cast<size_t>(bytes));
  }
  return made;
}

hash128 key_of(size_t i) {
  return {i, i};
}

double gigabytes_per_second(int64_t bytes, steady::time_point start) {
  return static_cast<double>(bytes) / 1e6 / milliseconds_since(start);
}

class bench {
public:
  explicit bench(int64_t bytes) : contents_(tensors(bytes)), into_{tensors(bytes), tensors(bytes)} {
    for (piece_end* end : {&ends_[0], &ends_[1]})
      for (size_t i = 0; i < contents_.size(); ++i)
        end->source().offer(key_of(i), contents_[i]);
  }
  ~bench() { pair_.stop(); }

  /// Pulls everything at that many ends at once.
  double run(size_t ends) {
    const auto start = steady::now();
    left_ = ends * contents_.size();
    for (size_t i = 0; i < contents_.size(); ++i)
      for (size_t e = 0; e < ends; ++e)
        ends_[e].puller().pull(key_of(i), into_[e][i], [this](const failure& f) { note(f); });
    std::unique_lock lock(mutex_);
    all_done_.wait(lock, [&] { return left_ == 0; });
    return gigabytes_per_second(total * static_cast<int64_t>(ends), start);
  }

private:
  void note(const failure& f) {
    expects(!f.failed(), f.message.c_str());
    const std::lock_guard lock(mutex_);
    if (--left_ == 0)
      all_done_.notify_all();
  }

  const std::vector<tensor> contents_;
  std::vector<tensor> into_[2];
  link_pair pair_;
  piece_end ends_[2]{{pair_, 0}, {pair_, 1}};
  std::mutex mutex_;
  std::condition_variable all_done_;
  size_t left_ = 0;
};

template <class Measure>
double median_of(size_t rounds, Measure&& measure) {
  std::vector<double> all;
  for (size_t i = 0; i < rounds; ++i)
    all.push_back(measure());
  return quantile(all, 0.5);
}

} // namespace

int main(int argc, char** argv) {
  const size_t rounds = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 9;
  for (const int64_t bytes : {total, int64_t{16} << 20, int64_t{1} << 20, int64_t{64} << 10}) {
    bench b(bytes);
    b.run(2);
    const double one_way = median_of(rounds, [&] { return b.run(1); });
    const double both_ways = median_of(rounds, [&] { return b.run(2); });
    fmt::print("tensors of {:>9} bytes: {:5.2f} GB/s one way, {:5.2f} both ways\n", bytes, one_way, both_ways);
  }
  const std::vector<tensor> from = tensors(total), to = tensors(total);
  const double copy = median_of(rounds, [&] {
    const auto start = steady::now();
    std::memcpy(tensor(to[0]).mutable_data(), from[0].data(), static_cast<size_t>(total));
    return gigabytes_per_second(total, start);
  });
  fmt::print("a memcpy: {:5.2f} GB/s\n", copy);
}

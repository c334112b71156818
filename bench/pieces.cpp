// What it costs by itself to move tensors in pieces: a link in memory, two threads, each byte copied into a frame and
// out of it.
//
//   pull   tensors of some size side by side, 256 MiB in all: one way, or at both ends at once
//   copy   a memcpy of one thread, for comparison
//
// Options are Google Benchmark's. Prints median times and rates, of both ways together.
#include "support/link_pair.hpp"
#include "support/piece_end.hpp"

#include <benchmark/benchmark.h>

using namespace troupe;
using namespace troupe::test;

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

class pieces {
public:
  explicit pieces(int64_t bytes) : contents_(tensors(bytes)), into_{tensors(bytes), tensors(bytes)} {
    for (piece_end* end : {&ends_[0], &ends_[1]})
      for (size_t i = 0; i < contents_.size(); ++i)
        end->source().offer(key_of(i), contents_[i]);
  }
  ~pieces() { pair_.stop(); }

  /// Pulls everything, at one end or at both.
  void run(size_t ends) {
    left_ = ends * contents_.size();
    for (size_t i = 0; i < contents_.size(); ++i)
      for (size_t e = 0; e < ends; ++e)
        ends_[e].puller().pull(key_of(i), into_[e][i], [this](const failure& f) { note(f); });
    std::unique_lock lock(mutex_);
    all_done_.wait(lock, [&] { return left_ == 0; });
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

void pull(benchmark::State& state) {
  const int64_t ends = state.range(1);
  pieces moved(state.range(0));
  moved.run(2);
  while (state.KeepRunning())
    moved.run(static_cast<size_t>(ends));
  state.SetBytesProcessed(state.iterations() * total * ends);
}

void copy(benchmark::State& state) {
  const std::vector<tensor> from = tensors(total), to = tensors(total);
  while (state.KeepRunning())
    std::memcpy(tensor(to[0]).mutable_data(), from[0].data(), static_cast<size_t>(total));
  state.SetBytesProcessed(state.iterations() * total);
}

/// Nine single calls, whose medians are printed.
constexpr auto by_median = [](auto* timed) {
  timed->Iterations(1)->Repetitions(9)->DisplayAggregatesOnly()->Unit(benchmark::kMillisecond)->UseRealTime();
};
BENCHMARK(pull)
    ->ArgNames({"bytes", "ends"})
    ->ArgsProduct({{total, 16 << 20, 1 << 20, 64 << 10}, {1, 2}})
    ->Apply(by_median);
BENCHMARK(copy)->Apply(by_median);

} // namespace

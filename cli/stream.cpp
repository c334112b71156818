#include "cli/stream.hpp"

#include "base/elapsed.hpp"
#include "base/printable.hpp"
#include "base/quantile.hpp"
#include "cli/progress.hpp"
#include "cli/strategy_options.hpp"
#include "troupe/tensor_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <iostream>
#include <mutex>
#include <set>

namespace troupe::cli {
namespace {

namespace fs = std::filesystem;

/// Whether a name comes before another as people count: "x2" before "x10".
bool comes_before(const fs::path& a, const fs::path& b) {
  return strverscmp(a.filename().c_str(), b.filename().c_str()) < 0;
}

/// The names of requests, one after the other.
class request_names {
public:
  explicit request_names(const std::string& source) : from_stdin_(source == "-") {
    if (from_stdin_)
      return;
    std::error_code why;
    for (const auto& entry : fs::directory_iterator(source, why))
      listed_.push_back(entry.path());
    if (why)
      fail(errc::io, "the folder '{}' cannot be read: {}", source, why.message());
    std::sort(listed_.begin(), listed_.end(), comes_before);
  }

  std::optional<fs::path> next() {
    if (!from_stdin_)
      return at_ < listed_.size() ? std::optional(listed_[at_++]) : std::nullopt;
    for (std::string line; std::getline(std::cin, line);)
      if (!line.empty())
        return line;
    return std::nullopt;
  }
  /// How many there are; 0 where that is not known.
  size_t count() const { return listed_.size(); }

private:
  const bool from_stdin_;
  std::vector<fs::path> listed_;
  size_t at_ = 0;
};

named_tensors read_request(const fs::path& path, const std::vector<value_info>& declared) {
  if (fs::is_directory(path))
    return read_data_set(path, declared);
  if (path.extension() == ".npz")
    return read_inputs({path.string()}, declared);
  if (declared.size() != 1)
    fail(errc::invalid_input, "'{}' is one tensor, but the model has {} inputs: give a .npz or a folder", path.string(),
         declared.size());
  return read_inputs({declared[0].name + "=" + path.string()}, declared);
}

/// What became of the requests so far. Thread-safe.
class stream_results {
public:
  stream_results(const stream_arguments& stream, progress& line, size_t all)
      : stream_(stream), line_(line), all_(static_cast<double>(all)) {}

  void take(const fs::path& name, const run_outcome& outcome) {
    std::string why = outcome.failure ? outcome.failure->what() : "";
    if (why.empty() && !stream_.output.empty())
      why = write(name, outcome.result.outputs);
    const std::lock_guard lock(mutex_);
    ++done_;
    if (why.empty())
      latencies_.push_back(outcome.result.stats.total_ms);
    else
      tell(name, why);
    if (all_ > 0)
      line_.show(static_cast<double>(done_), all_, "requests");
    ended_.notify_all();
  }

  void wait(size_t requests) {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return done_ == requests; });
  }
  size_t failed() const { return done_ - latencies_.size(); }
  size_t done() const { return done_; }
  const std::vector<double>& latencies() const { return latencies_; }

private:
  std::string write(const fs::path& name, const named_tensors& outputs) {
    try {
      const fs::path folder = stream_.output / name.stem();
      if (!written_.insert(name.stem()).second)
        return fmt::format("another request's outputs are in '{}' already", folder.string());
      fs::create_directories(folder);
      write_outputs(folder, outputs);
      return {};
    } catch (const std::exception& e) {
      return e.what();
    }
  }

  void tell(const fs::path& name, const std::string& why) {
    line_.clear();
    fmt::print(stderr, "{}: {}\n", printable(name.string()), printable(why));
  }

  const stream_arguments& stream_;
  progress& line_;
  const double all_;
  std::mutex mutex_; // guards what follows
  std::condition_variable ended_;
  std::set<fs::path> written_; // used by the thread of callbacks alone
  size_t done_ = 0;
  std::vector<double> latencies_; // of those that ended well
};

/// Submits all requests and waits for them; returns the milliseconds that took.
double feed(const session& model, request_names& names, stream_results& results, const stream_arguments& stream,
            const interrupts& stop) {
  const auto begin = std::chrono::steady_clock::now();
  const run_options how{.timeout = stream.timeout, .cancel = stop.token()};
  size_t submitted = 0;
  while (const auto name = stop.requested() ? std::nullopt : names.next()) {
    ++submitted;
    const auto taken = [&results, name = *name](const run_outcome& outcome) { results.take(name, outcome); };
    try {
      model.submit(read_request(*name, model.inputs()), how, taken);
    } catch (const error& e) {
      taken({.failure = e});
    }
  }
  results.wait(submitted);
  return milliseconds_since(begin);
}

void print(const stream_results& results, const stream_stats& stats, double wall_ms,
           const std::optional<monitor_report>& watched, bool json) {
  const double seconds = wall_ms / 1e3;
  const auto& ms = results.latencies();
  const double p50 = ms.empty() ? 0 : median(ms), p99 = ms.empty() ? 0 : quantile(ms, 0.99);
  if (json) {
    nlohmann::json j{{"requests", results.done()},
                     {"failed", results.failed()},
                     {"seconds", seconds},
                     {"requests_per_s", static_cast<double>(results.done()) / seconds},
                     {"median_ms", p50},
                     {"p99_ms", p99},
                     {"replicas", replicas_json(stats, wall_ms)}};
    if (watched)
      j["monitor"] = nlohmann::json::parse(to_json(*watched));
    return write_json(j);
  }
  fmt::print("{} requests, {} failed, in {:.2f} s: {:.1f} a second; median {:.2f} ms, p99 {:.2f} ms\n", results.done(),
             results.failed(), seconds, static_cast<double>(results.done()) / seconds, p50, p99);
  std::cout << replicas_text(stats, wall_ms);
  if (watched)
    std::cout << '\n' << to_text(*watched);
}

} // namespace

void run_stream(const model_options& options, const stream_arguments& stream) {
  const interrupts stop;
  engine devices(options.engine());
  const session model = open_model(devices, options);
  request_names names(stream.source);
  double wall_ms = 0;
  size_t failed = 0;
  {
    progress line("streaming", options.shows_progress());
    stream_results results(stream, line, names.count());
    watcher watch(devices, model, stream.monitor);
    watch.begin();
    wall_ms = feed(model, names, results, stream, stop);
    const std::optional<monitor_report> watched = watch.end();
    line.clear();
    if (!options.json)
      std::cout << choice_text(model.choice());
    print(results, model.queue_stats(), wall_ms, watched, options.json);
    failed = results.failed();
  }
  stop.exit_if_requested();
  if (failed > 0)
    throw CLI::RuntimeError(1);
}

} // namespace troupe::cli

// What a person sees of long work while it goes on, and how they end it early.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

namespace troupe::cli {

/// A line on the terminal (stderr) while this object lives: what is done of how much, and the time left in proportion;
/// only the time it has taken if that is not known. Nothing is shown in the first half second, nor if stderr is not a
/// terminal.
class progress {
public:
  /// `wanted`: false with `--json` and `--quiet`.
  progress(std::string what, bool wanted);
  ~progress();
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;

  /// From now on, `done` of `all` is done; `unit` is said after the numbers, e.g. "cases".
  void show(double done, double all, std::string unit);
  /// Shows what `other` says instead while that is not empty: it is asked now and then, by another thread, and told for
  /// how many seconds it has been shown. What it looks at outlives this object.
  void watch(std::function<std::string(double seconds)> other);
  /// Takes the line away, so that something else can be printed; it comes back by itself.
  void clear();

private:
  using clock = std::chrono::steady_clock;

  void draw_until(const std::stop_token& end);
  std::string text();

  const std::string what_;
  const clock::time_point begin_ = clock::now();
  std::mutex lock_; // of what follows
  std::condition_variable_any ended_;
  double done_ = 0, all_ = 0;
  std::string unit_;
  std::function<std::string(double)> other_;
  std::optional<clock::time_point> other_since_;
  bool shown_ = false;
  std::jthread drawer_; // none if nothing is shown
};

/// While it lives, Ctrl-C asks for a stop instead of ending the process; a second one ends it. Make it before any
/// thread.
class interrupts {
public:
  interrupts();
  ~interrupts();
  interrupts(const interrupts&) = delete;
  interrupts& operator=(const interrupts&) = delete;

  std::stop_token token() const { return source_.get_token(); }
  bool requested() const { return source_.stop_requested(); }
  /// Says on stderr that the work was interrupted and makes the command exit with 130, as shells have it, where it was.
  void exit_if_requested() const;

private:
  std::stop_source source_;
  std::jthread watcher_;
};

} // namespace troupe::cli

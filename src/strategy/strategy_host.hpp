// Who asks a strategy plug-in about one stream of requests, and does not believe what comes back.
#pragma once

#include "run/strategy_library.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe {

class strategy_host {
public:
  /// Opens a state of the plug-in for `replicas` replicas. Throws `errc::invalid_argument` if that throws.
  strategy_host(std::shared_ptr<const strategy_library> plugin, size_t replicas);
  strategy_host(const strategy_host&) = delete;
  strategy_host& operator=(const strategy_host&) = delete;

  /// Whether requests that may be cut become shares.
  bool shares() const { return calls_.share != nullptr; }

  // All questions throw `errc::invalid_argument`, naming the plug-in, if it throws, fails, or answers what cannot be.

  /// What the plug-in sees of a stream.
  struct view {
    std::span<const strategy_replica> replicas;
    double now_s = 0;
    int64_t waiting_rows = 0;
  };
  /// Returns how many of `rows` each replica gets.
  std::vector<int64_t> share(const view& of, int64_t rows);

  struct choice {
    std::optional<size_t> replica; // none: the rows wait
    int64_t rows = 0;
    double wait_s = 0; // above 0: when to ask again at the latest
  };
  /// Returns who takes the next rows, of `rows` that are offered.
  choice choose(const view& of, int64_t rows, bool may_be_cut);

private:
  template <class Question>
  void ask(const view& of, Question&& question);
  [[noreturn]] void refuse(const std::string& what) const;
  static void report(void* context, const char* message);

  const std::shared_ptr<const strategy_library> plugin_;
  strategy_calls calls_; // ends before the plug-in
  std::string reported_;
};

} // namespace troupe

// What happened in a universe, line by line with its virtual time, and what was counted.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace troupe::universe {

/// See the top of this file. For virtual threads, of which one runs at a time.
class story {
public:
  template <class... Args>
  void tell(fmt::format_string<Args...> words, Args&&... args) {
    add(fmt::format(words, std::forward<Args>(args)...));
  }
  /// Counts an event: how often was this tried?
  void count(const std::string& what) { ++counts_[what]; }
  /// Tells what is wrong; the universe is at fault from then on.
  template <class... Args>
  void accuse(fmt::format_string<Args...> words, Args&&... args) {
    const std::string text = fmt::format(words, std::forward<Args>(args)...);
    add("WRONG: " + text);
    problems_.push_back(text);
  }

  const std::vector<std::string>& problems() const { return problems_; }
  const std::map<std::string, uint64_t>& counts() const { return counts_; }
  /// Prints all lines to stderr.
  void print() const;

private:
  void add(const std::string& text);

  std::vector<std::string> lines_, problems_;
  std::map<std::string, uint64_t> counts_;
};

} // namespace troupe::universe

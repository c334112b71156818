// What inference takes for granted where it is wrong for empty dims only.
#pragma once

#include "graph/element_symbols.hpp"

#include <utility>

namespace troupe {

/// Collects, as long as it lives, what inference on this thread takes to be ≥ 0 though it may be −1 if a dim is empty.
/// These nest: the innermost collects.
class nonempty_dims {
public:
  nonempty_dims() : enclosing_(std::exchange(collecting, this)) {}
  ~nonempty_dims() { collecting = enclosing_; }
  nonempty_dims(const nonempty_dims&) = delete;
  nonempty_dims& operator=(const nonempty_dims&) = delete;

  /// Notes that `x`, which is not a constant, is taken to be ≥ 0.
  static void note(const dim& x) {
    if (collecting)
      collecting->by_text_.try_emplace(x.to_string(), x);
  }

  /// Returns what was noted, each once, but for what depends on symbols that no input of the graph binds.
  std::vector<dim> noted() const {
    std::vector<dim> found;
    for (const auto& [text, x] : by_text_)
      if (!depend_on_run({&x, 1}))
        found.push_back(x);
    return found;
  }

private:
  inline static thread_local nonempty_dims* collecting = nullptr;

  std::map<std::string, dim> by_text_;
  nonempty_dims* enclosing_;
};

} // namespace troupe

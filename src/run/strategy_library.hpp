// Strategies that are not built in (troupe/strategy.hpp): those of shared libraries, and functions of the program
// itself. What one answers is checked by `strategy_host`.
#pragma once

#include "base/plugin_file.hpp"
#include "troupe/own_strategy.hpp"

namespace troupe {

/// What a strategy is asked about one stream of requests. The functions hold the stream's state.
struct strategy_calls {
  own_strategy::chooser choose;
  /// Empty: requests are not shared out.
  std::function<int32_t(const strategy_stream* stream, int64_t rows, int64_t* shares)> share = {};
};

/// A strategy. Immutable; a library is unloaded with the last owner.
class strategy_library {
public:
  /// Loads a file, or returns the strategy that has this handle. Throws `errc::io` if it cannot be read,
  /// `errc::invalid_argument`, naming the file and what to do, if it is not a plug-in of this version, has a name that
  /// cannot be, or no function that chooses.
  static std::shared_ptr<const strategy_library> open(const std::filesystem::path& file);
  /// Takes a function of the program. Throws `errc::invalid_argument` for a name that cannot be, and without a
  /// function.
  static std::shared_ptr<const strategy_library> of(const std::string& name, own_strategy::opener open);

  /// Returns the functions for a new stream; they may be called as long as this lives. Throws what opening throws.
  strategy_calls open_stream(uint32_t replicas) const { return open_(replicas); }
  /// Returns e.g. "the strategy plug-in 'mine' (/lib/libmine.so)" or "the strategy 'mine'".
  const std::string& description() const { return description_; }

private:
  strategy_library() = default;

  std::shared_ptr<const plugin_file> file_; // null: a function
  std::string description_;
  std::function<strategy_calls(uint32_t replicas)> open_;
};

} // namespace troupe

// Strategies from shared libraries (troupe/strategy.hpp). What one answers is checked by `strategy_host`.
#pragma once

#include "base/plugin_file.hpp"
#include "troupe/strategy.hpp"

namespace troupe {

/// A plug-in. Immutable; unloaded with the last owner.
class strategy_library {
public:
  /// Loads a file. Throws `errc::io` if it cannot be read, `errc::invalid_argument`, naming the file and what to do, if
  /// it is not a plug-in of this version, has a name that cannot be, or no function that chooses.
  static std::shared_ptr<const strategy_library> open(const std::filesystem::path& file);

  const strategy_plugin& functions() const { return plugin_; }
  /// Returns e.g. "the strategy plug-in 'mine' (/lib/libmine.so)".
  std::string description() const { return file_.description(name_); }

private:
  explicit strategy_library(const std::filesystem::path& file);

  const plugin_file file_;
  strategy_plugin plugin_{};
  std::string name_;
};

} // namespace troupe

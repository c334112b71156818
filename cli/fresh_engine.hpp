// An engine for one piece of work after the other: a device that one of them has lost is there again for the next.
#pragma once

#include "actors/engine_access.hpp"

namespace troupe::cli {

/// See the top of this file.
class fresh_engine {
public:
  /// Opens the devices. Throws what opening an engine throws.
  explicit fresh_engine(engine_options options, engine_hooks hooks = {})
      : options_(std::move(options)), hooks_(std::move(hooks)) {
    get();
  }

  /// Returns an engine with all its devices, opening them anew if one has been lost. What came from an earlier engine
  /// must not be used any more. Throws what opening an engine throws.
  engine& get() {
    if (engine_ && !engine_->lost_devices().empty()) {
      earlier_messages_ = all_gpu_messages();
      engine_.reset();
    }
    if (!engine_)
      engine_.emplace(make_engine(options_, hooks_));
    return *engine_;
  }

  /// Returns what the Vulkan validation layer has said to all engines.
  std::vector<std::string> all_gpu_messages() const {
    std::vector<std::string> all = earlier_messages_;
    if (engine_)
      for (std::string& message : gpu_messages(*engine_))
        all.push_back(std::move(message));
    return all;
  }

private:
  const engine_options options_;
  const engine_hooks hooks_;
  std::optional<engine> engine_;
  std::vector<std::string> earlier_messages_;
};

} // namespace troupe::cli

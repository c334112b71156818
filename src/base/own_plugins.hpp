// Plug-ins that are functions of the program itself: each has a handle, which goes where a plug-in's file is named.
#pragma once

#include "base/error.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace troupe {

/// The plug-ins of one kind that the program has, by handle. Thread-safe. Meant never to be destroyed: objects with
/// static storage may end after it.
template <class Plugin>
class own_plugins {
public:
  /// kind: one word, such as "policy".
  explicit own_plugins(std::string_view kind) : kind_(kind) {}

  /// Returns whether a file's name is a handle of this kind.
  bool is_handle(std::string_view name) const { return name.starts_with(kind_ + ':'); }

  /// Adds what `make` returns for a number that no other one has; returns its handle.
  template <class Make>
  std::string add(const std::string& name, Make&& make) {
    const std::lock_guard lock(mutex_);
    const uint64_t number = ++count_;
    std::string handle = fmt::format("{}:{}#{}", kind_, name, number);
    plugins_[handle] = make(number);
    return handle;
  }

  /// Throws `errc::invalid_argument` if it was dropped.
  std::shared_ptr<const Plugin> find(std::string_view handle) const {
    const std::lock_guard lock(mutex_);
    const auto found = plugins_.find(handle);
    if (found == plugins_.end())
      fail(errc::invalid_argument, "there is no {0} '{1}' any more: keep the `own_{0}` while models are loaded", kind_,
           handle);
    return found->second;
  }

  void drop(std::string_view handle) {
    std::shared_ptr<const Plugin> last; // what it holds may end for long, and ask here
    const std::lock_guard lock(mutex_);
    if (const auto found = plugins_.find(handle); found != plugins_.end())
      last = std::move(plugins_.extract(found).mapped());
  }

private:
  const std::string kind_;
  mutable std::mutex mutex_;
  uint64_t count_ = 0;
  std::map<std::string, std::shared_ptr<const Plugin>, std::less<>> plugins_;
};

} // namespace troupe

// Placement policies from shared libraries (troupe/policy.hpp). What one answers is checked by `policy_host`.
#pragma once

#include "base/plugin_file.hpp"
#include "plan/plan.hpp"
#include "troupe/policy.hpp"

namespace troupe {

/// A plug-in. Immutable; unloaded with the last owner.
class policy_library {
public:
  /// Loads a file. Throws `errc::io` if it cannot be read, `errc::invalid_argument`, naming the file and what to do, if
  /// it is not a plug-in of this version, or has a name that cannot be.
  static std::shared_ptr<const policy_library> open(const std::filesystem::path& file);

  const std::string& name() const { return name_; }
  place_function place() const { return place_; }
  /// Returns the hash of the file's bytes.
  const hash128& hash() const { return file_.hash(); }
  /// Returns e.g. "the policy plug-in 'mine' (/lib/libmine.so)".
  std::string description() const { return file_.description(name_); }

private:
  explicit policy_library(const std::filesystem::path& file);

  const plugin_file file_;
  std::string name_;
  place_function place_ = nullptr;
};

/// Returns what the policy of a plan is called: a plug-in by its own name.
std::string policy_name(const plan_options& options);

} // namespace troupe

// Placement policies from shared libraries (troupe/policy.hpp): loaded, looked at, and kept loaded as long as anybody
// may call them.
//
// A library runs in this process with all its rights: whoever names its file trusts it. What is checked is what goes
// wrong by mistake: another version, a missing entry, an answer that cannot be (`policy_host`).
#pragma once

#include "base/hash.hpp"
#include "plan/plan.hpp"
#include "troupe/policy.hpp"

#include <filesystem>

namespace troupe {

/// A plug-in. Immutable; unloaded with the last owner.
class policy_library {
public:
  /// Loads a file. Throws `errc::io` if it cannot be read, `errc::invalid_argument`, naming the file and what to do, if
  /// it is no plug-in of this version, or has a name that cannot be.
  static std::shared_ptr<const policy_library> open(const std::filesystem::path& file);

  const std::string& name() const { return name_; }
  place_function place() const { return place_; }
  /// Returns the hash of the file's bytes.
  const hash128& hash() const { return hash_; }
  /// Returns e.g. "the policy plug-in 'mine' (/lib/libmine.so)".
  std::string description() const;

private:
  struct closer {
    void operator()(void* library) const;
  };

  explicit policy_library(const std::filesystem::path& file);
  const policy_plugin& ask_entry() const;
  void take(const policy_plugin& found);

  std::string file_;
  hash128 hash_;
  std::unique_ptr<void, closer> library_;
  std::string name_;
  place_function place_ = nullptr;
};

/// Returns what the policy of a plan is called: a plug-in by its own name.
std::string policy_name(const plan_options& options);

} // namespace troupe

// Placement policies that are not built in (troupe/policy.hpp): those of shared libraries, and functions of the program
// itself. What one answers is checked by `policy_host`.
#pragma once

#include "base/plugin_file.hpp"
#include "plan/place/policy_host.hpp"
#include "plan/plan.hpp"

namespace troupe {

/// A plug-in. Immutable; a library is unloaded with the last owner.
class policy_library {
public:
  /// Loads a file, or returns the policy that has this handle. Throws `errc::io` if it cannot be read,
  /// `errc::invalid_argument`, naming the file and what to do, if it is not a plug-in of this version, or has a name
  /// that cannot be.
  static std::shared_ptr<const policy_library> open(const std::filesystem::path& file);
  /// Takes a function of the program (troupe/own_policy.hpp), by a number that no other one has. Throws
  /// `errc::invalid_argument` for a name that cannot be.
  static std::shared_ptr<const policy_library> of(std::string name, policy_call place, uint64_t number);

  const std::string& name() const { return name_; }
  const policy_call& place() const { return place_; }
  /// Returns the hash of the file's bytes. Each function of the program has another one: what it does is not known.
  const hash128& hash() const { return hash_; }
  /// Returns e.g. "the policy plug-in 'mine' (/lib/libmine.so)" or "the policy 'mine'".
  const std::string& description() const { return description_; }

private:
  policy_library() = default;

  std::shared_ptr<const plugin_file> file_; // null: a function
  std::string name_, description_;
  policy_call place_;
  hash128 hash_;
};

/// Returns what the policy of a plan is called: a plug-in by its own name.
std::string policy_name(const plan_options& options);

} // namespace troupe

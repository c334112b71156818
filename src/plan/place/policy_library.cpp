#include "plan/place/policy_library.hpp"

#include "base/error.hpp"
#include "plan/place/policies.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr plugin_entry entry{.kind = "policy plug-in",
                             .symbol = policy_entry_name,
                             .version = policy_abi_version,
                             .header = "troupe/policy.hpp"};

} // namespace

policy_library::policy_library(const std::filesystem::path& file) : file_(file, entry) {
  const auto& found = *static_cast<const policy_plugin*>(file_.ask());
  name_ = file_.checked_name(found.name);
  const auto known = policies();
  if (std::any_of(known.begin(), known.end(), [&](const policy_row& row) { return row.name == name_; }))
    fail(errc::invalid_argument,
         "the policy plug-in '{}' is called '{}', as a policy that is built in: give it another name", file_.path(),
         name_);
  if (!found.place)
    fail(errc::invalid_argument, "the policy plug-in '{}' has no function that places", file_.path());
  place_ = found.place;
}

std::shared_ptr<const policy_library> policy_library::open(const std::filesystem::path& file) {
  return std::shared_ptr<const policy_library>(new policy_library(file));
}

std::string policy_name(const plan_options& options) {
  return options.policy == placement_policy::plug_in && options.plugin ? options.plugin->name()
                                                                       : std::string(to_string(options.policy));
}

} // namespace troupe

#include "plan/place/policy_library.hpp"

#include "base/error.hpp"
#include "base/own_plugins.hpp"
#include "plan/place/policies.hpp"
#include "troupe/own_policy.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr plugin_entry entry{.kind = "policy plug-in",
                             .symbol = policy_entry_name,
                             .version = policy_abi_version,
                             .header = "troupe/policy.hpp"};

bool is_built_in(const std::string& name) {
  const auto known = policies();
  return std::any_of(known.begin(), known.end(), [&](const policy_row& row) { return row.name == name; });
}

own_plugins<policy_library>& own_policies() {
  static auto* const all = new own_plugins<policy_library>("policy");
  return *all;
}

} // namespace

std::shared_ptr<const policy_library> policy_library::open(const std::filesystem::path& path) {
  if (own_policies().is_handle(path.native()))
    return own_policies().find(path.native());
  const std::shared_ptr<policy_library> made(new policy_library);
  const auto file = std::make_shared<const plugin_file>(path, entry);
  const auto& found = *static_cast<const policy_plugin*>(file->ask());
  made->name_ = file->checked_name(found.name);
  if (is_built_in(made->name_))
    fail(errc::invalid_argument,
         "the policy plug-in '{}' is called '{}', as a policy that is built in: give it another name", file->path(),
         made->name_);
  if (!found.place)
    fail(errc::invalid_argument, "the policy plug-in '{}' has no function that places", file->path());
  made->place_ = found.place;
  made->hash_ = file->hash();
  made->description_ = file->description(made->name_);
  made->file_ = file;
  return made;
}

std::shared_ptr<const policy_library> policy_library::of(std::string name, policy_call place, uint64_t number) {
  const std::shared_ptr<policy_library> made(new policy_library);
  if (!is_plugin_name(name) || is_built_in(name))
    fail(errc::invalid_argument,
         "a policy cannot be called '{}': a name of letters, digits, '-' and '_' is needed that no built-in policy has",
         name);
  if (!place)
    fail(errc::invalid_argument, "the policy '{}' has no function that places", name);
  made->description_ = fmt::format("the policy '{}'", name);
  made->name_ = std::move(name);
  made->place_ = std::move(place);
  made->hash_ = {.high = 0, .low = number};
  return made;
}

own_policy::own_policy(std::string name, function place)
    : handle_(own_policies().add(name,
                                 [&](uint64_t number) { return policy_library::of(name, std::move(place), number); })) {
}

own_policy::~own_policy() {
  own_policies().drop(handle_);
}

std::string policy_name(const plan_options& options) {
  return options.policy == placement_policy::plug_in && options.plugin ? options.plugin->name()
                                                                       : std::string(to_string(options.policy));
}

} // namespace troupe

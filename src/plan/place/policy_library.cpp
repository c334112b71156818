#include "plan/place/policy_library.hpp"

#include "base/error.hpp"
#include "plan/place/policies.hpp"
#include "troupe/own_policy.hpp"

#include <algorithm>
#include <map>
#include <mutex>

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

constexpr std::string_view handle_prefix = "policy:";

/// The policies that the program has, by handle. Never destroyed: objects with static storage may end after it.
struct policy_register {
  std::mutex mutex;
  uint64_t count = 0;
  std::map<std::string, std::shared_ptr<const policy_library>, std::less<>> policies;
};

policy_register& registered() {
  static auto* const all = new policy_register;
  return *all;
}

} // namespace

std::shared_ptr<const policy_library> policy_library::open(const std::filesystem::path& path) {
  if (path.native().starts_with(handle_prefix)) {
    const std::lock_guard lock(registered().mutex);
    const auto found = registered().policies.find(path.native());
    if (found == registered().policies.end())
      fail(errc::invalid_argument, "there is no policy '{}' any more: keep the `own_policy` while models are loaded",
           path.native());
    return found->second;
  }
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

own_policy::own_policy(std::string name, function place) {
  const std::lock_guard lock(registered().mutex);
  const uint64_t number = ++registered().count;
  handle_ = fmt::format("{}{}#{}", handle_prefix, name, number);
  registered().policies[handle_] = policy_library::of(std::move(name), std::move(place), number);
}

own_policy::~own_policy() {
  std::shared_ptr<const policy_library> last; // what it holds may end for long, and ask here
  const std::lock_guard lock(registered().mutex);
  last = std::move(registered().policies.extract(handle_).mapped());
}

std::string policy_name(const plan_options& options) {
  return options.policy == placement_policy::plug_in && options.plugin ? options.plugin->name()
                                                                       : std::string(to_string(options.policy));
}

} // namespace troupe

#include "plan/place/policy_library.hpp"

#include "base/error.hpp"
#include "base/hash_file.hpp"
#include "plan/place/policies.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>

namespace troupe {
namespace {

constexpr size_t longest_name = 64;

/// Throws `errc::io` for what is no file that can be read: opening a pipe would wait.
hash128 hash_of_file(const std::string& file) {
  std::error_code problem;
  if (!std::filesystem::is_regular_file(file, problem))
    fail(errc::io, "the policy plug-in '{}' is no file{}", file, problem ? ": " + problem.message() : "");
  const auto found = hash_file(file);
  if (!found)
    fail(errc::io, "the policy plug-in '{}' cannot be read", file);
  return found->hash;
}

bool is_name(std::string_view name) {
  const auto fits = [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_'; };
  return !name.empty() && name.size() <= longest_name && std::all_of(name.begin(), name.end(), fits);
}

} // namespace

void policy_library::closer::operator()(void* library) const {
  dlclose(library);
}

policy_library::policy_library(const std::filesystem::path& file)
    : file_(std::filesystem::absolute(file).string()), hash_(hash_of_file(file_)),
      library_(
          dlopen(file_.c_str(), RTLD_NOW | RTLD_LOCAL)) { // absolute: else it is looked for in the system's folders
  if (!library_)
    fail(errc::invalid_argument,
         "the policy plug-in '{}' cannot be loaded: {}; it must be a shared library for this machine", file_,
         dlerror());
  take(ask_entry());
}

std::shared_ptr<const policy_library> policy_library::open(const std::filesystem::path& file) {
  return std::shared_ptr<const policy_library>(new policy_library(file));
}

const policy_plugin& policy_library::ask_entry() const {
  const auto entry = reinterpret_cast<policy_entry>(dlsym(library_.get(), policy_entry_name));
  if (!entry)
    fail(errc::invalid_argument,
         "'{}' is no policy plug-in: it exports no function '{}'; define it as troupe/policy.hpp says, extern \"C\" "
         "and visible",
         file_, policy_entry_name);
  const policy_plugin* found = nullptr;
  try {
    found = entry();
  } catch (...) {
    fail(errc::invalid_argument, "the policy plug-in '{}' threw an exception when it was asked what it is", file_);
  }
  if (!found)
    fail(errc::invalid_argument, "the policy plug-in '{}' says nothing: '{}' returned null", file_, policy_entry_name);
  return *found;
}

void policy_library::take(const policy_plugin& found) {
  if (found.abi_version != policy_abi_version) // nothing else of it may be looked at
    fail(errc::invalid_argument,
         "the policy plug-in '{}' is for version {} of the interface, this troupe has version {}: compile it with the "
         "troupe/policy.hpp of this one",
         file_, found.abi_version, policy_abi_version);
  if (!found.name || !is_name(found.name))
    fail(errc::invalid_argument, "the policy plug-in '{}' has no name of 1 to {} letters, digits, '-' and '_'", file_,
         longest_name);
  name_ = found.name;
  const auto known = policies();
  if (std::any_of(known.begin(), known.end(), [&](const policy_row& row) { return row.name == name_; }))
    fail(errc::invalid_argument,
         "the policy plug-in '{}' is called '{}', as a policy that is built in: give it another name", file_, name_);
  if (!found.place)
    fail(errc::invalid_argument, "the policy plug-in '{}' has no function that places", file_);
  place_ = found.place;
}

std::string policy_library::description() const {
  return fmt::format("the policy plug-in '{}' ({})", name_, file_);
}

std::string policy_name(const plan_options& options) {
  return options.policy == placement_policy::plug_in && options.plugin ? options.plugin->name()
                                                                       : std::string(to_string(options.policy));
}

} // namespace troupe

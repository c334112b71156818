#include "base/plugin_file.hpp"

#include "base/hash_file.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>

namespace troupe {
namespace {

constexpr size_t longest_name = 64;

/// Throws `errc::io` if it is not a regular file that can be read: opening a pipe would wait.
hash128 hash_of(const std::string& file, const char* kind) {
  std::error_code problem;
  if (!std::filesystem::is_regular_file(file, problem))
    fail(errc::io, "the {} '{}' is not a file{}", kind, file, problem ? ": " + problem.message() : "");
  const auto found = hash_file(file);
  if (!found)
    fail(errc::io, "the {} '{}' cannot be read", kind, file);
  return found->hash;
}

} // namespace

bool is_plugin_name(std::string_view name) {
  const auto fits = [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_'; };
  return !name.empty() && name.size() <= longest_name && std::all_of(name.begin(), name.end(), fits);
}

void plugin_file::closer::operator()(void* library) const {
  dlclose(library);
}

plugin_file::plugin_file(const std::filesystem::path& file, const plugin_entry& entry)
    : entry_(entry), path_(std::filesystem::absolute(file).string()), hash_(hash_of(path_, entry.kind)),
      library_(
          dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL)) { // absolute: else it is looked for in the system's folders
  if (!library_)
    fail(errc::invalid_argument, "the {} '{}' cannot be loaded: {}; it must be a shared library for this machine",
         entry_.kind, path_, dlerror());
}

const void* plugin_file::ask() const {
  const auto entry = reinterpret_cast<const void* (*)()>(dlsym(library_.get(), entry_.symbol));
  if (!entry)
    fail(errc::invalid_argument,
         "'{}' is not a {}: it exports no function '{}'; define it as {} says, extern \"C\" and visible", path_,
         entry_.kind, entry_.symbol, entry_.header);
  const void* found = call_plugin(fmt::format("the {} '{}'", entry_.kind, path_), "it should return what it is",
                                  [&] { return entry(); });
  if (!found)
    fail(errc::invalid_argument, "the {} '{}' says nothing: '{}' returned null", entry_.kind, path_, entry_.symbol);
  if (const uint32_t version = *static_cast<const uint32_t*>(found); version != entry_.version)
    fail(errc::invalid_argument,
         "the {} '{}' is for version {} of the interface, this troupe has version {}: compile it with the {} of this "
         "one",
         entry_.kind, path_, version, entry_.version, entry_.header);
  return found;
}

std::string plugin_file::checked_name(const char* name) const {
  if (!name || !is_plugin_name(name))
    fail(errc::invalid_argument, "the {} '{}' has no name of 1 to {} letters, digits, '-' and '_'", entry_.kind, path_,
         longest_name);
  return name;
}

std::string failure_reason(int32_t status, const std::string& reported) {
  return reported.empty() ? fmt::format("status {}, and no reason given", status) : reported;
}

std::string plugin_file::description(const std::string& name) const {
  return fmt::format("the {} '{}' ({})", entry_.kind, name, path_);
}

} // namespace troupe

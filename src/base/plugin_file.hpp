// Shared libraries that add something to troupe (troupe/policy.hpp, troupe/strategy.hpp): loaded, looked at, and kept
// loaded as long as they may be called.
//
// A library runs in this process with all its rights: a user who names its file trusts it. The checks find
// mistakes: another version, a missing entry, an impossible name.
#pragma once

#include "base/error.hpp"
#include "base/hash.hpp"

#include <filesystem>
#include <memory>
#include <string_view>

namespace troupe {

/// What a library must export.
struct plugin_entry {
  const char* kind;   // what errors call the library, such as "policy plug-in"
  const char* symbol; // a function without parameters that returns a struct that begins with its version
  uint32_t version;
  const char* header; // where the interface is described
};

/// A library that is loaded; unloaded at the end.
class plugin_file {
public:
  /// Throws `errc::io` if the file cannot be read, `errc::invalid_argument`, naming the file and what to do, if it is
  /// not a library for this machine.
  plugin_file(const std::filesystem::path& file, const plugin_entry& entry);

  /// Returns what the entry returns. Throws `errc::invalid_argument` if there is no entry, if it throws or returns
  /// null, or if that is of another version: then nothing else of it may be looked at.
  const void* ask() const;
  /// Returns a plug-in's name; throws `errc::invalid_argument` unless it is 1 to 64 letters, digits, '-' and '_'.
  std::string checked_name(const char* name) const;
  /// Returns e.g. "the policy plug-in 'mine' (/lib/libmine.so)".
  std::string description(const std::string& name) const;

  const std::string& path() const { return path_; }
  /// Returns the hash of the file's bytes.
  const hash128& hash() const { return hash_; }

private:
  struct closer {
    void operator()(void* library) const;
  };

  const plugin_entry entry_;
  std::string path_;
  hash128 hash_;
  std::unique_ptr<void, closer> library_;
};

/// Whether a text may be the name of a plug-in: 1 to 64 letters, digits, '-' and '_'.
bool is_plugin_name(std::string_view name);

/// Calls a function of a plug-in that `who` describes. Throws `errc::invalid_argument` if that throws: `advice` says
/// what it should do instead.
template <class Function>
auto call_plugin(std::string_view who, std::string_view advice, Function&& function) {
  try {
    return function();
  } catch (const std::exception& e) {
    fail(errc::invalid_argument, "{} threw an exception ({}); {}", who, e.what(), advice);
  } catch (...) {
    fail(errc::invalid_argument, "{} threw an exception; {}", who, advice);
  }
}

/// Returns why a function of a plug-in has failed: what it reported, or that it returned `status` and said nothing.
std::string failure_reason(int32_t status, const std::string& reported);

} // namespace troupe

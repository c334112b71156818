// Which of the ways to run a call a GPU takes: the first, as the launch rules have them, unless another was measured to
// be faster there (`troupe profile MODEL --tune`).
//
// A choice names a call and a kernel by hashes. That of the kernel covers its code, the driver that compiles it and how
// it is launched: if one of these changes, the choice is not found and the rules decide. Plans do not know kernels: a
// device chooses when it installs a bound plan, so choices are a device's own, on whatever host it is.
#pragma once

#include "base/hash.hpp"
#include "launch/launch.hpp"

#include <functional>
#include <mutex>
#include <unordered_map>

namespace troupe {

struct op_def;

/// Returns the key of a call: of operator, row, attributes, and the operands' types, dims, layouts, constness, parts
/// and known elements.
hash128 key_of_call(const op_def& def, const gpu_call& call);

/// Returns a hash of a shader's code and of what compiles it, by the shader's name.
using shader_revision = std::function<hash128(std::string_view shader)>;

/// Returns the key of a way to run a call; the parameters' values are the call's.
hash128 key_of_kernel(const launch_list& list, const shader_revision& revision);

/// The choices of one device. Thread-safe: kernels that are chosen from then on go by what was set last.
class kernel_choices {
public:
  explicit kernel_choices(shader_revision revision) : revision_(std::move(revision)) {}

  /// `kernels`: by call.
  void set(std::unordered_map<hash128, hash128> kernels);

  /// Returns the way that was chosen for the call; nullopt if none was, or if there is no such way any more. `usual`:
  /// what the launch rules list for it.
  std::optional<launch_list> find(const op_def& def, const gpu_call& call, const launch_lists& usual) const;

  const shader_revision& revision() const { return revision_; }

private:
  const shader_revision revision_;
  mutable std::mutex mutex_;
  std::unordered_map<hash128, hash128> kernels_; // by call; guarded by mutex_
};

} // namespace troupe

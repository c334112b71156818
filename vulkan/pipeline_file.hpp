// The file that keeps a driver's compiled pipelines between runs of the program.
//
// Its name says which GPU, driver and shaders it is for, so that any change is a miss; its content has a checksum,
// because a driver that is handed a damaged cache may crash. A file that cannot be read or written is not an error:
// pipelines are then compiled again. Drivers only ever add to their caches, so a file that has become too large is
// begun anew. It lists the kernels that it has: to ask a driver for one takes about a millisecond, and a first run asks
// for thousands.
#pragma once

#include "base/hash.hpp"
#include "launch/kernel_choices.hpp"
#include "vulkan/snapshot.hpp"

#include <span>

namespace troupe::vulkan {

/// Returns what compiles a GPU's kernels: the driver, for such GPUs, and all shaders.
hash128 compiler_of(const gpu_snapshot& s);

/// Returns the file's path in the user's cache folder (XDG_CACHE_HOME, else ~/.cache); empty if there is none.
std::string pipeline_file_path(const gpu_snapshot& s);

/// Returns what choices of kernels on a GPU depend on besides their launches: each shader's code, and the driver. Lives
/// as long as the process.
shader_revision shader_revisions_of(const gpu_snapshot& s);

/// What the file holds.
struct stored_pipelines {
  std::vector<hash128> kernels;  // hashes of their keys (`hash_of`), in any order
  std::vector<std::byte> driver; // the driver's cache

  bool operator==(const stored_pipelines&) const = default;
};

/// Returns what `path` holds; nothing if it is missing, damaged, or larger than `max_bytes`.
stored_pipelines read_pipeline_file(const std::string& path, int64_t max_bytes = int64_t{256} << 20);

/// Writes `path`, atomically: readers see the old file or the new one.
void write_pipeline_file(const std::string& path, const stored_pipelines& content);

} // namespace troupe::vulkan

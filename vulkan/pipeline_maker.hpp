// Makes compute pipelines from the embedded shaders, through a cache that a file keeps between processes
// (pipeline_file.hpp).
#pragma once

#include "vulkan/device_context.hpp"
#include "vulkan/shader_library.hpp"

#include <atomic>
#include <map>
#include <mutex>
#include <optional>

namespace troupe::vulkan {

/// What makes a pipeline.
struct pipeline_key {
  std::string shader; // "matmul.f32"
  std::vector<uint32_t> constants;
  uint32_t buffers = 0; // storage buffers, after the parameter block
  /// Words of the parameter block, if they are constants of the code (block_constants.hpp).
  std::vector<uint32_t> block;

  auto operator<=>(const pipeline_key&) const = default;
};

/// See the top of this file. Thread-safe.
class pipeline_maker {
public:
  struct layouts {
    set_layout_handle set;
    pipeline_layout_handle pipeline;
  };

  /// `alter`, where it is not empty, makes the code that is compiled from a shader's.
  explicit pipeline_maker(device_context& context, shader_filter alter = {});
  /// Writes the file if a pipeline was compiled.
  ~pipeline_maker();

  /// Returns the layouts of pipelines with so many storage buffers.
  const layouts& layouts_for(uint32_t buffers) const;

  /// Makes a pipeline. Throws what the driver reports, naming the shader.
  pipeline_handle make(const pipeline_key& key);
  /// Makes it if the driver need not compile it; nullopt if it would, or if the driver does not know beforehand.
  std::optional<pipeline_handle> load(const pipeline_key& key);

private:
  VkResult create(const pipeline_key& key, VkPipelineCreateFlags flags, pipeline_handle& made);
  void load_cache();
  void save_cache() const;

  device_context& context_;
  const shader_filter alter_;
  pipeline_cache_handle cache_;
  std::string cache_file_;
  mutable std::mutex mutex_;
  mutable std::map<uint32_t, layouts> layouts_; // made when they are asked for; guarded by mutex_
  std::atomic<bool> changed_{false};
};

} // namespace troupe::vulkan

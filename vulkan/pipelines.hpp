// Compute pipelines, one for each shader, its specialisation constants and number of buffers; compiled once, kept in memory
// and, as the driver's binary, in a file of the user's cache folder (pipeline_file.hpp).
//
// `prepare` compiles what is missing on several threads, because drivers take milliseconds for each.
#pragma once

#include "vulkan/device_context.hpp"
#include "vulkan/shader_library.hpp"

#include <map>
#include <span>

namespace troupe::vulkan {

/// What makes a pipeline.
struct pipeline_key {
  std::string shader; // "matmul.f32"
  std::vector<uint32_t> constants;
  uint32_t buffers = 0; // storage buffers, behind the parameter block

  auto operator<=>(const pipeline_key&) const = default;
};

struct pipeline {
  VkPipeline handle = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
};

/// All pipelines of one device. Used by one thread at a time.
class pipelines {
public:
  /// `alter`, where it is not empty, makes the code that is compiled from a shader's.
  explicit pipelines(device_context& context, shader_filter alter = {});
  ~pipelines();

  /// Compiles those of `keys` that are not there yet. Throws what the driver reports, naming the shader.
  void prepare(std::span<const pipeline_key> keys);

  /// Returns a prepared pipeline.
  pipeline find(const pipeline_key& key) const;

private:
  struct layouts {
    set_layout_handle set;
    pipeline_layout_handle pipeline;
  };

  const layouts& layouts_for(uint32_t buffers);
  pipeline_handle compile(const pipeline_key& key, VkPipelineLayout layout) const;
  void load_cache();
  void save_cache() const;

  device_context& context_;
  const shader_filter alter_;
  pipeline_cache_handle cache_;
  std::string cache_file_;
  std::map<uint32_t, layouts> layouts_;
  std::map<pipeline_key, pipeline_handle> made_;
  bool changed_ = false;
};

} // namespace troupe::vulkan

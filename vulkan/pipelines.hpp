// Compute pipelines, one for each shader, its constants and number of buffers; compiled once, kept in memory
// and, as the driver's binary, in a file of the user's cache folder (pipeline_file.hpp).
//
// Programs hold the pipelines that they run. Of those that no program holds, some hundred are kept for programs to
// come, those that were asked for last.
//
// `prepare` compiles what is missing on several threads, because drivers take milliseconds for each.
#pragma once

#include "vulkan/device_context.hpp"
#include "vulkan/shader_library.hpp"

#include <map>
#include <memory>
#include <span>

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

struct pipeline {
  VkPipeline handle = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
};

/// All pipelines of one device. Used by one thread at a time.
class pipelines {
public:
  using handle = std::shared_ptr<const pipeline_handle>;

  /// `alter`, where it is not empty, makes the code that is compiled from a shader's. Keeps at most `max_unused`
  /// pipelines that nobody holds.
  explicit pipelines(device_context& context, shader_filter alter = {}, size_t max_unused = 512);
  ~pipelines();

  /// Compiles those of `keys` that are not there yet, and returns them all, each once. Throws what the driver reports,
  /// naming the shader.
  [[nodiscard]] std::vector<handle> prepare(std::span<const pipeline_key> keys);

  /// Returns a prepared pipeline that is held.
  pipeline find(const pipeline_key& key) const;

  /// Returns how many there are.
  size_t size() const { return made_.size(); }

private:
  struct layouts {
    set_layout_handle set;
    pipeline_layout_handle pipeline;
  };

  struct compiled {
    handle held;
    uint64_t asked = 0; // the number of the last call that asked for it
  };

  const layouts& layouts_for(uint32_t buffers);
  pipeline_handle compile(const pipeline_key& key, VkPipelineLayout layout) const;
  void compile_missing(std::span<const pipeline_key> keys);
  void drop_unused();
  void load_cache();
  void save_cache() const;

  device_context& context_;
  const shader_filter alter_;
  pipeline_cache_handle cache_;
  std::string cache_file_;
  std::map<uint32_t, layouts> layouts_;
  std::map<pipeline_key, compiled> made_;
  const size_t max_unused_;
  uint64_t calls_ = 0; // of `prepare`
  bool changed_ = false;
};

} // namespace troupe::vulkan

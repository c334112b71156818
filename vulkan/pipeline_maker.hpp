// Makes compute pipelines from the embedded shaders, through a cache that a file keeps between processes
// (pipeline_file.hpp). What was compiled for an equal GPU of this process is not compiled again (kernel_exchange.hpp).
#pragma once

#include "vulkan/device_context.hpp"
#include "vulkan/kernel_exchange.hpp"
#include "vulkan/pipeline_file.hpp"
#include "vulkan/shader_library.hpp"

#include <map>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <unordered_set>

namespace troupe::vulkan {

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

  /// Makes a pipeline with the driver's cache `through`, null for none, and returns what the driver says.
  VkResult create(const pipeline_key& key, VkPipelineCreateFlags flags, VkPipelineCache through, pipeline_handle& made);

  /// Returns the layouts of pipelines with `buffers` storage buffers.
  const layouts& layouts_for(uint32_t buffers) const;

  /// Makes a pipeline. Throws what the driver reports, naming the shader.
  pipeline_handle make(const pipeline_key& key) { return std::move(*make(key, true)); }
  /// The same; nullopt if it is being compiled for an equal GPU.
  std::optional<pipeline_handle> make_unless_elsewhere(const pipeline_key& key) { return make(key, false); }
  /// Makes it if the driver need not compile it; nullopt if it would, or if the driver does not know beforehand.
  std::optional<pipeline_handle> load(const pipeline_key& key);
  /// Makes it if it was compiled for an equal GPU.
  std::optional<pipeline_handle> copy_from_equal_gpu(const pipeline_key& key);
  /// Adds the first `count` constants of the kernels that were compiled for equal GPUs and have as many.
  void add_constants_of_equal_gpus(size_t count, std::set<std::vector<uint32_t>>& to) const {
    if (exchange_)
      exchange_->add_first_constants(count, to);
  }

private:
  using code = kernel_exchange::code;

  std::optional<pipeline_handle> make(const pipeline_key& key, bool waits);
  /// Compiles a kernel, or loads `known`, and hands it to equal GPUs if it was not known.
  pipeline_handle make_for_all(const pipeline_key& key, const code& known);
  pipeline_maker(device_context& context, shader_filter alter, std::string cache_file, const stored_pipelines& stored);
  pipeline_cache_handle make_cache(std::span<const std::byte> content) const;
  /// Notes that `cache_` has a kernel.
  void note(const pipeline_key& key);
  code content_of(VkPipelineCache cache) const;

  device_context& context_;
  const shader_filter alter_;
  const std::string cache_file_;
  /// Null for shaders that a test has altered, and where drivers cannot say whether a kernel is in a cache.
  const std::shared_ptr<kernel_exchange> exchange_;
  const pipeline_cache_handle cache_;
  mutable std::shared_mutex cache_mutex_; // exclusive where `cache_` takes in another cache
  mutable std::mutex mutex_;
  mutable std::map<uint32_t, layouts> layouts_; // made when they are asked for; this and all below: guarded by mutex_
  std::unordered_set<hash128> cached_;          // the kernels that `cache_` has
  bool changed_ = false;                        // since the file was read
};

} // namespace troupe::vulkan

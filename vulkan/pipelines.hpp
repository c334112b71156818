// Compute pipelines, one for each shader, its constants and number of buffers; compiled once, kept in memory
// and, as the driver's binary, in a file of the user's cache folder (pipeline_file.hpp).
//
// Programs hold the pipelines that they run. Of those that no program holds, some hundred are kept for programs to
// come, those that were asked for last.
//
// Drivers take milliseconds to seconds for each. `prepare` compiles what is missing on several threads and waits;
// `prepare_later` does not wait.
#pragma once

#include "vulkan/background_compiler.hpp"

#include <set>

namespace troupe::vulkan {

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
  /// pipelines that have no owner.
  explicit pipelines(device_context& context, shader_filter alter = {}, size_t max_unused = 512)
      : maker_(context, std::move(alter)), max_unused_(max_unused), later_(maker_) {}

  /// Compiles those of `keys` that are not there yet, and returns them all, each once. Throws what the driver reports,
  /// naming the shader.
  [[nodiscard]] std::vector<handle> prepare(std::span<const pipeline_key> keys);

  /// Returns whether a pipeline is there without compiling: what the file or an equal GPU has is loaded.
  bool is_ready(const pipeline_key& key);

  /// Has those that are not there compiled while the caller goes on. Returns null if there is nothing to wait for: all
  /// are there, or the driver has refused them.
  std::shared_ptr<const kernel_batch> prepare_later(std::vector<wanted_kernel> kernels);
  /// Returns how many are queued for that or being compiled.
  size_t pending() const { return later_.pending(); }

  /// Returns a prepared pipeline that is held.
  pipeline find(const pipeline_key& key) const;

  /// Returns the first `count` constants of all that are there, or at an equal GPU, and have as many, each once.
  std::vector<std::vector<uint32_t>> first_constants(size_t count) const;

  /// Returns how many there are.
  size_t size() const { return made_.size(); }

private:
  struct compiled {
    handle held;
    uint64_t asked = 0; // the number of the last call that asked for it
  };

  void add(pipeline_key key, pipeline_handle made);
  void take_compiled();
  void compile_missing(std::span<const pipeline_key> keys);
  void drop_unused();

  pipeline_maker maker_;
  std::map<pipeline_key, compiled> made_;
  std::set<pipeline_key> refused_; // by the driver, when they were compiled later
  const size_t max_unused_;
  uint64_t calls_ = 0;        // of `prepare`
  background_compiler later_; // last: its threads use `maker_`
};

} // namespace troupe::vulkan

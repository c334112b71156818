// Compiles kernels that no run waits for, on few threads of low priority, those first that gain the most.
#pragma once

#include "vulkan/pipeline_maker.hpp"

#include <condition_variable>
#include <memory>
#include <span>
#include <thread>

namespace troupe::vulkan {

/// Kernels that are of use together.
class kernel_batch {
public:
  explicit kernel_batch(size_t kernels) : left_(kernels) {}

  /// Returns whether all of them are compiled, or cannot be.
  bool is_done() const { return left_.load(std::memory_order_acquire) == 0; }
  void one_is_done() { left_.fetch_sub(1, std::memory_order_release); }

private:
  std::atomic<size_t> left_;
};

/// A kernel that can wait, and the microseconds that it should save each run.
struct wanted_kernel {
  pipeline_key key;
  double gain = 0;
};

/// See the top of this file. `add` and `take` are the owner's; the rest is thread-safe.
class background_compiler {
public:
  struct result {
    pipeline_key key;
    pipeline_handle made; // empty if the driver refused it
  };

  explicit background_compiler(pipeline_maker& maker) : maker_(maker) {}
  /// Ends after the kernels that are being compiled.
  ~background_compiler();

  /// Queues kernels; one that is queued already is compiled once.
  std::shared_ptr<const kernel_batch> add(std::span<const wanted_kernel> kernels);
  /// Returns what has been compiled since the last call.
  std::vector<result> take();
  /// Returns how many kernels are queued or being compiled.
  size_t pending() const;

private:
  struct task {
    double gain = 0;
    bool begun = false;
    std::vector<std::shared_ptr<kernel_batch>> batches; // that wait for it
  };

  void work();
  /// Begins the task of the largest gain; null if there is none.
  const pipeline_key* begin_next();
  void end(const pipeline_key& key, pipeline_handle made);

  pipeline_maker& maker_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<pipeline_key, task> tasks_; // this and all below: guarded by mutex_
  std::vector<result> results_;
  bool ending_ = false;
  std::vector<std::jthread> threads_;
};

} // namespace troupe::vulkan

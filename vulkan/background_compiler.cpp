#include "vulkan/background_compiler.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace troupe::vulkan {
namespace {

/// A quarter of the processor: runs need the rest.
size_t thread_count() {
  constexpr unsigned most = 8;
  return std::clamp(std::thread::hardware_concurrency() / 4, 1u, most);
}

/// Lets all other threads go first. Linux takes a thread's number for a process's.
void lower_own_priority() {
  constexpr int lower = 10;
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), lower); // if it fails, it only takes time from others
}

} // namespace

background_compiler::~background_compiler() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  threads_.clear();
}

std::shared_ptr<const kernel_batch> background_compiler::add(std::span<const wanted_kernel> kernels) {
  const auto batch = std::make_shared<kernel_batch>(kernels.size());
  const std::lock_guard lock(mutex_);
  for (const wanted_kernel& k : kernels) {
    task& t = tasks_[k.key];
    t.gain += k.gain;
    t.batches.push_back(batch);
  }
  for (const size_t wanted = std::min(thread_count(), tasks_.size()); threads_.size() < wanted;)
    threads_.emplace_back([this] { work(); });
  changed_.notify_all();
  return batch;
}

std::vector<background_compiler::result> background_compiler::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(results_, {});
}

size_t background_compiler::pending() const {
  const std::lock_guard lock(mutex_);
  return tasks_.size();
}

void background_compiler::work() {
  lower_own_priority();
  while (const pipeline_key* key = begin_next()) {
    pipeline_handle made;
    try {
      made = maker_.make(*key);
    } catch (const std::exception&) { // a run that needs it will say why
    }
    end(*key, std::move(made));
  }
}

const pipeline_key* background_compiler::begin_next() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    std::pair<const pipeline_key, task>* best = nullptr;
    for (auto& entry : tasks_)
      if (!entry.second.begun && (!best || entry.second.gain > best->second.gain))
        best = &entry;
    if (best) {
      best->second.begun = true;
      return &best->first; // stays where it is until `end`
    }
    changed_.wait(lock);
  }
  return nullptr;
}

void background_compiler::end(const pipeline_key& key, pipeline_handle made) {
  const std::lock_guard lock(mutex_);
  const auto found = tasks_.find(key);
  results_.push_back({found->first, std::move(made)});
  for (const auto& batch : found->second.batches)
    batch->one_is_done();
  tasks_.erase(found);
}

} // namespace troupe::vulkan

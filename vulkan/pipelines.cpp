#include "vulkan/pipelines.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <utility>

namespace troupe::vulkan {
namespace {

constexpr unsigned max_compile_threads = 64;

/// Calls `work(i)` for i < count on several threads; rethrows the first exception.
template <class F>
void for_each_parallel(size_t count, F&& work) {
  std::atomic<size_t> next{0};
  std::exception_ptr first;
  std::mutex mutex;
  const auto loop = [&] {
    for (size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!first)
          first = std::current_exception();
      }
    }
  };
  const size_t threads =
      std::min<size_t>({count, std::max(1u, std::thread::hardware_concurrency()), max_compile_threads});
  std::vector<std::jthread> others;
  for (size_t t = 1; t < threads; ++t)
    others.emplace_back(loop);
  loop();
  others.clear();
  if (first)
    std::rethrow_exception(first);
}

} // namespace

std::vector<pipelines::handle> pipelines::prepare(std::span<const pipeline_key> keys) {
  take_compiled();
  compile_missing(keys);
  ++calls_;
  std::vector<handle> wanted;
  for (const pipeline_key& key : keys)
    if (compiled& c = made_.at(key); std::exchange(c.asked, calls_) != calls_)
      wanted.push_back(c.held);
  drop_unused();
  return wanted;
}

void pipelines::compile_missing(std::span<const pipeline_key> keys) {
  std::vector<pipeline_key> missing;
  for (const pipeline_key& key : keys)
    if (!made_.contains(key))
      missing.push_back(key);
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  // What takes longest begins first, so that nothing long is left at the end; long code takes long.
  std::stable_sort(missing.begin(), missing.end(), [](const pipeline_key& a, const pipeline_key& b) {
    return find_shader(a.shader).size() > find_shader(b.shader).size();
  });
  std::vector<std::optional<pipeline_handle>> made(missing.size());
  for_each_parallel(missing.size(), [&](size_t i) { made[i] = maker_.make_unless_elsewhere(missing[i]); });
  std::vector<size_t> elsewhere; // those that equal GPUs compile meanwhile
  for (size_t i = 0; i < missing.size(); ++i)
    if (!made[i])
      elsewhere.push_back(i);
  for_each_parallel(elsewhere.size(), [&](size_t k) { made[elsewhere[k]] = maker_.make(missing[elsewhere[k]]); });
  for (size_t i = 0; i < missing.size(); ++i)
    add(std::move(missing[i]), std::move(*made[i]));
}

void pipelines::add(pipeline_key key, pipeline_handle made) {
  made_.try_emplace(std::move(key), compiled{std::make_shared<const pipeline_handle>(std::move(made)), calls_});
}

void pipelines::take_compiled() {
  for (background_compiler::result& r : later_.take())
    if (r.made)
      add(std::move(r.key), std::move(r.made));
    else
      refused_.insert(std::move(r.key));
}

bool pipelines::is_ready(const pipeline_key& key) {
  if (made_.contains(key))
    return true;
  take_compiled();
  if (made_.contains(key))
    return true;
  std::optional<pipeline_handle> made = maker_.copy_from_equal_gpu(key);
  if (!made)
    made = maker_.load(key);
  if (!made)
    return false;
  add(key, std::move(*made));
  return true;
}

std::shared_ptr<const kernel_batch> pipelines::prepare_later(std::vector<wanted_kernel> kernels) {
  take_compiled();
  std::erase_if(kernels, [&](const wanted_kernel& k) { return refused_.contains(k.key) || is_ready(k.key); });
  return kernels.empty() ? nullptr : later_.add(kernels);
}

void pipelines::drop_unused() {
  std::vector<std::map<pipeline_key, compiled>::iterator> unused;
  for (auto it = made_.begin(); it != made_.end(); ++it)
    if (it->second.held.use_count() == 1)
      unused.push_back(it);
  if (unused.size() <= max_unused_)
    return;
  const auto last = unused.end() - static_cast<std::ptrdiff_t>(max_unused_);
  std::nth_element(unused.begin(), last - 1, unused.end(),
                   [](const auto& a, const auto& b) { return a->second.asked < b->second.asked; });
  for (auto it = unused.begin(); it != last; ++it)
    made_.erase(*it);
}

pipeline pipelines::find(const pipeline_key& key) const {
  const auto it = made_.find(key);
  expects(it != made_.end(), "a pipeline was not prepared");
  const pipeline_maker::layouts& l = maker_.layouts_for(key.buffers);
  return {it->second.held->get(), l.pipeline.get(), l.set.get()};
}

std::vector<std::vector<uint32_t>> pipelines::first_constants(size_t count) const {
  std::set<std::vector<uint32_t>> found;
  for (const auto& [key, kernel] : made_)
    add_first_constants(key, count, found);
  maker_.add_constants_of_equal_gpus(count, found);
  return {found.begin(), found.end()};
}

} // namespace troupe::vulkan

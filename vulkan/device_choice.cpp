#include "vulkan/device_choice.hpp"

#include "base/error.hpp"
#include "vulkan/cooperative_matrix.hpp"

#include <algorithm>
#include <numeric>

namespace troupe::vulkan {
namespace {

int rank_of(const gpu_snapshot& s) {
  if (!why_unusable(s).empty())
    return 5;
  switch (s.type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return 0;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return 1;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return 2;
    case VK_PHYSICAL_DEVICE_TYPE_OTHER: return 3;
    default: return 4;
  }
}

constexpr VkMemoryPropertyFlags host_access = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
constexpr VkMemoryPropertyFlags coherent = VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
constexpr VkMemoryPropertyFlags cached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
constexpr VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;

/// How much a memory type is wanted for a use; 0 if it cannot serve.
int fitness(VkMemoryPropertyFlags flags, memory_use use) {
  const auto has = [&](VkMemoryPropertyFlags wanted) { return (flags & wanted) == wanted ? 1 : 0; };
  if (flags & (VK_MEMORY_PROPERTY_PROTECTED_BIT | VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT))
    return 0;
  switch (use) {
    // Mapped device memory is a small window on many discrete GPUs: plain device memory comes first.
    case memory_use::device: return has(local) * (2 - has(host_access));
    case memory_use::upload:
      return has(host_access) * (8 + 4 * has(coherent) + 2 * (1 - has(local)) + (1 - has(cached)));
    case memory_use::parameters: return has(host_access) * (8 + 4 * has(local) + 2 * has(coherent) + (1 - has(cached)));
    case memory_use::download: return has(host_access) * (8 + 4 * has(cached) + 2 * has(coherent) + (1 - has(local)));
    case memory_use::imported: return has(host_access | coherent) * (4 + 2 * has(cached) + (1 - has(local)));
  }
  return 0;
}

uint32_t device_heap(const gpu_snapshot& s) {
  return s.memory_types.at(memory_type_for(s, memory_use::device)).heap;
}

} // namespace

std::string why_unusable(const gpu_snapshot& s) {
  if (s.api_version < VK_API_VERSION_1_2)
    return fmt::format("its driver offers Vulkan {}.{}, and 1.2 is needed", VK_API_VERSION_MAJOR(s.api_version),
                       VK_API_VERSION_MINOR(s.api_version));
  if (!s.timeline_semaphore)
    return "its driver has no timeline semaphores";
  if (std::none_of(s.queues.begin(), s.queues.end(),
                   [](const queue_family& q) { return q.flags & VK_QUEUE_COMPUTE_BIT; }))
    return "it has no queue for compute";
  if (s.max_group_invocations < 256)
    return fmt::format("its workgroups hold {} invocations, and 256 are needed", s.max_group_invocations);
  return {};
}

bool is_hardware(const gpu_snapshot& s) {
  return s.type != VK_PHYSICAL_DEVICE_TYPE_CPU;
}

std::vector<size_t> order_of(std::span<const gpu_snapshot> snapshots) {
  std::vector<size_t> order(snapshots.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return rank_of(snapshots[a]) < rank_of(snapshots[b]); });
  return order;
}

uint32_t compute_family(const gpu_snapshot& s) {
  std::optional<uint32_t> any;
  for (uint32_t i = 0; i < s.queues.size(); ++i) {
    const VkQueueFlags flags = s.queues[i].flags;
    if (!(flags & VK_QUEUE_COMPUTE_BIT) || s.queues[i].count == 0)
      continue;
    if (!(flags & VK_QUEUE_GRAPHICS_BIT))
      return i;
    any = any.value_or(i);
  }
  expects(any.has_value(), "a GPU without a compute queue was chosen");
  return *any;
}

std::optional<uint32_t> copy_family(const gpu_snapshot& s) {
  const uint32_t timestamp_bits = s.queues.at(compute_family(s)).timestamp_bits;
  for (uint32_t i = 0; i < s.queues.size() && s.host_query_reset; ++i) {
    const queue_family& q = s.queues[i];
    const bool works = q.flags & (VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT);
    if ((q.flags & VK_QUEUE_TRANSFER_BIT) && !works && q.count > 0 && q.timestamp_bits == timestamp_bits)
      return i;
  }
  return std::nullopt;
}

std::optional<uint32_t> find_memory_type(const gpu_snapshot& s, memory_use use, uint32_t allowed) {
  int best = 0;
  std::optional<uint32_t> chosen;
  for (uint32_t i = 0; i < s.memory_types.size(); ++i) {
    const int fit = allowed & (1u << i) ? fitness(s.memory_types[i].flags, use) : 0;
    if (fit > best) {
      best = fit;
      chosen = i;
    }
  }
  return chosen;
}

uint32_t memory_type_for(const gpu_snapshot& s, memory_use use, uint32_t allowed) {
  const std::optional<uint32_t> found = find_memory_type(s, use, allowed);
  if (!found)
    fail(errc::device_failed, "{}: no memory type serves what is asked for", s.name);
  return *found;
}

bool is_unified(const gpu_snapshot& s) {
  const VkMemoryPropertyFlags flags = s.memory_types.at(memory_type_for(s, memory_use::device)).flags;
  const bool integrated = s.type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU || s.type == VK_PHYSICAL_DEVICE_TYPE_CPU;
  return integrated && (flags & host_access);
}

bool maps_own_memory(const gpu_snapshot& s) {
  const memory_type& t = s.memory_types.at(memory_type_for(s, memory_use::parameters));
  constexpr VkMemoryPropertyFlags wanted = local | host_access | coherent;
  return (t.flags & wanted) == wanted && t.heap == device_heap(s);
}

int64_t total_bytes(const gpu_snapshot& s) {
  return s.heap_bytes.at(device_heap(s));
}

int64_t usable_bytes(const gpu_snapshot& s) {
  const uint32_t heap = device_heap(s);
  if (heap < s.heap_budget.size() && s.heap_budget[heap] > 0)
    return std::min(s.heap_budget[heap], s.heap_bytes[heap]);
  return s.heap_bytes.at(heap) / 10 * 9;
}

std::vector<const char*> wanted_extensions(const gpu_snapshot& s) {
  std::vector<const char*> wanted;
  for (const char* e : {VK_EXT_MEMORY_BUDGET_EXTENSION_NAME, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME,
                        VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME, VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME})
    if (s.has_extension(e))
      wanted.push_back(e);
  const gpu_features features = features_of(s);
  if (s.refuses_to_compile)
    wanted.push_back(VK_EXT_PIPELINE_CREATION_CACHE_CONTROL_EXTENSION_NAME);
  if (features.integer_dot)
    wanted.push_back(VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);
  if (features.cooperative_matrix || features.byte_matrices || features.group_matrices)
    wanted.push_back(cooperative_matrix::khr_extension);
  if (features.group_matrices)
    wanted.push_back(cooperative_matrix::nv2_extension);
  return wanted;
}

gpu_features features_of(const gpu_snapshot& s) {
  constexpr VkSubgroupFeatureFlags arithmetic = VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT;
  gpu_features f;
  f.subgroup_size = s.subgroup_size;
  f.max_group_size = s.max_group_invocations;
  f.shared_bytes = s.shared_bytes;
  f.max_groups = s.max_groups;
  f.max_binding_bytes = s.max_storage_range;
  f.binding_alignment = s.storage_alignment;
  f.float16 = s.storage_16bit && s.float16 && s.int16;
  f.int8 = s.storage_8bit && s.int8;
  f.int64 = s.int64;
  f.float64 = s.float64;
  f.subgroup_arithmetic = (s.subgroup_operations & arithmetic) == arithmetic;
  f.subgroup_shuffle = (s.subgroup_operations & VK_SUBGROUP_FEATURE_SHUFFLE_BIT) != 0;
  f.cooperative_matrix = f.float16 && s.cooperative_16x16x16 && s.memory_model;
  // NVIDIA's multiprocessors of data centres hold 64 subgroups and multiply float16 8 to 16 times as fast as scalars
  // float32; others hold 32 or 48, and most of them multiply 2 to 4 times as fast, if sums are float32 (CUDA
  // programming guide, "Compute Capabilities"; NVIDIA's data sheets).
  constexpr uint32_t of_data_centres = 64;
  f.strong_matrices = f.cooperative_matrix && s.subgroups_resident >= of_data_centres;
  f.group_matrices = f.float16 && s.group_matrices && s.memory_model;
  f.integer_dot = f.int8 && s.integer_dot;
  f.byte_matrices = f.int8 && s.cooperative_bytes && s.memory_model;
  if (s.multiprocessors > 0)
    f.units = s.multiprocessors;
  return f;
}

} // namespace troupe::vulkan

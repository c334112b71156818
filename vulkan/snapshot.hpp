// What a driver reports of one GPU, as plain data: every decision (device_choice.hpp) is a pure function of it, so that
// it can be tested on fabricated GPUs.
#pragma once

#include <vulkan/vulkan.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe::vulkan {

struct queue_family {
  VkQueueFlags flags = 0;
  uint32_t count = 0;
  uint32_t timestamp_bits = 0;
};

struct memory_type {
  VkMemoryPropertyFlags flags = 0;
  uint32_t heap = 0;
};

/// See the top of this file.
struct gpu_snapshot {
  std::string name;
  VkPhysicalDeviceType type = VK_PHYSICAL_DEVICE_TYPE_OTHER;
  uint32_t api_version = 0;
  uint32_t driver_version = 0;
  std::array<uint8_t, VK_UUID_SIZE> pipeline_cache_uuid{};
  std::vector<queue_family> queues;
  std::vector<memory_type> memory_types;
  std::vector<int64_t> heap_bytes;
  std::vector<int64_t> heap_budget; // what the driver would give now; empty if it does not say
  std::vector<std::string> extensions;

  bool timeline_semaphore = false;
  bool exports_timelines = false; // so that another GPU of the process may import them
  bool host_query_reset = false;
  bool storage_16bit = false, float16 = false, int16 = false;
  bool storage_8bit = false, int8 = false;
  bool int64 = false, float64 = false;
  bool memory_model = false;
  uint32_t subgroup_size = 1;
  VkSubgroupFeatureFlags subgroup_operations = 0; // in compute shaders
  /// Whether 16 × 16 × 16 float16 products with float32 sums are among the device's cooperative matrices.
  bool cooperative_16x16x16 = false;
  /// Whether 16 × 16 × 32 int8 products with int32 sums are.
  bool cooperative_bytes = false;
  bool integer_dot = false; // products of packed bytes
  /// Whether groups of 128 can hold float16 matrices, see `gpu_features::group_matrices`, the memory model aside.
  bool group_matrices = false;
  bool refuses_to_compile = false; // if asked: pipelines come from a cache, or not at all
  uint32_t multiprocessors = 0;    // 0 if the driver does not say
  uint32_t subgroups_resident = 0; // that a multiprocessor holds; 0 if the driver does not say

  uint32_t max_group_invocations = 128;
  uint32_t shared_bytes = 16384;
  std::array<uint32_t, 3> max_groups{65535, 65535, 65535};
  int64_t max_storage_range = int64_t{1} << 27;
  uint32_t max_storage_buffers = 4; // of a kernel
  int64_t storage_alignment = 256;
  int64_t non_coherent_atom = 256;
  int64_t host_pointer_alignment = 0; // 0 if host memory cannot be imported
  uint32_t max_allocations = 4096;    // of memory, imports included
  float timestamp_period = 1;         // nanoseconds a tick

  bool has_extension(const char* extension) const;
};

/// Asks the driver.
gpu_snapshot take_snapshot(VkInstance instance, VkPhysicalDevice device);

} // namespace troupe::vulkan

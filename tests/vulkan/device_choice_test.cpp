#include "base/error.hpp"
#include "support/catch.hpp"
#include "vulkan/device_choice.hpp"

using namespace troupe;
using namespace troupe::vulkan;

namespace {

constexpr VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
                                visible = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT,
                                coherent = VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
                                cached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;

/// A discrete GPU as its driver would describe it, with a small mapped window of its memory.
gpu_snapshot discrete() {
  gpu_snapshot s;
  s.name = "discrete";
  s.type = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  s.api_version = VK_API_VERSION_1_3;
  s.timeline_semaphore = true;
  s.max_group_invocations = 1024;
  s.queues = {{VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT, 16, 64},
              {VK_QUEUE_TRANSFER_BIT, 2, 64},
              {VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT, 8, 64}};
  s.heap_bytes = {int64_t{8} << 30, int64_t{32} << 30, int64_t{256} << 20};
  s.memory_types = {
      {local | visible | coherent, 2}, {local, 0}, {visible | coherent, 1}, {visible | coherent | cached, 1}};
  return s;
}

gpu_snapshot integrated() {
  gpu_snapshot s = discrete();
  s.name = "integrated";
  s.type = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  s.queues = {{VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT, 1, 36}};
  s.heap_bytes = {int64_t{16} << 30};
  s.memory_types = {{local | visible | coherent, 0}, {local | visible | cached, 0}};
  return s;
}

} // namespace

TEST_CASE("GPUs are ordered by kind, those that cannot be used last", "[vulkan]") {
  gpu_snapshot software = integrated(), old = discrete();
  software.type = VK_PHYSICAL_DEVICE_TYPE_CPU;
  old.api_version = VK_API_VERSION_1_1;
  const std::vector<gpu_snapshot> all{software, old, integrated(), discrete()};
  CHECK(order_of(all) == std::vector<size_t>{3, 2, 0, 1});
  CHECK_FALSE(is_hardware(software));
  CHECK(is_hardware(integrated()));
}

TEST_CASE("the error for a GPU that cannot be used says why", "[vulkan]") {
  CHECK(why_unusable(discrete()).empty());
  gpu_snapshot s = discrete();
  s.api_version = VK_API_VERSION_1_1;
  CHECK(why_unusable(s).find("Vulkan 1.1") != std::string::npos);
  s = discrete();
  s.timeline_semaphore = false;
  CHECK(why_unusable(s).find("timeline") != std::string::npos);
  s = discrete();
  s.queues = {{VK_QUEUE_TRANSFER_BIT, 1, 0}};
  CHECK(why_unusable(s).find("queue") != std::string::npos);
  s = discrete();
  s.max_group_invocations = 128;
  CHECK(why_unusable(s).find("256") != std::string::npos);
}

TEST_CASE("queues: one for compute alone if there is one", "[vulkan]") {
  CHECK(compute_family(discrete()) == 2);
  CHECK(compute_family(integrated()) == 0);
}

TEST_CASE("queues: copies beside the work on one that only copies", "[vulkan][A14]") {
  gpu_snapshot s = discrete();
  s.host_query_reset = true;
  s.queues = {{VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT, 16, 64},
              {VK_QUEUE_TRANSFER_BIT, 2, 64},
              {VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT, 8, 64}};
  CHECK(copy_family(s) == 1u);
  s.host_query_reset = false;
  CHECK(!copy_family(s));
  s.host_query_reset = true;
  s.queues[1].timestamp_bits = 32;
  CHECK(!copy_family(s));
  CHECK(!copy_family(integrated()));
}

TEST_CASE("memory types follow their use", "[vulkan][B5]") {
  const gpu_snapshot d = discrete(), i = integrated();
  CHECK(memory_type_for(d, memory_use::device) == 1);   // not the small window
  CHECK(memory_type_for(d, memory_use::upload) == 2);   // written once: not cached
  CHECK(memory_type_for(d, memory_use::download) == 3); // read by the host: cached
  CHECK(memory_type_for(d, memory_use::device, 1u) == 0);
  CHECK(memory_type_for(d, memory_use::parameters) == 0); // the small window
  CHECK(memory_type_for(i, memory_use::download) == 1);
  CHECK(memory_type_for(i, memory_use::parameters) == 0);
  CHECK_FALSE(is_unified(d));
  CHECK(is_unified(i));
  gpu_snapshot none = discrete();
  none.memory_types = {{local, 0}};
  CHECK_THROWS_AS(memory_type_for(none, memory_use::upload), error);
  none.memory_types = {{local, 0}, {visible | coherent | cached, 1}, {visible | coherent, 1}};
  CHECK(memory_type_for(none, memory_use::parameters) == 2); // no window: written once, not cached
}

TEST_CASE("imported memory is coherent, or not imported", "[vulkan][B5]") {
  gpu_snapshot s = discrete();
  CHECK(find_memory_type(s, memory_use::imported) == 3u); // cached, too
  CHECK(find_memory_type(s, memory_use::imported, 0b0101) == 2u);
  s.memory_types = {{local, 0}, {visible | cached, 1}, {visible | coherent, 1}};
  CHECK(find_memory_type(s, memory_use::imported) == 2u);
  CHECK(memory_type_for(s, memory_use::download) == 1u); // flushed and invalidated
  CHECK_FALSE(find_memory_type(s, memory_use::imported, 0b011));
}

TEST_CASE("inputs are written to a GPU's own memory where all of it is mapped", "[vulkan]") {
  gpu_snapshot s = discrete();
  CHECK_FALSE(maps_own_memory(s)); // a window is for parameters
  s.memory_types[0].heap = 0;
  CHECK(maps_own_memory(s));
  s.memory_types[0].flags = local | visible;
  CHECK_FALSE(maps_own_memory(s)); // not coherent
}

TEST_CASE("the memory for plans is the driver's budget, else most of the heap", "[vulkan][B2]") {
  gpu_snapshot s = discrete();
  CHECK(usable_bytes(s) == (int64_t{8} << 30) / 10 * 9);
  s.heap_budget = {int64_t{5} << 30, 0, 0};
  CHECK(usable_bytes(s) == int64_t{5} << 30);
  CHECK(total_bytes(s) == int64_t{8} << 30);
}

TEST_CASE("kernels rely on the features that the driver offers", "[vulkan]") {
  gpu_snapshot s = discrete();
  CHECK_FALSE(features_of(s).float16);
  s.subgroup_operations = VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT;
  CHECK_FALSE(features_of(s).subgroup_shuffle);
  s.subgroup_operations |= VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
  CHECK(features_of(s).subgroup_shuffle);
  s.storage_16bit = s.float16 = s.int16 = true;
  CHECK(features_of(s).float16);
  s.cooperative_16x16x16 = true;
  CHECK_FALSE(features_of(s).cooperative_matrix); // not without the memory model
  s.memory_model = true;
  CHECK(features_of(s).cooperative_matrix);
  for (const uint32_t resident : {0, 32, 48, 64}) {
    s.subgroups_resident = resident;
    CHECK(features_of(s).strong_matrices == (resident == 64));
  }
  CHECK_FALSE(features_of(s).group_matrices);
  s.group_matrices = true;
  CHECK(features_of(s).group_matrices);
  CHECK(wanted_extensions(s).size() == 2); // matrices, and those of groups
  s.cooperative_bytes = s.integer_dot = true;
  CHECK_FALSE(features_of(s).byte_matrices); // not without 8-bit storage
  CHECK_FALSE(features_of(s).integer_dot);
  s.storage_8bit = s.int8 = true;
  CHECK(features_of(s).byte_matrices);
  CHECK(features_of(s).integer_dot);
  CHECK(wanted_extensions(s).size() == 3);
  s.cooperative_16x16x16 = s.group_matrices = false;
  CHECK(wanted_extensions(s).size() == 2); // bytes need the same extension
  s.memory_model = false;
  CHECK_FALSE(features_of(s).byte_matrices);
  s.memory_model = s.cooperative_16x16x16 = s.group_matrices = true;
  s.storage_8bit = s.float16 = false;
  CHECK_FALSE(features_of(s).cooperative_matrix);
  CHECK_FALSE(features_of(s).group_matrices);
  s.extensions = {VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME, "VK_KHR_other"};
  REQUIRE(wanted_extensions(s).size() == 1);
  CHECK(std::string(wanted_extensions(s)[0]) == VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
}

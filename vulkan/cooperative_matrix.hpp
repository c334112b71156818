// VK_KHR_cooperative_matrix and VK_NV_cooperative_matrix2 as far as troupe needs them: the oldest headers that build it
// know neither. Numbers and members are those of the Vulkan registry (vk.xml).
#pragma once

#include <vulkan/vulkan.h>

namespace troupe::vulkan::cooperative_matrix {

inline constexpr char khr_extension[] = "VK_KHR_cooperative_matrix";
inline constexpr char nv2_extension[] = "VK_NV_cooperative_matrix2";

// VkComponentTypeKHR, VkScopeKHR.
inline constexpr int32_t float16_component = 0, float32_component = 1, int8_component = 3, int32_component = 5;
inline constexpr int32_t group_scope = 2, subgroup_scope = 3;

/// VkPhysicalDeviceCooperativeMatrixFeaturesKHR.
struct khr_features {
  VkStructureType type = static_cast<VkStructureType>(1000506000);
  void* next = nullptr;
  VkBool32 cooperative_matrix = VK_FALSE, robust_buffer_access = VK_FALSE;
};

/// VkCooperativeMatrixPropertiesKHR: a product that the device has.
struct khr_product {
  VkStructureType type = static_cast<VkStructureType>(1000506001);
  void* next = nullptr;
  uint32_t m = 0, n = 0, k = 0;
  int32_t a = 0, b = 0, c = 0, result = 0; // VkComponentTypeKHR
  VkBool32 saturating = VK_FALSE;
  int32_t scope = 0; // VkScopeKHR

  /// Whether it is 16 × 16 × `depth` of `factors`, with sums of `sums`, by one subgroup.
  bool is_of_subgroup(uint32_t depth, int32_t factors, int32_t sums) const {
    return m == 16 && n == 16 && k == depth && a == factors && b == factors && c == sums && result == sums &&
           !saturating && scope == subgroup_scope;
  }
};

/// vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR.
typedef VkResult(VKAPI_PTR* khr_query)(VkPhysicalDevice device, uint32_t* count, khr_product* found);
inline constexpr char khr_query_name[] = "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR";

/// VkPhysicalDeviceCooperativeMatrix2FeaturesNV.
struct nv2_features {
  VkStructureType type = static_cast<VkStructureType>(1000593000);
  void* next = nullptr;
  VkBool32 workgroup_scope = VK_FALSE, flexible_dimensions = VK_FALSE, reductions = VK_FALSE, conversions = VK_FALSE,
           per_element_operations = VK_FALSE, tensor_addressing = VK_FALSE, block_loads = VK_FALSE;

  /// Whether all is there that shaders/group_matrix.glsl uses.
  bool suffice() const {
    return workgroup_scope && flexible_dimensions && reductions && conversions && per_element_operations &&
           tensor_addressing;
  }
};

/// VkCooperativeMatrixFlexibleDimensionsPropertiesNV; sizes are multiples of the granularities.
struct flexible_dimensions {
  VkStructureType type = static_cast<VkStructureType>(1000593001);
  void* next = nullptr;
  uint32_t m_granularity = 0, n_granularity = 0, k_granularity = 0;
  int32_t a = 0, b = 0, c = 0, result = 0; // VkComponentTypeKHR
  VkBool32 saturating = VK_FALSE;
  int32_t scope = 0; // VkScopeKHR
  uint32_t group_invocations = 0;
};

/// vkGetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV.
typedef VkResult(VKAPI_PTR* flexible_dimensions_query)(VkPhysicalDevice device, uint32_t* count,
                                                       flexible_dimensions* found);
inline constexpr char flexible_dimensions_query_name[] =
    "vkGetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV";

} // namespace troupe::vulkan::cooperative_matrix

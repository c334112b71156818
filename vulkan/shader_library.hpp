// The SPIR-V of all kernels, embedded by the build (shaders/CMakeLists.txt).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace troupe::vulkan {

struct embedded_shader {
  std::string_view name; // "matmul.f32"
  std::span<const uint32_t> code;
};

/// Makes another shader of one.
using shader_filter = std::function<std::vector<uint32_t>(std::span<const uint32_t>)>;

/// Returns all shaders.
std::span<const embedded_shader> embedded_shaders();

/// Returns a shader's code; throws `errc::internal` for an unknown name.
std::span<const uint32_t> find_shader(std::string_view name);

} // namespace troupe::vulkan

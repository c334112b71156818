#include "vulkan/shader_library.hpp"

#include "base/error.hpp"

#include <unordered_map>

namespace troupe::vulkan {

std::span<const uint32_t> find_shader(std::string_view name) {
  using shader_index = std::unordered_map<std::string_view, std::span<const uint32_t>>;
  // Never destroyed: engines in static objects run to the end of the process.
  static const shader_index& index = *new shader_index([] {
    shader_index all;
    for (const embedded_shader& s : embedded_shaders())
      all.emplace(s.name, s.code);
    return all;
  }());
  const auto it = index.find(name);
  if (it == index.end())
    fail(errc::internal, "there is no shader '{}'", name);
  return it->second;
}

} // namespace troupe::vulkan

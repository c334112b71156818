#include "vulkan/pipeline_file.hpp"

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/user_files.hpp"
#include "vulkan/shader_library.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>

namespace troupe::vulkan {
namespace {

hash128 checksum(std::span<const std::byte> content) {
  hasher h;
  h.add_bytes(content.data(), content.size());
  return h.digest();
}

/// Hashes of all shaders' code, by name.
const std::map<std::string_view, hash128>& shader_hashes() {
  static const auto& all =
      *new std::map<std::string_view, hash128>([] { // never destroyed: engines may live in static objects
        std::map<std::string_view, hash128> hashes;
        for (const embedded_shader& s : embedded_shaders())
          hashes.emplace(s.name, checksum(std::as_bytes(s.code)));
        return hashes;
      }());
  return all;
}

hash128 hash_of_shaders() {
  hasher h;
  for (const auto& [name, code] : shader_hashes()) {
    h.add(name);
    h.add(code);
  }
  return h.digest();
}

/// What compiles.
void add_driver(hasher& h, const gpu_snapshot& s) {
  h.add(s.name);
  h.add(s.driver_version);
  h.add_bytes(s.pipeline_cache_uuid.data(), s.pipeline_cache_uuid.size());
}

} // namespace

hash128 compiler_of(const gpu_snapshot& s) {
  static const hash128 shaders = hash_of_shaders();
  hasher h;
  h.add(shaders);
  add_driver(h, s);
  return h.digest();
}

std::string pipeline_file_path(const gpu_snapshot& s) {
  const std::filesystem::path folder = cache_folder();
  return folder.empty() ? std::string() : (folder / ("pipelines-" + to_hex(compiler_of(s)))).string();
}

shader_revision shader_revisions_of(const gpu_snapshot& s) {
  hasher driver;
  add_driver(driver, s);
  return [of = driver.digest()](std::string_view shader) {
    const auto code = shader_hashes().find(shader);
    expects(code != shader_hashes().end(), "a launch rule names a shader that is not there");
    hasher h;
    h.add(of);
    h.add(code->second);
    return h.digest();
  };
}

std::vector<std::byte> read_pipeline_file(const std::string& path, int64_t max_bytes) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : 0;
  if (size <= static_cast<std::streamoff>(sizeof(hash128)) || size > max_bytes)
    return {};
  hash128 stated;
  std::vector<std::byte> content(static_cast<size_t>(size) - sizeof(stated));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(&stated), sizeof(stated));
  file.read(reinterpret_cast<char*>(content.data()), static_cast<std::streamsize>(content.size()));
  if (!file || !(checksum(content) == stated))
    return {};
  return content;
}

void write_pipeline_file(const std::string& path, std::span<const std::byte> content) {
  const hash128 sum = checksum(content);
  std::vector<std::byte> file(sizeof(sum) + content.size());
  std::memcpy(file.data(), &sum, sizeof(sum));
  std::copy(content.begin(), content.end(), file.begin() + sizeof(sum));
  replace_file(path, file); // if it cannot be written, the next run compiles again
}

} // namespace troupe::vulkan

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

/// What a file begins with; hashes of keys follow, then the driver's cache.
struct file_head {
  hash128 checksum; // of all that follows
  uint64_t kernels = 0;
};

/// Returns the checksum of a file's content.
hash128 checksum_of(std::span<const std::byte> file) {
  return checksum(file.subspan(sizeof(hash128)));
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

stored_pipelines read_pipeline_file(const std::string& path, int64_t max_bytes) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : 0;
  if (size < static_cast<std::streamoff>(sizeof(file_head)) || size > max_bytes)
    return {};
  std::vector<std::byte> all(static_cast<size_t>(size));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(all.data()), static_cast<std::streamsize>(all.size()));
  file_head head;
  std::memcpy(&head, all.data(), sizeof(head));
  const std::span<const std::byte> rest = std::span(all).subspan(sizeof(head));
  if (!file || !(checksum_of(all) == head.checksum) || head.kernels > rest.size() / sizeof(hash128))
    return {};
  stored_pipelines found{.kernels = std::vector<hash128>(head.kernels), .driver = {}};
  const std::span<const std::byte> hashes = rest.first(head.kernels * sizeof(hash128));
  std::ranges::copy(hashes, std::as_writable_bytes(std::span(found.kernels)).begin());
  found.driver.assign(rest.begin() + std::ssize(hashes), rest.end());
  return found;
}

void write_pipeline_file(const std::string& path, const stored_pipelines& content) {
  const auto hashes = std::as_bytes(std::span(content.kernels));
  std::vector<std::byte> file(sizeof(file_head));
  file.insert(file.end(), hashes.begin(), hashes.end());
  file.insert(file.end(), content.driver.begin(), content.driver.end());
  file_head head{{}, content.kernels.size()};
  std::memcpy(file.data(), &head, sizeof(head));
  head.checksum = checksum_of(file);
  std::memcpy(file.data(), &head, sizeof(head));
  replace_file(path, file); // if it cannot be written, the next run compiles again
}

} // namespace troupe::vulkan

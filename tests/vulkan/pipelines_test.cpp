#include "vulkan/pipelines.hpp"

#include "loader/models.hpp"
#include "support/catch.hpp"
#include "support/gpu.hpp"
#include "vulkan/pipeline_file.hpp"

using namespace troupe;
using namespace troupe::vulkan;

namespace {

/// Keys for `count` pipelines, of one shader with constants that it does not look at.
std::vector<pipeline_key> keys(uint32_t first, uint32_t count) {
  std::vector<pipeline_key> all;
  for (uint32_t i = 0; i < count; ++i)
    all.push_back({"fill.w32", {first + i}, 1});
  return all;
}

} // namespace

TEST_CASE("pipelines are compiled once", "[vulkan][C11]") {
  device_context context(test::gpus(), 0);
  pipelines all(context);
  std::vector<pipeline_key> wanted = keys(0, 2);
  wanted.push_back(wanted[0]); // two launches of one kernel
  const auto held = all.prepare(wanted);
  CHECK(held.size() == 2);
  CHECK(all.prepare(keys(0, 2)) == held);
  CHECK(all.find(wanted[0]).handle == held[0]->get());
  CHECK(all.size() == 2);
  CHECK(test::new_gpu_messages() == "");
}

TEST_CASE("of the pipelines that no program runs, the last few are kept", "[vulkan]") {
  device_context context(test::gpus(), 0);
  pipelines all(context, {}, 4);
  const auto held = all.prepare(keys(0, 6)); // more than are kept without a program
  for (uint32_t i = 0; i < 10; ++i)
    CHECK(all.prepare(keys(100 + i, 1)).size() == 1);
  CHECK(all.size() == 11); // those six, the one asked for last, and four before it
  for (const pipeline_key& key : keys(0, 6))
    CHECK(all.find(key).handle != VK_NULL_HANDLE);
  CHECK(all.prepare(keys(106, 4)).size() == 4);
  CHECK(all.size() == 11); // the last four were there
  CHECK(test::new_gpu_messages() == "");
}

TEST_CASE("a file of pipelines that has become too large is begun anew", "[vulkan]") {
  const test::scratch_folder folder;
  const std::string path = (folder.path() / "pipelines").string();
  const stored_pipelines content{{{1, 2}, {3, 4}}, std::vector<std::byte>(1000, std::byte{7})};
  write_pipeline_file(path, content);
  CHECK(read_pipeline_file(path, 2000) == content);
  CHECK(read_pipeline_file(path, 1000) == stored_pipelines()); // its head and hashes count
  CHECK(read_pipeline_file(path) == content);
}

TEST_CASE("a damaged file of pipelines holds nothing", "[vulkan]") {
  const test::scratch_folder folder;
  const std::string path = (folder.path() / "pipelines").string();
  write_pipeline_file(path, {{{1, 2}, {3, 4}}, std::vector<std::byte>(100, std::byte{7})});
  std::string good;
  {
    std::ifstream file(path, std::ios::binary);
    good.assign(std::istreambuf_iterator<char>(file), {});
  }
  const auto reads_nothing = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary).write(bytes.data(), std::ssize(bytes));
    return read_pipeline_file(path) == stored_pipelines();
  };
  CHECK_FALSE(reads_nothing(good));
  for (size_t at = 0; at < good.size(); ++at) {
    std::string changed = good;
    changed[at] = static_cast<char>(changed[at] ^ 64);
    CHECK(reads_nothing(changed));
    CHECK(reads_nothing(good.substr(0, at)));
  }
}

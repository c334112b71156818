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
  const auto held = all.prepare(keys(0, 6)); // more than are kept for nobody
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
  const std::vector<std::byte> content(1000, std::byte{7});
  write_pipeline_file(path, content);
  CHECK(read_pipeline_file(path, 2000) == content);
  CHECK(read_pipeline_file(path, 1000).empty()); // the checksum counts
  CHECK(read_pipeline_file(path) == content);
}

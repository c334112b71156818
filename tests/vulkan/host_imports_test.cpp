// Host memory as the GPU's own: which memory is imported, and for how long.
#include "vulkan/host_imports.hpp"

#include "support/catch.hpp"
#include "support/gpu.hpp"
#include "support/small_models.hpp"
#include "support/vulkan_faults.hpp"

using namespace troupe;
using namespace troupe::vulkan;

namespace {

/// A GPU that imports up to `most` blocks at once.
struct importing_gpu {
  explicit importing_gpu(size_t most) : imports(context, blocks, staging, staging, most) {}

  tensor in_block() const { return make_host_tensor(*blocks, dtype::float32, {1000}); }
  bool is_staged(const host_end& end) const { return end.buffer == staged.buffer(); }

  device_context context{test::gpus(), 0};
  std::shared_ptr<host_block_pool> blocks = std::make_shared<host_block_pool>();
  memory_pool staging{context, memory_use::upload, false};
  allocation staged = staging.allocate(1); // keeps the block in which all else goes
  host_imports imports;
};

} // namespace

TEST_CASE("a block is imported once", "[vulkan]") {
  importing_gpu gpu(10);
  if (!gpu.imports.available())
    return; // the driver cannot import host memory
  const int64_t before = test::live_imports();
  const tensor t = gpu.in_block();
  const host_end a = gpu.imports.source(t), b = gpu.imports.source(t);
  CHECK(a.id == b.id);
  CHECK(a.buffer == b.buffer);
  CHECK(test::live_imports() == before + 1);
  const host_end c = gpu.imports.source(test::floats({1}, {1})); // copied to a separate block
  CHECK(c.id != a.id);
  CHECK(test::live_imports() == before + 2);
  CHECK(test::new_gpu_messages() == "");
}

TEST_CASE("there are never more imports than the driver has allocations for", "[vulkan]") {
  importing_gpu gpu(3);
  if (!gpu.imports.available())
    return; // the driver cannot import host memory
  const int64_t before = test::live_imports();
  std::vector<tensor> tensors;
  for (int i = 0; i < 20; ++i)
    tensors.push_back(gpu.in_block());
  for (const tensor& t : tensors) // one copy after the other: the oldest import goes
    CHECK_FALSE(gpu.is_staged(gpu.imports.source(t)));
  CHECK(test::live_imports() == before + 3);
  {
    std::vector<host_end> in_flight;
    for (int i = 17; i < 20; ++i)
      in_flight.push_back(gpu.imports.source(tensors[i]));
    const host_end fourth = gpu.imports.source(tensors[0]); // all three are in use
    CHECK(gpu.is_staged(fourth));
    CHECK(fourth.id != in_flight[0].id);
    CHECK(gpu.imports.source(tensors[18]).id == in_flight[1].id);
  }
  CHECK_FALSE(gpu.is_staged(gpu.imports.source(tensors[0])));
  CHECK(test::live_imports() == before + 3);
  CHECK(test::new_gpu_messages() == "");
}

TEST_CASE("an import ends when the pool has given its block up", "[vulkan]") {
  importing_gpu gpu(10);
  if (!gpu.imports.available())
    return; // the driver cannot import host memory
  const int64_t before = test::live_imports();
  host_end end = gpu.imports.source(gpu.in_block());
  gpu.blocks->trim();
  gpu.imports.forget_retired();
  CHECK(test::live_imports() == before + 1);
  end = {};
  gpu.blocks->trim();
  gpu.imports.forget_retired();
  CHECK(test::live_imports() == before);
}

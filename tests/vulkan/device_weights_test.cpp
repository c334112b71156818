#include "vulkan/device_weights.hpp"

#include "support/catch.hpp"
#include "support/gpu.hpp"
#include "support/small_models.hpp"

using namespace troupe;
using namespace troupe::vulkan;

TEST_CASE("a GPU forgets weights that no plan holds", "[vulkan]") {
  device_context context(test::gpus(), 0);
  memory_pool staging(context, memory_use::upload, false), memory(context, memory_use::device, false);
  device_weights weights(memory);
  timeline queue(context);
  uploader uploads(context, staging, queue);
  const weight_ptr first = weight::from_tensor(test::floats({1}, {-1}));
  const device_weights::handle kept = weights.get(*first, uploads);
  for (int i = 0; i < 1000; ++i)
    weights.get(*weight::from_tensor(test::floats({1}, {static_cast<float>(i)})), uploads);
  uploads.finish();
  CHECK(weights.known() < 100);
  CHECK(weights.get(*first, uploads) == kept);
  CHECK(weights.bytes() == kept->bytes());
  CHECK(test::new_gpu_messages() == "");
}

#include "vulkan/kernel_exchange.hpp"

#include "support/catch.hpp"
#include "support/gpu.hpp"
#include "vulkan/pipelines.hpp"

#include <atomic>
#include <thread>

using namespace troupe;
using namespace troupe::vulkan;

namespace {

using code = kernel_exchange::code;

pipeline_key key_of(uint32_t constant) {
  return {.shader = "fill.w32", .constants = {constant}, .buffers = 1, .block = {}};
}

} // namespace

TEST_CASE("kernels that one GPU has compiled are there for the others", "[vulkan][C11]") {
  kernel_exchange exchange;
  CHECK(exchange.begin(key_of(1), true) == code());        // to be compiled
  CHECK(exchange.begin(key_of(1), false) == std::nullopt); // it is
  CHECK(exchange.begin(key_of(2), false) == code());
  std::optional<code> found;
  std::jthread other([&] { found = exchange.begin(key_of(1), true); });
  exchange.end(key_of(1), code(3, std::byte{7}));
  other.join();
  CHECK(found == code(3, std::byte{7}));
  CHECK(exchange.begin(key_of(1), false) == code(3, std::byte{7}));
}

TEST_CASE("a kernel that the driver refused is compiled by the GPU that waits for it", "[vulkan][C11]") {
  kernel_exchange exchange;
  CHECK(exchange.begin(key_of(1), true) == code());
  std::optional<code> found;
  std::jthread other([&] { found = exchange.begin(key_of(1), true); });
  exchange.end(key_of(1), {});
  other.join();
  CHECK(found == code());
}

TEST_CASE("an exchange of kernels keeps those that came last", "[vulkan]") {
  kernel_exchange exchange(100);
  for (uint32_t i = 0; i < 5; ++i) {
    CHECK(exchange.begin(key_of(i), true) == code());
    exchange.end(key_of(i), code(30, std::byte{1}));
  }
  CHECK(exchange.begin(key_of(1), false) == code()); // gone
  for (uint32_t i = 2; i < 5; ++i)
    CHECK(exchange.begin(key_of(i), false) == code(30, std::byte{1}));
}

TEST_CASE("an exchange of kernels lists the kernels that it has", "[vulkan][C11]") {
  kernel_exchange exchange;
  CHECK(exchange.begin(key_of(1), true) == code());
  CHECK(exchange.find(key_of(1)).empty()); // it is being compiled
  const auto constants = [&] {
    std::set<std::vector<uint32_t>> found;
    exchange.add_first_constants(1, found);
    return found;
  };
  CHECK(constants().empty());
  exchange.end(key_of(1), code(3, std::byte{7}));
  CHECK(exchange.find(key_of(1)) == code(3, std::byte{7}));
  CHECK(exchange.find(key_of(2)).empty());
  CHECK(constants() == std::set<std::vector<uint32_t>>{{1}});
}

TEST_CASE("what was compiled for an equal GPU counts as there", "[vulkan][C11]") {
  device_context contexts[2] = {{test::gpus(), 0}, {test::gpus(), 0}};
  pipelines one(contexts[0]), other(contexts[1]);
  const pipeline_key key = key_of(2000);
  CHECK_FALSE(other.is_ready(key));
  CHECK(one.prepare({&key, 1}).size() == 1);
  const bool shares = contexts[0].facts().refuses_to_compile; // else drivers compile whenever they are asked
  CHECK(other.is_ready(key) == shares);
  const std::vector<std::vector<uint32_t>> constants = other.first_constants(1);
  CHECK(std::ranges::count(constants, std::vector<uint32_t>{2000}) == (shares ? 1 : 0));
}

TEST_CASE("equal GPUs share an exchange while one of them is there", "[vulkan]") {
  const std::shared_ptr<kernel_exchange> one = kernel_exchange::of({1, 2});
  CHECK(kernel_exchange::of({1, 2}) == one);
  CHECK(kernel_exchange::of({1, 3}) != one);
}

TEST_CASE("two devices on equal GPUs make the same pipelines at once", "[vulkan][C11]") {
  device_context contexts[2] = {{test::gpus(), 0}, {test::gpus(), 0}};
  std::vector<pipeline_key> wanted;
  for (uint32_t i = 0; i < 24; ++i)
    wanted.push_back(key_of(1000 + i));
  pipelines each[2] = {pipelines(contexts[0]), pipelines(contexts[1])};
  std::atomic<size_t> made = 0;
  {
    std::jthread first([&] { made += each[0].prepare(wanted).size(); });
    std::jthread second([&] { made += each[1].prepare(wanted).size(); });
  }
  CHECK(made == 48);
  for (const pipelines& p : each)
    for (const pipeline_key& key : wanted)
      CHECK(p.find(key).handle != VK_NULL_HANDLE);
  CHECK(test::new_gpu_messages() == "");
}

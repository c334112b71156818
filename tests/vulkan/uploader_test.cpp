// How weights come to a GPU: piece by piece, and without staying in the host's memory.
#include "loader/models.hpp"
#include "support/catch.hpp"
#include "support/command.hpp"
#include "support/gpu.hpp"
#include "support/gpu_gate.hpp"
#include "support/thrown.hpp"
#include "support/vulkan_faults.hpp"
#include "vulkan/uploader.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

using namespace std::chrono_literals;
using namespace troupe;
using namespace troupe::vulkan;

namespace {

std::vector<std::byte> some_bytes(int64_t count) {
  std::vector<std::byte> bytes(static_cast<size_t>(count));
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(i * 7 + i / 4096);
  return bytes;
}

/// Compares if the host can look at device memory.
bool holds(const allocation& memory, const std::vector<std::byte>& bytes) {
  if (!memory.mapped())
    return true;
  memory.invalidate(0, memory.bytes());
  return std::equal(bytes.begin(), bytes.end(), memory.mapped());
}

constexpr int64_t weight_count = 32, weight_width = 1024;
constexpr int64_t weights_bytes = weight_count * weight_width * weight_width * 4;

/// x [1, width] → products with `count` matrices, which are in one file, apart from each other or all in the same
/// place.
std::string chain_of_products(const test::scratch_folder& folder, bool apart) {
  const int64_t bytes = weights_bytes / weight_count;
  std::filesystem::resize_file(folder.write("w.bin", ""), static_cast<uintmax_t>(weights_bytes));
  onnx::ModelProto m;
  m.set_ir_version(8);
  m.add_opset_import()->set_version(17);
  auto& g = *m.mutable_graph();
  test::set_tensor_type(*g.add_input(), "v0", {"n", "width"});
  test::set_tensor_type(*g.add_output(), fmt::format("v{}", weight_count), {"n", "width"});
  for (int64_t i = 0; i < weight_count; ++i) {
    auto& w = *g.add_initializer();
    w.set_name(fmt::format("w{}", i));
    w.set_data_type(onnx::TensorProto::FLOAT);
    w.add_dims(weight_width);
    w.add_dims(weight_width);
    w.set_data_location(onnx::TensorProto::EXTERNAL);
    for (const auto& [key, value] : {std::pair<const char*, std::string>{"location", "w.bin"},
                                     {"offset", std::to_string(apart ? i * bytes : 0)},
                                     {"length", std::to_string(bytes)}}) {
      auto& entry = *w.add_external_data();
      entry.set_key(key);
      entry.set_value(value);
    }
    test::add_node(g, "MatMul", {fmt::format("v{}", i), w.name()}, {fmt::format("v{}", i + 1)});
  }
  return folder.write(apart ? "apart.onnx" : "same.onnx", m.SerializeAsString()).string();
}

int64_t peak_host_bytes(const std::string& model) {
  const auto ran = test::run_command(
      fmt::format("bench {} --devices vulkan:0 --dim n=1 --dim width={} --runs 1 --warmup 0 --warmup-seconds 0 --json",
                  model, weight_width));
  REQUIRE(ran.status == 0);
  return nlohmann::json::parse(ran.output).at("peak_bytes");
}

} // namespace

TEST_CASE("the next weight is made and allocated while the GPU copies", "[vulkan][B6]") {
  device_context context(test::gpus(), 0);
  memory_pool staging(context, memory_use::upload, false), memory(context, memory_use::device, false);
  test::gate held(context);
  timeline queue(context);
  uploader uploads(context, staging, queue, true);
  const std::vector<std::byte> bytes = some_bytes(uploader::piece_bytes);
  std::vector<std::shared_ptr<const allocation>> weights;
  auto both = std::async(std::launch::async, [&] {
    for (int i = 0; i < 2; ++i) {
      weights.push_back(std::make_shared<const allocation>(memory.allocate(uploader::piece_bytes)));
      uploads.upload(bytes, weights.back());
    }
  });
  const bool went_on = both.wait_for(20s) == std::future_status::ready;
  held.open();
  both.get();
  CHECK(went_on);
  uploads.finish();
  CHECK(holds(*weights[0], bytes));
  CHECK(holds(*weights[1], bytes));
  CHECK(test::new_gpu_messages() == "");
}

TEST_CASE("a large weight passes through two pieces of staging memory", "[vulkan][B6]") {
  device_context context(test::gpus(), 0);
  memory_pool staging(context, memory_use::upload, false), memory(context, memory_use::device, false);
  timeline queue(context);
  const std::vector<std::byte> bytes = some_bytes(5 * uploader::piece_bytes + 123);
  const auto weight = std::make_shared<const allocation>(memory.allocate(static_cast<int64_t>(bytes.size())));
  {
    uploader uploads(context, staging, queue, true);
    uploads.upload(bytes, weight);
    uploads.finish();
    CHECK(staging.reserved_bytes() == 2 * uploader::piece_bytes);
  }
  CHECK(holds(*weight, bytes));
  CHECK(queue.submissions() == 6);
  CHECK(staging.free_bytes() == staging.reserved_bytes());
  CHECK(test::new_gpu_messages() == "");
}

TEST_CASE("few bytes take little staging memory, and more as they come", "[vulkan][B6][D5]") {
  device_context context(test::gpus(), 0);
  memory_pool staging(context, memory_use::upload, false), memory(context, memory_use::device, false);
  timeline queue(context);
  uploader uploads(context, staging, queue, true);
  for (const size_t count : {size_t{1000}, size_t{1} << 20, size_t{3} << 20, size_t{77}, size_t{5} << 20}) {
    const std::vector<std::byte> bytes = some_bytes(count);
    const auto weight = std::make_shared<const allocation>(memory.allocate(static_cast<int64_t>(count)));
    uploads.upload(bytes, weight);
    uploads.finish();
    CHECK(holds(*weight, bytes));
    CHECK(staging.reserved_bytes() <= (count == 1000 ? 1 << 20 : 16 << 20));
  }
  CHECK(test::new_gpu_messages() == "");
}

TEST_CASE("a copy on its way keeps the memory that it writes", "[vulkan][faults]") {
  device_context context(test::gpus(), 0);
  memory_pool staging(context, memory_use::upload, false), memory(context, memory_use::device, false);
  timeline queue(context);
  const std::vector<std::byte> bytes = some_bytes(2 * uploader::piece_bytes);
  const auto used = [&] { return memory.reserved_bytes() - memory.free_bytes(); };
  {
    uploader uploads(context, staging, queue, true);
    test::held_completions held;
    const test::refused_call refused(test::vulkan_call::submit, 2);
    auto weight = std::make_shared<const allocation>(memory.allocate(2 * uploader::piece_bytes));
    CHECK(test::thrown_by([&] { uploads.upload(bytes, weight); }).code() == errc::out_of_memory);
    weight = nullptr;
    CHECK(used() == 2 * uploader::piece_bytes); // the first piece is being copied
    held.release();
  }
  CHECK(used() == 0);
  CHECK(test::new_gpu_messages() == "");
}

TEST_CASE("weights that are on the GPU do not stay in the host's memory", "[vulkan][B6]") {
#ifdef __SANITIZE_ADDRESS__
  WARN("skipped: AddressSanitizer keeps what is freed");
  return;
#endif
  const test::scratch_folder folder;
  const int64_t one = peak_host_bytes(chain_of_products(folder, false));
  const int64_t all = peak_host_bytes(chain_of_products(folder, true));
  const int64_t more_weights = weights_bytes / weight_count * (weight_count - 1);
  INFO(fmt::format("peak {} bytes with one weight, {} with {}", one, all, weight_count));
  // A software GPU's own memory is the host's: the weights are there once.
  CHECK(all - one < more_weights + 2 * uploader::piece_bytes);
}

// Drivers that refuse a call: one error, nothing that the GPU still uses is freed, and the next runs work.
#include "support/catch.hpp"
#include "support/chunk_works.hpp"
#include "support/gpu.hpp"
#include "support/run_graph.hpp"
#include "support/run_inline.hpp"
#include "support/thrown.hpp"
#include "support/vulkan_faults.hpp"

#include "ops/registry.hpp"

#include <future>

using namespace std::chrono_literals;
using namespace troupe;
using namespace troupe::test;

namespace {

/// Rows of a weight of `rows` × 1024 floats, each full of its number; `row` [1] chooses one.
std::shared_ptr<const graph> rows_of_weight(int64_t rows) {
  graph_builder b;
  tensor weight(dtype::float32, {rows, 1024});
  for (int64_t i = 0; i < weight.size(); ++i)
    weight.mutable_data<float>()[i] = static_cast<float>(i / 1024);
  const value_id w = b.constant("w", std::move(weight));
  const value_id row = b.input("row", {1}, dtype::int64);
  return b.program({b.op("Gather", {w, row})});
}

/// y = −x for x of these dims.
std::shared_ptr<const graph> negation(const symbolic_shape& dims) {
  graph_builder b;
  return b.program({b.op("Neg", {b.input("x", dims)})});
}

/// How a chunk of one output ended.
struct ended_chunk : chunk_result {
  value_ref made;
  const tensor& output() const { return made->host(); }
};

/// A GPU and a plan for it.
struct one_gpu {
  one_gpu(const vulkan::vulkan_device_options& options, std::shared_ptr<const graph> g)
      : gpu(open_gpu(options)), p(make_plan(std::move(g), {gpu->info()}, {})), bound(bind_segment(p, 0, {})) {}

  void install() { gpu->install(bound, 0); }

  std::future<ended_chunk> submit(tensor upload, uint32_t slot = 0) { return submit(*bound, std::move(upload), slot); }
  std::future<ended_chunk> submit(const bound_plan& which, tensor upload, uint32_t slot = 0) const {
    auto ended = std::make_shared<std::promise<ended_chunk>>();
    chunk_work work = work_of(which, 0, {std::move(upload)});
    work.slot = slot;
    gpu->submit(work, [ended, made = work.downloads.at(0)](chunk_result r) { ended->set_value({std::move(r), made}); });
    return ended->get_future();
  }

  std::unique_ptr<device> gpu;
  std::shared_ptr<const plan> p;
  bound_plan_ptr bound;
};

tensor row_number(int64_t row) {
  return tensor::of<int64_t>({1}, std::vector<int64_t>{row});
}

tensor ramp(tensor t, float from) {
  for (int64_t i = 0; i < t.size(); ++i)
    t.mutable_data<float>()[i] = from + static_cast<float>(i % 1000);
  return t;
}

int64_t not_negated(const tensor& got, const tensor& in) {
  int64_t wrong = got.size() != in.size();
  for (int64_t i = 0; i < std::min(got.size(), in.size()); ++i)
    wrong += got.values<float>()[i] != -in.values<float>()[i];
  return wrong;
}

fetch_result fetch(device& gpu, const device_tensor& value) {
  std::promise<fetch_result> ended;
  gpu.fetch(value, [&](fetch_result r) { ended.set_value(std::move(r)); });
  return ended.get_future().get();
}

} // namespace

TEST_CASE("an install that fails waits for the copies that it has begun", "[vulkan][faults]") {
  one_gpu one({.force_staging = true}, rows_of_weight(9 * 1024)); // 36 MiB: three pieces, in a separate block
  {
    held_completions held;
    const refused_call refused(vulkan_call::submit, 2);
    auto installed = std::async(std::launch::async, [&] { one.install(); });
    CHECK(installed.wait_for(300ms) == std::future_status::timeout); // the first piece is on its way
    held.release();
    CHECK(thrown_by([&] { installed.get(); }).code() == errc::out_of_memory);
    CHECK(refused.happened());
  }
  CHECK(one.gpu->stats().used_bytes == 0);
  CHECK(new_gpu_messages() == "");
  one.install();
  const ended_chunk result = one.submit(row_number(9000)).get();
  REQUIRE(result.ok());
  CHECK(result.output().values<float>()[1023] == 9000);
  CHECK(new_gpu_messages() == "");
}

TEST_CASE("installing frees values that no handle names any more", "[vulkan][B2]") {
  one_gpu one({.memory_limit = 1 << 20}, rows_of_weight(220));
  device_tensor value = one.gpu->put(tensor(dtype::float32, {220, 1024}));
  REQUIRE(fetch(*one.gpu, value).ok());
  value = nullptr;
  CHECK_NOTHROW(one.install());
  CHECK(new_gpu_messages() == "");
}

TEST_CASE("a run that keeps a value frees those that no handle names any more", "[vulkan][B2]") {
  one_gpu one({.memory_limit = 1 << 20}, negation({50, 1024}));
  one.install();
  const tensor x = ramp(tensor(dtype::float32, {50, 1024}), 0);
  REQUIRE(one.submit(x).get().ok());
  const int64_t left = (1 << 20) - one.gpu->stats().used_bytes;
  device_tensor value =
      one.gpu->put(tensor(dtype::float32, {left / 4096 - 40, 1024})); // leaves less than the run keeps
  REQUIRE(fetch(*one.gpu, value).ok());
  value = nullptr;
  chunk_work work = work_of(*one.bound, 0, {x});
  work.downloads.at(0) = std::make_shared<moved_value>(destination::device, false);
  std::promise<chunk_result> ended;
  one.gpu->submit(work, [&](chunk_result r) { ended.set_value(std::move(r)); });
  CHECK(ended.get_future().get().ok());
  CHECK(new_gpu_messages() == "");
}

TEST_CASE("installing lets go of host memory that the pool has given up", "[vulkan]") {
  const auto blocks = std::make_shared<host_block_pool>(0);
  one_gpu one({.blocks = blocks, .force_staging = true}, rows_of_weight(1));
  device_tensor value = one.gpu->put(tensor(dtype::float32, {100, 1024}));
  REQUIRE(fetch(*one.gpu, value).ok());
  value = nullptr;
  CHECK(blocks->stats().mapped_bytes > 0);
  one.install();
  CHECK(blocks->stats().mapped_bytes == 0);
}

TEST_CASE("putting a value frees plans that were retired while they ran", "[vulkan][B2]") {
  one_gpu one({.memory_limit = 1 << 20}, rows_of_weight(220));
  one.install();
  held_completions held;
  auto ended = one.submit(row_number(1));
  one.gpu->retire(one.bound->id);
  held.release();
  REQUIRE(ended.get().ok());
  CHECK_NOTHROW(one.gpu->put(tensor(dtype::float32, {220, 1024})));
  CHECK(new_gpu_messages() == "");
}

TEST_CASE("copies of executions in flight go beside the work", "[vulkan][A14]") {
  const auto blocks = std::make_shared<host_block_pool>();
  one_gpu one({.blocks = blocks, .force_staging = true, .queues = vulkan::lane_queues::shared}, negation({1 << 19}));
  one.install();
  std::vector<tensor> in;
  std::vector<std::future<ended_chunk>> out;
  for (int round = 0; round < 3; ++round) {
    held_completions held; // so that each slot's chunk finds the others in flight
    for (uint32_t slot = 0; slot < 3; ++slot) {
      in.push_back(ramp(make_host_tensor(*blocks, dtype::float32, {1 << 19}), static_cast<float>(in.size())));
      out.push_back(one.submit(in.back(), slot));
    }
    held.release();
    for (size_t i = out.size() - 3; i < out.size(); ++i)
      CHECK(not_negated(out[i].get().output(), in[i]) == 0);
  }
  CHECK(new_gpu_messages() == "");
}

TEST_CASE("a run whose later submission is refused ends after its earlier ones", "[vulkan][faults][A14]") {
  const auto blocks = std::make_shared<host_block_pool>();
  // Of copies in, work and copies out, each a submission:
  for (const int refused_one : {1, 2, 3}) {
    one_gpu one({.blocks = blocks, .force_staging = true, .queues = vulkan::lane_queues::shared}, negation({1 << 19}));
    one.install();
    const bound_plan_ptr other = bind_segment(one.p, 0, {});
    one.gpu->install(other, 0);
    const tensor a = ramp(make_host_tensor(*blocks, dtype::float32, {1 << 19}), 1);
    held_completions held;
    auto first = one.submit(a);
    const refused_call refused(vulkan_call::submit, refused_one);
    auto second = one.submit(*other, ramp(make_host_tensor(*blocks, dtype::float32, {1 << 19}), 2));
    CHECK(refused.happened());
    const int64_t used = one.gpu->stats().used_bytes;
    one.gpu->retire(other->id);
    CHECK(one.gpu->stats().used_bytes == used); // its first part may be on its way
    held.release();
    CHECK(not_negated(first.get().output(), a) == 0);
    CHECK(second.get().code == errc::out_of_memory);
    CHECK(not_negated(one.submit(a).get().output(), a) == 0); // frees the retired plan
    CHECK(one.gpu->stats().used_bytes < used);
    CHECK(new_gpu_messages() == "");
  }
}

TEST_CASE("a large input that the host copies goes in pieces, each a submission", "[vulkan][faults][A14]") {
  const auto blocks = std::make_shared<host_block_pool>();
  const auto queues = GENERATE(vulkan::lane_queues::one, vulkan::lane_queues::shared);
  constexpr int64_t count = (3 << 20) + 77; // 12 MiB and some
  one_gpu one({.blocks = blocks, .force_staging = true, .queues = queues}, negation({count}));
  one.install();
  const tensor a = ramp(tensor(dtype::float32, {count}), 1), b = ramp(tensor(dtype::float32, {count}), 2);
  const tensor in_block = ramp(make_host_tensor(*blocks, dtype::float32, {count}), 3);
  for (const tensor& in : {a, b, in_block, a})
    CHECK(not_negated(one.submit(in).get().output(), in) == 0);
  for (const int refused_one : {1, 2, 4, 5, 6}) { // four pieces, then the last one with the work
    const refused_call refused(vulkan_call::submit, refused_one);
    const ended_chunk ended = one.submit(b).get();
    CHECK(refused.happened() == (refused_one < 6));
    CHECK(ended.ok() == (refused_one == 6));
    CHECK((ended.ok() || ended.code == errc::out_of_memory));
  }
  for (const int refused_one : {0, 1, 2, 4, 5, 6, 7}) { // work and copies out have their own beside other work
    held_completions held;
    auto first = one.submit(a, 0), second = one.submit(in_block, 1);
    std::optional<refused_call> refused;
    if (refused_one > 0)
      refused.emplace(vulkan_call::submit, refused_one);
    auto third = one.submit(b, 2);
    held.release();
    CHECK(not_negated(first.get().output(), a) == 0);
    CHECK(not_negated(second.get().output(), in_block) == 0);
    const ended_chunk ended = third.get();
    CHECK(ended.ok() != (refused && refused->happened()));
    if (ended.ok())
      CHECK(not_negated(ended.output(), b) == 0);
  }
  CHECK(new_gpu_messages() == "");
}

TEST_CASE("copies whose recording failed are recorded again", "[vulkan][faults]") {
  const auto blocks = std::make_shared<host_block_pool>();
  one_gpu one({.blocks = blocks, .force_staging = true}, negation({1 << 19}));
  one.install();
  const tensor a = ramp(make_host_tensor(*blocks, dtype::float32, {1 << 19}), 1);
  const tensor b = ramp(make_host_tensor(*blocks, dtype::float32, {1 << 19}), 2);
  CHECK(not_negated(one.submit(a).get().output(), a) == 0);
  {
    const refused_call refused(vulkan_call::end_commands);
    CHECK(one.submit(b).get().code == errc::out_of_memory);
    CHECK(refused.happened());
  }
  CHECK(not_negated(one.submit(a).get().output(), a) == 0);
  CHECK(new_gpu_messages() == "");
}

TEST_CASE("parameters whose flush failed are written again", "[vulkan][faults]") {
  const auto gpu = open_gpu({.poison = true, .force_non_coherent = true});
  const auto p = make_plan(negation({dim::symbol("n"), 1000}), {gpu->info()}, {});
  inline_runner runner(p, {gpu.get()});
  const auto rows = [](int64_t n) { return ramp(tensor(dtype::float32, {n, 1000}), static_cast<float>(n)); };
  const tensor three = rows(3), four = rows(4), five = rows(5);
  for (const tensor& in : {three, four, five}) // the latter two share a layout, and so a slot's parameters
    CHECK(not_negated(runner.run(std::span(&in, 1)).at(0), in) == 0);
  {
    const refused_call refused(vulkan_call::flush_memory);
    CHECK_THROWS_AS(runner.run(std::span(&four, 1)), error);
    CHECK(refused.happened());
  }
  CHECK(not_negated(runner.run(std::span(&five, 1)).at(0), five) == 0);
  CHECK(new_gpu_messages() == "");
}

TEST_CASE("values pass through staging memory if host memory cannot be imported", "[vulkan][faults]") {
  const auto blocks = std::make_shared<host_block_pool>();
  one_gpu one({.blocks = blocks, .force_staging = true}, negation({65536}));
  one.install();
  const tensor in = ramp(make_host_tensor(*blocks, dtype::float32, {65536}), 1);
  const refused_call refused(vulkan_call::import_memory, 1, VK_ERROR_INVALID_EXTERNAL_HANDLE, 100);
  for (int run = 0; run < 3; ++run) {
    const ended_chunk result = one.submit(in).get();
    CHECK(result.message == "");
    REQUIRE(result.ok());
    CHECK(not_negated(result.output(), in) == 0);
  }
  CHECK(refused.happened());
  const fetch_result back = fetch(*one.gpu, one.gpu->put(in));
  REQUIRE(back.ok());
  CHECK(std::ranges::equal(back.value.values<float>(), in.values<float>()));
  CHECK(new_gpu_messages() == "");
}

// How the ends of submissions are told: by their timestamps where nothing else is in flight, by semaphores else, in
// order and once each.
#include "support/catch.hpp"
#include "support/chunk_works.hpp"
#include "support/gpu.hpp"
#include "support/gpu_gate.hpp"
#include "support/run_graph.hpp"
#include "support/vulkan_faults.hpp"
#include "vulkan/commands.hpp"
#include "vulkan/timeline.hpp"

#include <climits>
#include <future>

using namespace std::chrono_literals;
using namespace troupe;
using namespace troupe::test;
using namespace troupe::vulkan;

namespace {

/// Not watched by the validation layer, which takes submissions for unfinished that no semaphore has ended.
std::shared_ptr<const instance> unwatched_gpus() {
  static const auto& one = *new std::shared_ptr<const instance>(std::make_shared<const instance>());
  return one;
}

/// A timeline whose submissions end by timestamps where they can.
struct stamped_timeline {
  explicit stamped_timeline(lane_queues lanes = lane_queues::own)
      : context(unwatched_gpus(), 0, lanes), pool(make_command_pool(context)),
        queues(std::make_unique<timeline>(context, end_signal::timestamp)) {
    const VkQueryPoolCreateInfo info{
        VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO, nullptr, 0, VK_QUERY_TYPE_TIMESTAMP, most_submissions, 0};
    VkQueryPool made = VK_NULL_HANDLE;
    check(vkCreateQueryPool(context.get(), &info, nullptr, &made), "vkCreateQueryPool");
    queries = {context.get(), made};
    vkResetQueryPool(context.get(), made, 0, most_submissions);
  }

  /// Nothing but the timestamp `submitted`.
  VkCommandBuffer stamping() {
    const VkCommandBuffer commands = make_commands(context, pool);
    begin(commands, 0);
    vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries.get(), submitted);
    end(commands);
    return commands;
  }

  void submit_part(lane on = lane::work, std::initializer_list<submission> after = {}) {
    const VkCommandBuffer commands = stamping();
    queues->submit_part(std::span(&commands, 1), on, after);
    ++submitted;
  }

  bool is_stamped(uint32_t index) {
    uint64_t time = 0;
    return vkGetQueryPoolResults(context.get(), queries.get(), index, 1, sizeof time, &time, sizeof time,
                                 VK_QUERY_RESULT_64_BIT) == VK_SUCCESS;
  }

  std::future<VkResult> submit(lane on = lane::work, std::initializer_list<submission> after = {}) {
    const VkCommandBuffer commands = stamping();
    auto ended = std::make_shared<std::promise<VkResult>>();
    newest = queues->submit(std::span(&commands, 1), [ended](VkResult r) { ended->set_value(r); }, on, after,
                            {queries.get(), submitted++});
    return ended->get_future();
  }

  static constexpr uint32_t most_submissions = 100;
  device_context context;
  command_pool_handle pool;
  query_pool_handle queries;
  std::unique_ptr<timeline> queues; // which ends first
  submission newest;
  uint32_t submitted = 0;
};

bool succeeds(std::future<VkResult> ended) {
  return ended.wait_for(20s) == std::future_status::ready && ended.get() == VK_SUCCESS;
}

} // namespace

TEST_CASE("a submission waits for one of another lane", "[vulkan][A6]") {
  const end_signal ends = GENERATE(end_signal::semaphore, end_signal::timestamp);
  device_context context(ends == end_signal::timestamp ? unwatched_gpus() : gpus(), 0, lane_queues::shared);
  std::vector<int> ended;
  {
    timeline queues(context, ends);
    submission last;
    for (int i = 0; i < 50; ++i) {
      const lane on = static_cast<lane>(i % lane_count);
      last = queues.submit({}, i % 4 ? completion([&ended, i](VkResult) { ended.push_back(i); }) : nullptr, on, {last});
    }
    CHECK(queues.submissions() == 50);
  }
  CHECK(ended.size() == 37);
  CHECK(std::is_sorted(ended.begin(), ended.end()));
  CHECK(new_gpu_messages() == "");
}

TEST_CASE("a submission with nothing beside it ends by its timestamp", "[vulkan][A6]") {
  stamped_timeline t;
  for (uint32_t i = 0; i < t.most_submissions; ++i)
    REQUIRE(succeeds(t.submit()));
  CHECK(t.queues->ended_by_timestamp() == t.most_submissions);
}

TEST_CASE("a submission after one that ends by its timestamp has the semaphore signalled too", "[vulkan][A6]") {
  stamped_timeline t(lane_queues::shared);
  held_completions held;
  std::vector<std::future<VkResult>> ended;
  ended.push_back(t.submit());
  const submission first = t.newest;
  ended.push_back(t.submit());
  ended.push_back(t.submit(lane::copies_out, {first}));
  ended.push_back(t.submit(lane::copies_in, {t.newest}));
  CHECK(t.queues->ended_by_timestamp() == 3); // the first of each lane
  auto all = std::make_shared<std::promise<VkResult>>();
  t.queues->after_all([all](VkResult r) { all->set_value(r); });
  held.release();
  for (auto& each : ended)
    CHECK(succeeds(std::move(each)));
  CHECK(succeeds(all->get_future()));
}

TEST_CASE("parts are complete with the submission that they are of", "[vulkan][A6]") {
  stamped_timeline t(lane_queues::shared);
  t.submit_part();
  t.submit_part();
  CHECK(succeeds(t.submit()));
  CHECK((t.is_stamped(0) && t.is_stamped(1) && t.is_stamped(2)));
  CHECK(t.queues->ended_by_timestamp() == 1);
  const submission work = t.newest;
  t.submit_part(lane::copies_in, {work});
  std::future<VkResult> in = t.submit(lane::copies_in), after = t.submit(lane::work, {t.newest});
  CHECK(succeeds(std::move(after)));
  CHECK((t.is_stamped(3) && t.is_stamped(4)));
  CHECK(succeeds(std::move(in)));
}

TEST_CASE("a call after everything comes after parts that nothing followed", "[vulkan][A6][B5]") {
  stamped_timeline t;
  for (const bool is_refused : {false, true}) {
    gate held(t.context);
    t.submit_part();
    std::promise<bool> stamped;
    {
      std::optional<refused_call> refused;
      if (is_refused)
        refused.emplace(vulkan_call::submit);
      t.queues->after_all([&](VkResult r) { stamped.set_value(r == VK_SUCCESS && t.is_stamped(t.submitted - 1)); });
      CHECK((!refused || refused->happened()));
    }
    std::future<bool> seen = stamped.get_future();
    CHECK(seen.wait_for(20ms) != std::future_status::ready);
    held.open();
    REQUIRE(seen.wait_for(20s) == std::future_status::ready);
    CHECK(seen.get());
  }
  CHECK(succeeds(t.submit()));
}

TEST_CASE("a waiter that has looked for long enough asks for the semaphore, again if that was refused",
          "[vulkan][A6][B5]") {
  stamped_timeline t;
  {
    gate held(t.context);
    const refused_call no_timestamp(vulkan_call::read_queries, 1, VK_NOT_READY,
                                    INT_MAX); // lavapipe waits until it is there
    const refused_call refused(vulkan_call::submit, 2);
    std::future<VkResult> ended = t.submit();
    for (int i = 0; i < 2000 && !refused.happened(); ++i)
      std::this_thread::sleep_for(10ms);
    CHECK(refused.happened());
    CHECK(ended.wait_for(0s) != std::future_status::ready);
    held.open();
    CHECK(succeeds(std::move(ended)));
  }
  CHECK(succeeds(t.submit()));
  CHECK(t.queues->ended_by_timestamp() == 2);
}

TEST_CASE("a timestamp that cannot be read for want of memory is looked for again, one that is lost ends with that",
          "[vulkan][B5]") {
  stamped_timeline t;
  {
    const refused_call refused(vulkan_call::read_queries);
    CHECK(succeeds(t.submit()));
    CHECK(refused.happened());
  }
  const refused_call refused(vulkan_call::read_queries, 1, VK_ERROR_DEVICE_LOST);
  CHECK(t.submit().get() == VK_ERROR_DEVICE_LOST);
  CHECK(refused.happened());
  vkQueueWaitIdle(t.context.queue()); // which is not lost
}

TEST_CASE("chunks that end by timestamps give their results", "[vulkan][A6]") {
  vulkan_device_options options;
  options.ends = end_signal::timestamp;
  options.poison = true;
  const auto gpu = make_vulkan_device(unwatched_gpus(), 0, "vulkan:0", options);
  graph_builder b;
  const auto p = make_plan(b.program({b.op("Neg", {b.input("x", {1000})})}), {gpu->info()}, {});
  const auto bound = bind_segment(p, 0, {});
  gpu->install(bound, 0);
  const auto run = [&](float x, uint32_t slot) {
    tensor input(dtype::float32, {1000});
    std::fill_n(input.mutable_data<float>(), 1000, x);
    auto ended = std::make_shared<std::promise<float>>();
    chunk_work work = work_of(*bound, 0, {std::move(input)});
    work.slot = slot;
    gpu->submit(work, [ended, made = work.downloads.at(0)](chunk_result r) {
      ended->set_value(r.ok() ? made->host().data<float>()[999] : std::nanf(""));
    });
    return ended->get_future();
  };
  for (int i = 1; i < 200; ++i) { // by turns alone and with another beside it
    const float x = static_cast<float>(i);
    std::future<float> first = run(x, 0);
    std::future<float> second = i % 3 ? std::future<float>() : run(x + 0.5F, 1);
    REQUIRE(first.get() == -x);
    if (second.valid())
      REQUIRE(second.get() == -x - 0.5F);
  }
}

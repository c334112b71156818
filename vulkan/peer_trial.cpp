#include "vulkan/commands.hpp"
#include "vulkan/device_choice.hpp"
#include "vulkan/imported_block.hpp"
#include "vulkan/peer_proof.hpp"
#include "vulkan/peers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <unistd.h>

namespace troupe::vulkan {
namespace {

/// Each hop copies a piece of the block to the next one, so that a GPU which does not wait copies what is not there.
constexpr VkDeviceSize piece_bytes = 4096;
constexpr uint32_t hops = 15; // as many pieces as the block has, but one
constexpr int rounds = 16;
constexpr auto patience = std::chrono::seconds(5);

/// One of the two GPUs.
struct trial_gpu {
  trial_gpu(const std::shared_ptr<const instance>& gpus, size_t index, const host_block& shared)
      : context(std::make_shared<device_context>(gpus, index, lane_queues::one)),
        set(context, std::make_shared<peer_timeline>()), pool(make_command_pool(*context)),
        queue(*context, end_signal::semaphore) {
    std::optional<imported_block> imported = import_block(*context, shared);
    if (!set.available() || !imported)
      fail(errc::device_failed, "{} does not share {}", context->facts().name,
           imported ? "its timeline" : "the host's memory");
    block = std::move(*imported);
  }

  /// Copies piece `from` of the block to the next one when `before` has arrived, and signals what it returns. Without
  /// `before` it does not wait.
  arrival_ref copy(uint32_t from, const arrival_ref& before, completion done = nullptr) {
    const VkCommandBuffer commands = make_commands(*context, pool);
    constexpr VkAccessFlags any = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT;
    begin(commands, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT);
    record(commands,
           {VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT, any, VK_PIPELINE_STAGE_TRANSFER_BIT, any});
    const VkBufferCopy region{from * piece_bytes, (from + 1) * piece_bytes, piece_bytes};
    vkCmdCopyBuffer(commands, block.buffer.get(), block.buffer.get(), 1, &region);
    record(commands, {VK_PIPELINE_STAGE_TRANSFER_BIT, any, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT});
    end(commands);
    peer_links links{.signalled = set.own()->next()};
    if (before)
      set.add_wait(before, links);
    queue.submit(std::span(&commands, 1), std::move(done), lane::work, {}, {}, links);
    return std::make_shared<const peer_arrival>(set.own(), links.signalled.value);
  }

  const std::shared_ptr<device_context> context;
  peers set;
  imported_block block;
  command_pool_handle pool;
  timeline queue; // ends first
};

class trial {
public:
  trial(const std::shared_ptr<const instance>& gpus, gpu_pair pair)
      : shared_(make_host_tensor(pool_, dtype::uint8, {(hops + 1) * static_cast<int64_t>(piece_bytes)})),
        block_(pool_.find(shared_.data(), shared_.bytes())), first_(gpus, pair.first, *block_),
        second_(gpus, pair.second, *block_) {}

  void run() {
    for (int round = 0; round < rounds; ++round) {
      exchange(static_cast<uint8_t>(round + 1), round % 2 ? second_ : first_, round % 2 ? first_ : second_);
    }
    lose(first_, second_);
    lose(second_, first_);
  }

private:
  using told = std::future<VkResult>;

  static std::pair<completion, told> answer() {
    auto heard = std::make_shared<std::promise<VkResult>>();
    told result = heard->get_future();
    return {[heard](VkResult r) { heard->set_value(r); }, std::move(result)};
  }

  /// Ends the waits of both if there is no answer, so that they can end.
  void await(told& result, const char* what) {
    if (result.wait_for(patience) != std::future_status::ready) {
      first_.set.own()->lose();
      second_.set.own()->lose();
      fail(errc::device_failed, "{} did not end", what);
    }
    check(result.get(), what);
  }

  /// Lets a pattern go to and fro, all submitted ahead.
  void exchange(uint8_t pattern, trial_gpu& a, trial_gpu& b) {
    auto* const bytes = shared_.mutable_data<uint8_t>();
    std::fill_n(bytes, shared_.bytes(), uint8_t{0});
    std::fill_n(bytes, piece_bytes, pattern);
    auto [done, result] = answer();
    arrival_ref last;
    for (uint32_t hop = 0; hop < hops; ++hop)
      last = (hop % 2 ? b : a).copy(hop, last, hop + 1 == hops ? done : nullptr);
    await(result, "an exchange");
    if (!std::all_of(bytes, bytes + shared_.bytes(), [&](uint8_t byte) { return byte == pattern; }))
      fail(errc::device_failed, "a GPU did not wait for the other");
  }

  /// Lets one wait for what the other never does, and the host end that.
  void lose(trial_gpu& a, trial_gpu& b) {
    auto [done, result] = answer();
    const uint64_t never = a.set.own()->next().value;
    b.copy(0, std::make_shared<const peer_arrival>(a.set.own(), never), done);
    if (result.wait_for(std::chrono::milliseconds(20)) == std::future_status::ready)
      fail(errc::device_failed, "a GPU did not wait for the other");
    a.set.own()->lose();
    await(result, "a wait that the host has ended");
  }

  host_block_pool pool_;
  tensor shared_;
  host_block_ptr block_;
  trial_gpu first_, second_;
};

} // namespace

std::string try_peers(const std::shared_ptr<const instance>& gpus, gpu_pair pair) {
  try {
    trial(gpus, pair).run();
    return "";
  } catch (const std::exception& e) {
    return e.what();
  }
}

void print_trials(const std::vector<std::string>& pairs) {
  const auto gpus = std::make_shared<const instance>();
  for (const std::string& words : pairs) {
    alarm(trial_seconds); // the one who has asked may be gone
    const size_t colon = words.find(':');
    const gpu_pair pair{std::stoul(words.substr(0, colon)), std::stoul(words.substr(colon + 1))};
    fmt::print("{}\n", trial_line(pair, try_peers(gpus, pair)));
    std::fflush(stdout);
  }
}

} // namespace troupe::vulkan

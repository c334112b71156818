#include "vulkan/uploader.hpp"

#include "base/mapped_memory.hpp"
#include "base/round_up.hpp"
#include "vulkan/commands.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace troupe::vulkan {

uploader::uploader(device_context& context, memory_pool& staging, timeline& queue, bool always_stage)
    : context_(context), staging_pool_(staging), queue_(queue), always_stage_(always_stage) {}

uploader::~uploader() {
  for (half& h : halves_)
    if (h.in_flight.valid())
      h.in_flight.wait();
}

void uploader::wait(half& h) {
  if (h.in_flight.valid())
    check(h.in_flight.get(), "uploading to the GPU");
  h.target = nullptr;
}

void uploader::upload(std::span<const std::byte> bytes, const std::shared_ptr<const allocation>& target) {
  expects(static_cast<int64_t>(bytes.size()) <= target->bytes(), "an upload is larger than its target");
  for (int64_t offset = 0; !bytes.empty();) {
    const std::span<const std::byte> piece = bytes.first(std::min(bytes.size(), static_cast<size_t>(piece_bytes)));
    if (target->mapped() && !always_stage_)
      write_piece(piece, *target, offset);
    else
      copy_piece(piece, target, offset);
    release_mapped_pages(piece.data(), piece.size());
    bytes = bytes.subspan(piece.size());
    offset += static_cast<int64_t>(piece.size());
  }
}

void uploader::write_piece(std::span<const std::byte> bytes, const allocation& target, int64_t offset) {
  std::memcpy(target.mapped() + offset, bytes.data(), bytes.size());
  target.flush(offset, static_cast<int64_t>(bytes.size()));
}

uploader::half& uploader::half_for(int64_t bytes) {
  constexpr int64_t least = int64_t{128} << 10;
  if (!pool_) {
    pool_ = make_command_pool(context_, VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT);
    for (half& h : halves_)
      h.commands = make_commands(context_, pool_);
  }
  half& h = halves_[std::exchange(next_, 1 - next_)];
  wait(h);
  if (!h.staging || h.staging.bytes() < bytes) {
    h.staging = {}; // before the next one is made
    h.staging = staging_pool_.allocate(std::max(least, next_power_of_two(bytes)));
  }
  return h;
}

void uploader::copy_piece(std::span<const std::byte> bytes, const std::shared_ptr<const allocation>& target,
                          int64_t offset) {
  half& h = half_for(static_cast<int64_t>(bytes.size()));
  std::memcpy(h.staging.mapped(), bytes.data(), bytes.size());
  h.staging.flush(0, static_cast<int64_t>(bytes.size()));
  begin(h.commands, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT);
  const VkBufferCopy region{static_cast<VkDeviceSize>(h.staging.offset()),
                            static_cast<VkDeviceSize>(target->offset() + offset), bytes.size()};
  vkCmdCopyBuffer(h.commands, h.staging.buffer(), target->buffer(), 1, &region);
  record(h.commands, {VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                      VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT});
  end(h.commands);
  auto ended = std::make_shared<std::promise<VkResult>>();
  std::future<VkResult> end_of_copy = ended->get_future();
  queue_.submit(std::span(&h.commands, 1), [ended](VkResult result) { ended->set_value(result); });
  h.in_flight = std::move(end_of_copy);
  h.target = target;
}

void uploader::finish() {
  for (half& h : halves_)
    wait(h);
}

} // namespace troupe::vulkan

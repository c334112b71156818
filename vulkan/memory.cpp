#include "vulkan/memory.hpp"

#include "base/round_up.hpp"

#include <algorithm>
#include <cstring>

namespace troupe::vulkan {
namespace {

constexpr int64_t block_bytes = int64_t{64} << 20;
/// Of parameters, which are few: mapped device memory is a small window on many GPUs. The host's memory begins with
/// this: drivers keep all of it resident.
constexpr int64_t small_block_bytes = int64_t{1} << 20;
constexpr int64_t granularity = 256;

} // namespace

struct memory_block {
  VkDevice device = VK_NULL_HANDLE;
  buffer_handle buffer;
  memory_handle memory;
  int64_t bytes = 0;
  bool shared = false; // by any allocations, not made for one
  int64_t atom = 1;
  std::byte* host = nullptr; // what callers see
  std::byte* real = nullptr; // what is mapped
  bool coherent = true;
  std::vector<std::byte> shadow;
  std::map<int64_t, int64_t> gaps; // offset → bytes

  bool is_empty() const { return !gaps.empty() && gaps.begin()->second == bytes; }

  VkMappedMemoryRange range(int64_t offset, int64_t count) const {
    const int64_t begin = offset / atom * atom;
    const int64_t end = std::min(round_up(offset + count, atom), bytes);
    return {VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE, nullptr, memory.get(), static_cast<VkDeviceSize>(begin),
            static_cast<VkDeviceSize>(end - begin)};
  }
};

allocation& allocation::operator=(allocation&& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(block_, other.block_);
  std::swap(offset_, other.offset_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

allocation::~allocation() {
  if (block_)
    pool_->give_back(block_, offset_, bytes_);
}

VkBuffer allocation::buffer() const {
  return block_ ? block_->buffer.get() : VK_NULL_HANDLE;
}

std::byte* allocation::mapped() const {
  return block_ && block_->host ? block_->host + offset_ : nullptr;
}

void allocation::flush(int64_t offset, int64_t bytes) const {
  if (block_->coherent || bytes == 0)
    return;
  if (!block_->shadow.empty())
    std::memcpy(block_->real + offset_ + offset, block_->host + offset_ + offset, static_cast<size_t>(bytes));
  const VkMappedMemoryRange range = block_->range(offset_ + offset, bytes);
  check(vkFlushMappedMemoryRanges(block_->device, 1, &range), "vkFlushMappedMemoryRanges");
}

void allocation::invalidate(int64_t offset, int64_t bytes) const {
  if (block_->coherent || bytes == 0)
    return;
  const VkMappedMemoryRange range = block_->range(offset_ + offset, bytes);
  check(vkInvalidateMappedMemoryRanges(block_->device, 1, &range), "vkInvalidateMappedMemoryRanges");
  if (!block_->shadow.empty())
    std::memcpy(block_->host + offset_ + offset, block_->real + offset_ + offset, static_cast<size_t>(bytes));
}

memory_pool::memory_pool(device_context& context, memory_use use, bool force_non_coherent, int64_t limit)
    : context_(context), use_(use), largest_shared_(use == memory_use::parameters ? small_block_bytes : block_bytes),
      force_non_coherent_(force_non_coherent), limit_(limit) {}

int64_t memory_pool::shared_block_bytes(int64_t bytes) const {
  if (use_ == memory_use::device)
    return largest_shared_;
  const auto whole = next_power_of_two(bytes);
  return std::clamp(std::max(reserved_, whole), small_block_bytes, largest_shared_);
}

/// Returns null if the driver has no room for it.
std::shared_ptr<memory_block> memory_pool::make_block(int64_t bytes) const {
  auto block = std::make_shared<memory_block>();
  block->device = context_.get();
  block->bytes = bytes;
  block->atom = context_.facts().non_coherent_atom;
  VkBufferCreateInfo info{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.size = static_cast<VkDeviceSize>(bytes);
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT |
               VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
               VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  context_.share(info);
  VkBuffer buffer = VK_NULL_HANDLE;
  if (vkCreateBuffer(block->device, &info, nullptr, &buffer) != VK_SUCCESS)
    return nullptr;
  block->buffer = {block->device, buffer};
  VkMemoryRequirements needs;
  vkGetBufferMemoryRequirements(block->device, buffer, &needs);
  const uint32_t type = memory_type_for(context_.facts(), use_, needs.memoryTypeBits);
  const VkMemoryAllocateInfo allocate{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, nullptr, needs.size, type};
  VkDeviceMemory memory = VK_NULL_HANDLE;
  if (vkAllocateMemory(block->device, &allocate, nullptr, &memory) != VK_SUCCESS)
    return nullptr;
  block->memory = {block->device, memory};
  check(vkBindBufferMemory(block->device, buffer, memory, 0), "vkBindBufferMemory");
  const VkMemoryPropertyFlags flags = context_.facts().memory_types[type].flags;
  if (flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) {
    void* mapped = nullptr;
    check(vkMapMemory(block->device, memory, 0, VK_WHOLE_SIZE, 0, &mapped), "vkMapMemory");
    block->real = block->host = static_cast<std::byte*>(mapped);
    block->coherent = (flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) && !force_non_coherent_;
    if (force_non_coherent_) {
      block->shadow.resize(static_cast<size_t>(bytes));
      block->host = block->shadow.data();
    }
  }
  block->gaps[0] = bytes;
  return block;
}

allocation memory_pool::allocate(int64_t bytes) {
  bytes = round_up(std::max<int64_t>(bytes, 1), granularity);
  const std::lock_guard lock(mutex_);
  if (allocation found = find_gap(bytes))
    return found;
  add_block(bytes);
  return find_gap(bytes);
}

/// Returns nothing if no block has room.
allocation memory_pool::find_gap(int64_t bytes) {
  for (const auto& block : blocks_)
    for (auto gap = block->gaps.begin(); gap != block->gaps.end(); ++gap)
      if (gap->second >= bytes) {
        const auto [offset, size] = *gap;
        block->gaps.erase(gap);
        if (size > bytes)
          block->gaps[offset + bytes] = size - bytes;
        return {this, block, offset, bytes};
      }
  return {};
}

/// Makes a block with room for `bytes`: a whole one, or what the driver has left.
void memory_pool::add_block(int64_t bytes) {
  if (bytes > limit_ - reserved_)
    drop_empty_blocks();
  const int64_t left = limit_ - reserved_;
  if (bytes > left)
    fail(errc::out_of_memory, "{}: {} bytes asked for, {} are left of the {} that it may use", context_.facts().name,
         bytes, left, limit_);
  const bool shared = bytes <= largest_shared_ / 2;
  std::shared_ptr<memory_block> made = make_block(shared ? std::min(shared_block_bytes(bytes), left) : bytes);
  if (made)
    made->shared = shared;
  if (!made) {
    drop_empty_blocks();
    made = make_block(bytes);
  }
  if (!made)
    fail(errc::out_of_memory, "{}: the driver did not give {} bytes; {} are allocated", context_.facts().name, bytes,
         reserved_);
  blocks_.push_back(made);
  reserved_ += made->bytes;
}

void memory_pool::drop_empty_blocks() {
  std::erase_if(blocks_, [this](const std::shared_ptr<memory_block>& block) {
    if (!block->is_empty())
      return false;
    reserved_ -= block->bytes;
    return true;
  });
}

int64_t memory_pool::reserved_bytes() const {
  const std::lock_guard lock(mutex_);
  return reserved_;
}

int64_t memory_pool::free_bytes() const {
  const std::lock_guard lock(mutex_);
  int64_t sum = 0;
  for (const auto& block : blocks_)
    for (const auto& [offset, bytes] : block->gaps)
      sum += bytes;
  return sum;
}

int64_t memory_pool::largest_gap_bytes() const {
  const std::lock_guard lock(mutex_);
  int64_t largest = 0;
  for (const auto& block : blocks_)
    for (const auto& [offset, bytes] : block->gaps)
      largest = std::max(largest, bytes);
  return largest;
}

bool memory_pool::may_keep(const memory_block& empty) const {
  if (use_ == memory_use::device)
    return blocks_.size() == 1;
  return std::ranges::none_of(blocks_, [&](const auto& b) { return b.get() != &empty && b->is_empty(); });
}

void memory_pool::give_back(const std::shared_ptr<memory_block>& block, int64_t offset, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  auto next = block->gaps.upper_bound(offset);
  if (next != block->gaps.end() && next->first == offset + bytes) {
    bytes += next->second;
    next = block->gaps.erase(next);
  }
  if (next != block->gaps.begin() && std::prev(next)->first + std::prev(next)->second == offset)
    std::prev(next)->second += bytes;
  else
    block->gaps[offset] = bytes;
  if (block->is_empty() && (!block->shared || !may_keep(*block))) {
    reserved_ -= block->bytes;
    std::erase(blocks_, block);
  }
}

} // namespace troupe::vulkan

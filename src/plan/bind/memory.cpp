#include "plan/bind/memory.hpp"

#include "base/checked.hpp"
#include "plan/arena_space.hpp"

#include <map>
#include <memory_resource>
#include <numeric>
#include <set>

namespace troupe {
namespace {

constexpr uint32_t no_block = UINT32_MAX;

/// Free gaps of an arena that grows at its end.
class arena_gaps {
public:
  arena_gaps() : by_offset_(&pool_), by_size_(&pool_) {}

  int64_t end() const { return end_; }

  int64_t take(int64_t bytes) {
    const auto fit = by_size_.lower_bound({bytes, 0});
    if (fit == by_size_.end())
      return grow(bytes);
    const auto [size, offset] = *fit;
    by_offset_.erase(offset);
    by_size_.erase(fit);
    if (size > bytes)
      add(offset + bytes, size - bytes);
    return offset;
  }

  void give_back(int64_t offset, int64_t bytes) {
    auto next = by_offset_.lower_bound(offset);
    if (next != by_offset_.end() && next->first == offset + bytes) {
      bytes += next->second;
      next = remove(next);
    }
    if (next != by_offset_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == offset) {
        offset = before->first;
        bytes += before->second;
        remove(before);
      }
    }
    add(offset, bytes);
  }

private:
  using offset_map = std::pmr::map<int64_t, int64_t>;

  int64_t grow(int64_t bytes) {
    int64_t offset = end_;
    if (!by_offset_.empty()) {
      const auto last = std::prev(by_offset_.end());
      if (last->first + last->second == end_) {
        offset = last->first;
        remove(last);
      }
    }
    end_ = checked_add(offset, bytes);
    return offset;
  }

  void add(int64_t offset, int64_t bytes) {
    by_offset_.emplace(offset, bytes);
    by_size_.emplace(bytes, offset);
  }

  offset_map::iterator remove(offset_map::iterator at) {
    by_size_.erase({at->second, at->first});
    return by_offset_.erase(at);
  }

  std::pmr::unsynchronized_pool_resource pool_;
  offset_map by_offset_;                               // offset → bytes
  std::pmr::set<std::pair<int64_t, int64_t>> by_size_; // bytes, offset
  int64_t end_ = 0;
};

/// One gap in use: by one value, or by several that took it over in place.
struct block {
  int64_t offset = 0;
  int64_t bytes = 0;
  uint32_t last = 0;
  uint32_t next = no_block; // of the blocks that end at the same position
};

class arena_builder {
public:
  arena_builder(const device_lifetimes& lifetimes, std::span<const shape> dims, std::span<const int64_t> bytes)
      : lifetimes_(lifetimes), dims_(dims), bytes_(bytes), block_of_(lifetimes.values.size()),
        ends_at_(lifetimes.positions, no_block) {
    blocks_.reserve(lifetimes.values.size());
  }

  device_memory run() {
    device_memory memory;
    if (lifetimes_.positions == 0)
      return memory; // the device has no chunk in this segment
    std::vector<std::pair<value_id, int64_t>> offsets;
    offsets.reserve(lifetimes_.values.size());
    uint32_t position = 0;
    for (uint32_t i = 0; i < lifetimes_.values.size(); ++i) {
      const lifetime& l = lifetimes_.values[i];
      for (; position < l.first; ++position)
        expire(position);
      const int64_t size = arena_space(bytes_[l.value]);
      memory.bytes_without_reuse = checked_add(memory.bytes_without_reuse, size);
      block_of_[i] = find_block(l, size);
      block& b = blocks_[block_of_[i]];
      b.last = l.last;
      b.next = ends_at_[l.last];
      ends_at_[l.last] = block_of_[i];
      offsets.emplace_back(l.value, b.offset);
    }
    memory.offset.assign(std::move(offsets));
    memory.arena_bytes = gaps_.end();
    memory.peak_bytes = peak_;
    return memory;
  }

private:
  void expire(uint32_t position) {
    for (uint32_t b = ends_at_[position]; b != no_block; b = blocks_[b].next)
      release(blocks_[b]);
  }

  void release(const block& b) {
    gaps_.give_back(b.offset, b.bytes);
    in_use_ -= b.bytes;
  }

  uint32_t find_block(const lifetime& l, int64_t size) {
    for (uint32_t c = l.reuse_begin; c < l.reuse_end; ++c) {
      const reuse_candidate& candidate = lifetimes_.candidates[c];
      if (dims_[candidate.input] == dims_[l.value])
        return take_over(block_of_[candidate.lifetime]);
    }
    blocks_.push_back({gaps_.take(size), size});
    in_use_ += size; // at most the arena, whose growth is checked
    peak_ = std::max(peak_, in_use_);
    return static_cast<uint32_t>(blocks_.size() - 1);
  }

  /// Keeps `old`, whose last use is here, from being freed; returns it.
  uint32_t take_over(uint32_t old) {
    uint32_t* link = &ends_at_[blocks_[old].last];
    while (*link != old)
      link = &blocks_[*link].next;
    *link = blocks_[old].next;
    return old;
  }

  const device_lifetimes& lifetimes_;
  std::span<const shape> dims_;
  std::span<const int64_t> bytes_;
  std::vector<uint32_t> block_of_; // by lifetime
  std::vector<block> blocks_;
  std::vector<uint32_t> ends_at_; // by position: first of the blocks whose last use it is
  arena_gaps gaps_;
  int64_t in_use_ = 0, peak_ = 0;
};

} // namespace

device_memory lay_out(const device_lifetimes& lifetimes, std::span<const shape> dims, std::span<const int64_t> bytes) {
  return arena_builder(lifetimes, dims, bytes).run();
}

std::vector<int64_t> live_bytes(const device_lifetimes& lifetimes, const device_memory& memory,
                                std::span<const int64_t> bytes) {
  std::vector<int64_t> live(lifetimes.positions + 1, 0); // what is added at each position, until it is summed up
  for (const lifetime& l : lifetimes.values) {
    const auto candidates = std::span(lifetimes.candidates).subspan(l.reuse_begin, l.reuse_end - l.reuse_begin);
    const bool takes_over = std::any_of(candidates.begin(), candidates.end(), [&](const reuse_candidate& c) {
      return memory.offset[lifetimes.values[c.lifetime].value] == memory.offset[l.value];
    });
    const int64_t space = arena_space(bytes[l.value]);
    live[l.first + (takes_over ? 1 : 0)] += space; // at its first position the bytes count as the input's
    live[l.last + 1] -= space;
  }
  std::partial_sum(live.begin(), live.end(), live.begin());
  live.pop_back();
  return live;
}

} // namespace troupe

#include "device/host_block.hpp"

#include "base/round_up.hpp"

#include <algorithm>
#include <bit>
#include <list>
#include <map>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>

namespace troupe {
namespace {

/// From here on blocks are made of huge pages if the system gives them: faster to fault in and to import.
constexpr int64_t huge_page = int64_t{1} << 21;

constexpr int64_t max_block_bytes = int64_t{1} << 47;

/// Idle blocks are looked through one by one.
constexpr size_t max_idle_blocks = 256;

/// Size classes: four steps to each power of two, so that at most a fifth of a block is left over and sizes that grow
/// slowly meet the same blocks.
int64_t class_of(int64_t bytes) {
  if (bytes <= 4 * host_block_alignment)
    return round_up(bytes, host_block_alignment);
  const auto power = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(bytes - 1)));
  return round_up(bytes, power / 4);
}

/// Returns `bytes` bytes aligned to `alignment`, null if there are none.
void* map_aligned(int64_t bytes, int64_t alignment) {
  const auto size = static_cast<size_t>(bytes), extra = static_cast<size_t>(alignment);
  void* whole = mmap(nullptr, size + extra, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (whole == MAP_FAILED)
    return nullptr;
  auto* const begin = static_cast<std::byte*>(whole);
  const size_t before = (extra - reinterpret_cast<uintptr_t>(whole) % extra) % extra;
  if (before > 0)
    munmap(begin, before);
  if (extra > before)
    munmap(begin + before + size, extra - before);
  if (alignment == huge_page)
    madvise(begin + before, size, MADV_HUGEPAGE);
  return begin + before;
}

uint64_t next_block_id() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

} // namespace

/// All blocks that are mapped, by address. Blocks keep it alive, so that they can leave it.
struct host_block::registry {
  mutable std::mutex mutex;
  std::map<uintptr_t, std::weak_ptr<const host_block>> by_address;
  int64_t mapped_bytes = 0;
};

host_block::host_block(std::shared_ptr<registry> all, uint64_t id, void* data, int64_t bytes)
    : registry_(std::move(all)), id_(id), data_(data), bytes_(bytes) {}

host_block::~host_block() {
  {
    const std::lock_guard lock(registry_->mutex);
    registry_->by_address.erase(reinterpret_cast<uintptr_t>(data_));
    registry_->mapped_bytes -= bytes_;
  }
  munmap(data_, static_cast<size_t>(bytes_)); // not before: the next block may get the same address
}

struct host_block_pool::state {
  using block = std::shared_ptr<host_block>;
  using blocks = std::list<block>; // moved between lists node by node, so that giving back cannot fail

  /// Returns an idle block of this size, or a fresh one; one element.
  blocks take(int64_t bytes) {
    blocks taken;
    {
      const std::lock_guard lock(mutex);
      const auto at = std::find_if(idle.begin(), idle.end(), [&](const block& b) { return b->bytes() == bytes; });
      if (at != idle.end()) {
        taken.splice(taken.end(), idle, at);
        counters.idle_bytes -= bytes;
        counters.used_bytes += bytes;
        ++counters.reused;
        return taken;
      }
    }
    taken.push_back(map_block(bytes));
    const std::lock_guard lock(mutex);
    counters.used_bytes += bytes;
    ++counters.mapped;
    return taken;
  }

  /// Takes back a block that no tensor is in any more.
  void give_back(blocks& one) {
    blocks retired; // unmapped after the lock
    const std::lock_guard lock(mutex);
    counters.used_bytes -= one.front()->bytes();
    counters.idle_bytes += one.front()->bytes();
    // One that is larger than the bound goes first, not the others.
    idle.splice(one.front()->bytes() > max_idle_bytes ? idle.end() : idle.begin(), one);
    retire(closed ? 0 : max_idle_bytes, retired);
  }

  /// Gives up idle blocks, the longest idle first, until at most `limit` bytes are left; they are moved to `out`. Under
  /// the lock.
  void retire(int64_t limit, blocks& out) {
    while (counters.idle_bytes > limit || idle.size() > max_idle_blocks) {
      idle.back()->retired_.store(true, std::memory_order_release);
      counters.idle_bytes -= idle.back()->bytes();
      out.splice(out.end(), idle, std::prev(idle.end()));
    }
  }

  block map_block(int64_t bytes) {
    const int64_t alignment = bytes >= huge_page ? huge_page : host_block_alignment;
    void* data = map_aligned(bytes, alignment);
    if (!data) { // idle blocks may be in the way
      trim();
      data = map_aligned(bytes, alignment);
    }
    if (!data)
      fail(errc::out_of_memory, "host memory: {} bytes cannot be mapped; use smaller dims", bytes);
    block made(new host_block(all, next_block_id(), data, bytes));
    const std::lock_guard lock(all->mutex);
    all->by_address.emplace(reinterpret_cast<uintptr_t>(data), made);
    all->mapped_bytes += bytes;
    return made;
  }

  void trim() {
    blocks retired;
    const std::lock_guard lock(mutex);
    retire(0, retired);
  }

  const std::shared_ptr<host_block::registry> all = std::make_shared<host_block::registry>();
  int64_t max_idle_bytes = 0;
  std::mutex mutex;
  blocks idle; // the last one used first
  bool closed = false;
  host_pool_stats counters; // without mapped_bytes
};

/// What the handles of one tensor share. The pool's state outlives the pool until the last one is gone.
struct host_block_pool::lease {
  explicit lease(std::shared_ptr<state> s) : to(std::move(s)) {}
  ~lease() {
    if (!held.empty())
      to->give_back(held);
  }
  lease(const lease&) = delete;
  lease& operator=(const lease&) = delete;

  const std::shared_ptr<state> to;
  state::blocks held; // none if there was no memory, else one
};

int64_t default_idle_bytes() {
  const int64_t machine = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGE_SIZE);
  return std::max(machine / 16, int64_t{1} << 30);
}

host_block_pool::host_block_pool(int64_t max_idle_bytes) : state_(std::make_shared<state>()) {
  state_->max_idle_bytes = max_idle_bytes;
}

host_block_pool::~host_block_pool() {
  state::blocks retired;
  const std::lock_guard lock(state_->mutex);
  state_->closed = true;
  state_->retire(0, retired);
}

host_block_ptr host_block_pool::find(const void* address, int64_t bytes) const {
  const host_block::registry& all = *state_->all;
  const auto begin = reinterpret_cast<uintptr_t>(address);
  host_block_ptr found;
  {
    const std::lock_guard lock(all.mutex);
    const auto next = all.by_address.upper_bound(begin);
    if (next != all.by_address.begin())
      found = std::prev(next)->second.lock();
  }
  if (!found)
    return nullptr;
  const uintptr_t offset = begin - reinterpret_cast<uintptr_t>(found->data());
  const auto size = static_cast<uintptr_t>(found->bytes());
  const bool inside = bytes >= 0 && offset <= size && static_cast<uintptr_t>(bytes) <= size - offset;
  return inside ? found : nullptr;
}

void host_block_pool::trim() {
  state_->trim();
}

host_pool_stats host_block_pool::stats() const {
  host_pool_stats s;
  {
    const std::lock_guard lock(state_->mutex);
    s = state_->counters;
  }
  const std::lock_guard lock(state_->all->mutex);
  s.mapped_bytes = state_->all->mapped_bytes;
  return s;
}

tensor make_host_tensor(host_block_pool& pool, dtype type, shape dims) {
  const int64_t bytes = holds_objects(type) ? 0 : bytes_of(type, volume(dims));
  if (bytes == 0)
    return {type, std::move(dims)};
  if (bytes > max_block_bytes)
    fail(errc::out_of_memory, "host memory: {} bytes are more than any machine has; use smaller dims", bytes);
  auto owner = std::make_shared<host_block_pool::lease>(pool.state_);
  owner->held = pool.state_->take(class_of(bytes));
  const void* const data = owner->held.front()->data();
  return {type, std::move(dims), std::move(owner), data};
}

tensor_maker maker_in(std::shared_ptr<host_block_pool> pool) {
  constexpr int64_t worth_a_block = 64 << 10; // bytes that a fresh mapping of pages would cost more than their copy
  return [pool = std::move(pool)](dtype type, shape dims) {
    const int64_t bytes = bytes_of(type, volume(dims));
    return bytes < worth_a_block ? tensor(type, std::move(dims)) : make_host_tensor(*pool, type, std::move(dims));
  };
}

} // namespace troupe

// Host memory as the GPU's own: blocks of the process's pool (device/host_block.hpp), imported through
// VK_EXT_external_memory_host, so that large tensors are copied by the device straight from and to where they are.
//
// An import is kept under its block's id as long as the pool may use the block again, and as long as there are not too
// many: drivers allow few allocations, and imports count as such. If a block cannot be imported (no memory of the
// driver, no type of memory that is coherent, all imports in use), the bytes pass through staging memory instead.
//
// Used by the device's thread alone; the ends of copies may end on any.
#pragma once

#include "device/host_block.hpp"
#include "vulkan/imported_block.hpp"
#include "vulkan/memory.hpp"

#include <functional>
#include <map>

namespace troupe::vulkan {

/// The host's end of a copy: a tensor, and where its bytes are for the GPU. Must live until the copy is complete.
class host_end {
public:
  VkBuffer buffer = VK_NULL_HANDLE; // null if the tensor has no bytes
  VkDeviceSize offset = 0;
  uint64_t id = 0; // of the import or the staging memory; never used twice

  /// Whether the bytes of the tensor that is copied from were not fetched when the end was made: then `fetch` does,
  /// which calls `fetched(n)` after the first n bytes are there, for growing n up to all.
  bool is_fetched_later() const { return from_.defined(); }
  void fetch(const std::function<void(int64_t n)>& fetched);

  /// Returns the tensor that was copied to, after the copy.
  tensor take();
  /// Returns the tensor that is copied to, before the copy; undefined if its bytes do not go straight there.
  tensor target() const { return staging_ ? tensor() : value_; }
  /// Copies bytes that have been copied to the tensor to `to`.
  void read(int64_t offset, int64_t bytes, void* to) const;

private:
  friend class host_imports;
  tensor value_, from_;
  std::shared_ptr<const void> import_; // what must not end
  allocation staging_;                 // or what the bytes pass through
};

class host_imports {
public:
  /// `blocks` may be null: then, and if the driver cannot import, bytes always pass through memory of `uploads` and
  /// `downloads`. At most `max_imports` are there at once.
  host_imports(device_context& context, std::shared_ptr<host_block_pool> blocks, memory_pool& uploads,
               memory_pool& downloads, size_t max_imports);

  /// Whether host memory can be imported.
  bool available() const { return available_; }

  /// The end of a copy from `t`, whose bytes may be used when the copy is complete, not before.
  host_end source(const tensor& t);
  /// The same, where bytes that have to be copied to memory of ours are fetched later (`host_end::is_fetched_later`).
  host_end unfetched_source(const tensor& t);
  /// The same where the bytes are not looked at, since they may not be there yet; nullopt if they have to be.
  std::optional<host_end> source_in_block(const tensor& t);
  /// The same from a copy of `t`: the caller may change its bytes at once.
  host_end copied_source(const tensor& t);
  /// The end of a copy to a tensor that is made for it.
  host_end target(dtype type, const shape& dims);

  /// Lets go of blocks that the pool has given up.
  void forget_retired();

private:
  struct imported {
    uint64_t id = 0;
    host_block_ptr block;
    imported_block memory; // ends before the block
  };
  struct entry {
    std::shared_ptr<const imported> held;
    uint64_t used = 0; // when it was used last
  };

  enum class fetching : uint8_t { none, now, later };
  fetching fetching_of(const tensor& t) const;
  host_end place_source(const tensor& t, fetching how);
  bool place_in_import(host_end& end);
  void place_in_staging(host_end& end, memory_pool& pool);
  std::shared_ptr<const imported> find_or_import(host_block_ptr block);
  std::shared_ptr<const imported> import(host_block_ptr block);
  bool make_room();

  device_context& context_;
  std::shared_ptr<host_block_pool> blocks_;
  memory_pool& uploads_;
  memory_pool& downloads_;
  const size_t max_imports_;
  const bool available_;
  std::map<uint64_t, entry> imports_; // by block id
  uint64_t uses_ = 0, last_id_ = 0;
};

} // namespace troupe::vulkan

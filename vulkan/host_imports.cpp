#include "vulkan/host_imports.hpp"

#include "base/parallel.hpp"

#include <algorithm>

namespace troupe::vulkan {

void host_end::fetch(const std::function<void(int64_t)>& fetched) {
  parallel_copy(value_.mutable_data(), from_.data(), from_.bytes(), fetched);
}

tensor host_end::take() {
  if (staging_) {
    staging_.invalidate(0, value_.bytes());
    parallel_copy(value_.mutable_data(), staging_.mapped(), value_.bytes());
  }
  return std::move(value_);
}

void host_end::read(int64_t offset, int64_t bytes, void* to) const {
  if (staging_)
    staging_.invalidate(offset, bytes);
  const std::byte* const from = staging_ ? staging_.mapped() : static_cast<const std::byte*>(value_.data());
  parallel_copy(to, from + offset, bytes);
}

host_imports::host_imports(device_context& context, std::shared_ptr<host_block_pool> blocks, memory_pool& uploads,
                           memory_pool& downloads, size_t max_imports)
    : context_(context), blocks_(std::move(blocks)), uploads_(uploads), downloads_(downloads),
      max_imports_(max_imports), available_(blocks_ && imports_blocks(context_.facts())) {}

host_imports::fetching host_imports::fetching_of(const tensor& t) const {
  return available() && blocks_->find(t.data(), t.bytes()) ? fetching::none : fetching::now;
}

host_end host_imports::source(const tensor& t) {
  return place_source(t, fetching_of(t));
}

host_end host_imports::unfetched_source(const tensor& t) {
  return place_source(t, fetching_of(t) == fetching::none ? fetching::none : fetching::later);
}

std::optional<host_end> host_imports::source_in_block(const tensor& t) {
  host_end end;
  end.value_ = t;
  if (t.bytes() > 0 && (fetching_of(t) != fetching::none || !place_in_import(end)))
    return std::nullopt;
  return end;
}

host_end host_imports::copied_source(const tensor& t) {
  return place_source(t, fetching::now);
}

/// With `fetching::none` the bytes of `t` are read where they are, which must be in a block.
host_end host_imports::place_source(const tensor& t, fetching how) {
  host_end end;
  end.value_ = t;
  if (t.bytes() == 0)
    return end;
  if (available() && how != fetching::none)
    end.value_ = make_host_tensor(*blocks_, t.type(), t.dims());
  if (place_in_import(end)) {
    if (how == fetching::later)
      end.from_ = t;
    else if (how == fetching::now)
      parallel_copy(end.value_.mutable_data(), t.data(), t.bytes());
    return end;
  }
  place_in_staging(end, uploads_);
  parallel_copy(end.staging_.mapped(), t.data(), t.bytes());
  end.staging_.flush(0, t.bytes());
  return end;
}

host_end host_imports::target(dtype type, const shape& dims) {
  host_end end;
  end.value_ = available() ? make_host_tensor(*blocks_, type, dims) : tensor(type, dims);
  if (end.value_.bytes() > 0 && !place_in_import(end))
    place_in_staging(end, downloads_);
  return end;
}

/// Returns false if the tensor's block cannot be imported.
bool host_imports::place_in_import(host_end& end) {
  if (!available())
    return false;
  const tensor& t = end.value_;
  host_block_ptr block = blocks_->find(t.data(), t.bytes());
  expects(block != nullptr, "a tensor to import is in no host block");
  const std::shared_ptr<const imported> found = find_or_import(std::move(block));
  if (!found)
    return false;
  end.id = found->id;
  end.buffer = found->memory.buffer.get();
  end.offset = static_cast<VkDeviceSize>(static_cast<const std::byte*>(t.data()) -
                                         static_cast<const std::byte*>(found->block->data()));
  end.import_ = found;
  return true;
}

void host_imports::place_in_staging(host_end& end, memory_pool& pool) {
  end.staging_ = pool.allocate(end.value_.bytes());
  end.id = ++last_id_;
  end.buffer = end.staging_.buffer();
  end.offset = static_cast<VkDeviceSize>(end.staging_.offset());
}

/// Returns null if the block cannot be imported.
std::shared_ptr<const host_imports::imported> host_imports::find_or_import(host_block_ptr block) {
  const uint64_t id = block->id();
  auto found = imports_.find(id);
  if (found == imports_.end()) {
    forget_retired();
    std::shared_ptr<const imported> made = make_room() ? import(std::move(block)) : nullptr;
    if (!made)
      return nullptr;
    found = imports_.emplace(id, entry{std::move(made)}).first;
  }
  found->second.used = ++uses_;
  return found->second.held;
}

/// Returns null if the driver refuses.
std::shared_ptr<const host_imports::imported> host_imports::import(host_block_ptr block) {
  std::optional<imported_block> memory = import_block(context_, *block);
  if (!memory)
    return nullptr;
  return std::make_shared<const imported>(imported{++last_id_, std::move(block), std::move(*memory)});
}

/// Ends the import that was used longest ago if there are as many as there may be. Returns false if all are in use.
bool host_imports::make_room() {
  if (imports_.size() < max_imports_)
    return true;
  auto oldest = imports_.end();
  for (auto it = imports_.begin(); it != imports_.end(); ++it)
    if (it->second.held.use_count() == 1 && (oldest == imports_.end() || it->second.used < oldest->second.used))
      oldest = it;
  if (oldest == imports_.end())
    return false;
  imports_.erase(oldest);
  return true;
}

void host_imports::forget_retired() {
  std::erase_if(imports_, [](const auto& entry) { return entry.second.held->block->retired(); });
}

} // namespace troupe::vulkan

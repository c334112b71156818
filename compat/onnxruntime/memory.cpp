#include "compat/onnxruntime/memory.hpp"

#include "compat/onnxruntime/functions.hpp"
#include "compat/onnxruntime/handles.hpp"
#include "compat/onnxruntime/key_values.hpp"
#include "compat/onnxruntime/status.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <malloc.h>

/// How an arena grows; kept, and of no effect.
struct OrtArenaCfg {};

namespace troupe::ort {
namespace {

constexpr size_t alignment = 64;

/// What the default allocator has handed out.
struct counters {
  std::atomic<uint64_t> allocations = 0, frees = 0;
  std::atomic<int64_t> bytes = 0, most_bytes = 0, largest = 0;
};

/// Never destroyed: clients may free memory when the process ends.
counters& counted() {
  static auto& all = *new counters;
  return all;
}

void raise_most(std::atomic<int64_t>& most, int64_t value) {
  for (int64_t seen = most; seen < value && !most.compare_exchange_weak(seen, value);) {
  }
}

void* take_bytes(OrtAllocator* /*self*/, size_t bytes) {
  if (bytes == 0 || bytes > SIZE_MAX - alignment)
    return nullptr;
  void* data = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (!data)
    return nullptr;
  const auto taken = static_cast<int64_t>(malloc_usable_size(data));
  counters& c = counted();
  ++c.allocations;
  raise_most(c.most_bytes, c.bytes += taken);
  raise_most(c.largest, taken);
  return data;
}

void free_bytes(OrtAllocator* /*self*/, void* data) {
  if (!data)
    return;
  counters& c = counted();
  ++c.frees;
  c.bytes -= static_cast<int64_t>(malloc_usable_size(data));
  std::free(data);
}

const OrtMemoryInfo* info_of_host(const OrtAllocator* /*self*/) {
  return &host_memory();
}

OrtStatus* stats(const OrtAllocator* /*self*/, OrtKeyValuePairs** out) {
  return guarded([&] {
    const counters& c = counted();
    given(out, "the place for the statistics") = make_pairs({{"NumAllocs", std::to_string(c.allocations)},
                                                             {"NumFrees", std::to_string(c.frees)},
                                                             {"InUse", std::to_string(c.bytes)},
                                                             {"TotalAllocated", std::to_string(c.bytes)},
                                                             {"MaxInUse", std::to_string(c.most_bytes)},
                                                             {"MaxAllocSize", std::to_string(c.largest)}});
  });
}

/// Memory has no queue of a device here, so that one is memory like any other.
void* alloc_on_stream(OrtAllocator* self, size_t bytes, OrtSyncStream* /*stream*/) {
  return take_bytes(self, bytes);
}

OrtStatus* shrink(OrtAllocator* /*self*/) {
  malloc_trim(0);
  return nullptr;
}

} // namespace

const OrtMemoryInfo& host_memory() {
  static const auto& memory = *new OrtMemoryInfo{.name = "Cpu"};
  return memory;
}

OrtAllocator& default_allocator() {
  static OrtAllocator allocator{newest_version, take_bytes, free_bytes,      info_of_host,
                                take_bytes,     stats,      alloc_on_stream, shrink};
  return allocator;
}

void* allocate(OrtAllocator* allocator, size_t bytes) {
  OrtAllocator& from = given(allocator, "the allocator");
  void* data = from.Alloc(&from, bytes);
  if (!data && bytes > 0)
    throw api_error(ORT_RUNTIME_EXCEPTION, "the allocator gives no memory for " + std::to_string(bytes) + " bytes");
  return data;
}

char* copy_text(OrtAllocator* allocator, std::string_view text) {
  auto* copy = static_cast<char*>(allocate(allocator, text.size() + 1));
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  return copy;
}

OrtStatus* AllocatorAlloc(OrtAllocator* allocator, size_t bytes, void** out) noexcept {
  return guarded([&] { given(out, "the place for the memory") = allocate(allocator, bytes); });
}

OrtStatus* AllocatorFree(OrtAllocator* allocator, void* data) noexcept {
  return guarded([&] { given(allocator, "the allocator").Free(allocator, data); });
}

OrtStatus* AllocatorGetInfo(const OrtAllocator* allocator, const OrtMemoryInfo** out) noexcept {
  return guarded([&] { given(out, "the place for the info") = given(allocator, "the allocator").Info(allocator); });
}

OrtStatus* AllocatorGetStats(const OrtAllocator* allocator, OrtKeyValuePairs** out) noexcept {
  if (allocator && allocator != &default_allocator())
    return refusal("AllocatorGetStats", "the allocator is the client's own");
  return stats(allocator, out);
}

OrtStatus* GetAllocatorWithDefaultOptions(OrtAllocator** out) noexcept {
  return guarded([&] { given(out, "the place for the allocator") = &default_allocator(); });
}

OrtStatus* CreateAllocator(const OrtSession* session, const OrtMemoryInfo* memory, OrtAllocator** out) noexcept {
  return guarded([&] {
    given(session, "the session");
    if (!given(memory, "the memory info").is_host())
      throw api_error(ORT_NOT_IMPLEMENTED, "CreateAllocator: memory of '" + memory->name + "' is not the host's");
    given(out, "the place for the allocator") = &default_allocator();
  });
}

/// All allocators that clients get are the one that stays.
void ReleaseAllocator(OrtAllocator* /*allocator*/) noexcept {}

OrtStatus* CreateSharedAllocator(OrtEnv* env, const OrtEpDevice* device, OrtDeviceMemoryType /*type*/,
                                 OrtAllocatorType /*kind*/, const OrtKeyValuePairs* /*options*/,
                                 OrtAllocator** out) noexcept {
  return guarded([&] {
    given(env, "the environment");
    given(device, "the device");
    if (out)
      *out = &default_allocator();
  });
}

OrtStatus* GetSharedAllocator(OrtEnv* env, const OrtMemoryInfo* memory, OrtAllocator** out) noexcept {
  return guarded([&] {
    given(env, "the environment");
    OrtAllocator*& found = given(out, "the place for the allocator");
    found = given(memory, "the memory info").is_host() ? &default_allocator() : nullptr;
  });
}

OrtStatus* ReleaseSharedAllocator(OrtEnv* env, const OrtEpDevice* device, OrtDeviceMemoryType /*type*/) noexcept {
  return guarded([&] {
    given(env, "the environment");
    given(device, "the device");
  });
}

OrtStatus* CreateArenaCfg(size_t /*most*/, int /*strategy*/, int /*first_bytes*/, int /*dead_bytes*/,
                          OrtArenaCfg** out) noexcept {
  return guarded([&] { given(out, "the place for the configuration") = make_handle<OrtArenaCfg>(); });
}

OrtStatus* CreateArenaCfgV2(const char* const* /*keys*/, const size_t* /*values*/, size_t /*count*/,
                            OrtArenaCfg** out) noexcept {
  return guarded([&] { given(out, "the place for the configuration") = make_handle<OrtArenaCfg>(); });
}

void ReleaseArenaCfg(OrtArenaCfg* configuration) noexcept {
  release_handle(configuration, "ReleaseArenaCfg");
}

} // namespace troupe::ort

// Where memory is: what clients say and ask of it.
#include "compat/onnxruntime/functions.hpp"
#include "compat/onnxruntime/handles.hpp"
#include "compat/onnxruntime/memory.hpp"
#include "compat/onnxruntime/status.hpp"

namespace troupe::ort {
namespace {

/// Returns whose memory a name of ONNX Runtime's means: "Cpu" and, of the host too, "CudaPinned" and its like; else a
/// GPU's.
OrtMemoryInfoDeviceType device_of(std::string_view name) {
  return name == "Cpu" || name.ends_with("Pinned") ? OrtMemoryInfoDeviceType_CPU : OrtMemoryInfoDeviceType_GPU;
}

} // namespace

OrtStatus* CreateMemoryInfo(const char* name, OrtAllocatorType allocator, int id, OrtMemType type,
                            OrtMemoryInfo** out) noexcept {
  return guarded([&] {
    const char* known = &given(name, "the name of the memory");
    given(out, "the place for the memory info") =
        make_handle<OrtMemoryInfo>(known, allocator, id, type, device_of(known));
  });
}

OrtStatus* CreateMemoryInfo_V2(const char* name, OrtMemoryInfoDeviceType device, uint32_t vendor, int32_t id,
                               OrtDeviceMemoryType type, size_t /*alignment*/, OrtAllocatorType allocator,
                               OrtMemoryInfo** out) noexcept {
  return guarded([&] {
    given(out, "the place for the memory info") = make_handle<OrtMemoryInfo>(
        &given(name, "the name of the memory"), allocator, id,
        type == OrtDeviceMemoryType_HOST_ACCESSIBLE ? OrtMemTypeCPUOutput : OrtMemTypeDefault, device, type, vendor);
  });
}

OrtStatus* CreateCpuMemoryInfo(OrtAllocatorType allocator, OrtMemType type, OrtMemoryInfo** out) noexcept {
  return guarded(
      [&] { given(out, "the place for the memory info") = make_handle<OrtMemoryInfo>("Cpu", allocator, 0, type); });
}

OrtStatus* CompareMemoryInfo(const OrtMemoryInfo* a, const OrtMemoryInfo* b, int* out) noexcept {
  return guarded([&] {
    const bool same = given(a, "the first memory info") == given(b, "the second memory info");
    given(out, "the place for the answer") = same ? 0 : -1;
  });
}

OrtStatus* MemoryInfoGetName(const OrtMemoryInfo* memory, const char** out) noexcept {
  return guarded([&] { given(out, "the place for the name") = given(memory, "the memory info").name.c_str(); });
}

OrtStatus* MemoryInfoGetId(const OrtMemoryInfo* memory, int* out) noexcept {
  return guarded([&] { given(out, "the place for the id") = given(memory, "the memory info").id; });
}

OrtStatus* MemoryInfoGetMemType(const OrtMemoryInfo* memory, OrtMemType* out) noexcept {
  return guarded([&] { given(out, "the place for the type") = given(memory, "the memory info").type; });
}

OrtStatus* MemoryInfoGetType(const OrtMemoryInfo* memory, OrtAllocatorType* out) noexcept {
  return guarded([&] { given(out, "the place for the type") = given(memory, "the memory info").allocator; });
}

void MemoryInfoGetDeviceType(const OrtMemoryInfo* memory, OrtMemoryInfoDeviceType* out) noexcept {
  if (out)
    *out = memory ? memory->device : OrtMemoryInfoDeviceType_CPU;
}

OrtDeviceMemoryType MemoryInfoGetDeviceMemType(const OrtMemoryInfo* memory) noexcept {
  return memory ? memory->device_memory : OrtDeviceMemoryType_DEFAULT;
}

uint32_t MemoryInfoGetVendorId(const OrtMemoryInfo* memory) noexcept {
  return memory ? memory->vendor : 0;
}

void ReleaseMemoryInfo(OrtMemoryInfo* memory) noexcept {
  release_handle(memory, "ReleaseMemoryInfo");
}

} // namespace troupe::ort

// DLPack, the exchange of tensors between libraries of one process (dmlc.github.io/dlpack, ABI version 0): a capsule
// around a description of memory, which its consumer renames when it takes it over.
#include "value.hpp"

namespace troupe::python {
namespace {

struct dl_device {
  int32_t type; // 1: the host's memory; 3, 11: the same, pinned
  int32_t id;
};

struct dl_type {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct dl_tensor {
  void* data;
  dl_device device;
  int32_t rank;
  dl_type type;
  int64_t* dims;
  int64_t* strides; // in elements; null: row-major
  uint64_t byte_offset;
};

struct dl_managed {
  dl_tensor tensor;
  void* context;
  void (*deleter)(dl_managed*);
};

constexpr const char* fresh_name = "dltensor";
constexpr const char* used_name = "used_dltensor";

enum dl_code : uint8_t { dl_int = 0, dl_uint = 1, dl_float = 2, dl_bfloat = 4, dl_bool = 6 };

struct type_row {
  dtype type;
  dl_code code;
};
constexpr type_row types[] = {
    {dtype::float16, dl_float},   {dtype::float32, dl_float}, {dtype::float64, dl_float}, {dtype::int8, dl_int},
    {dtype::int16, dl_int},       {dtype::int32, dl_int},     {dtype::int64, dl_int},     {dtype::uint8, dl_uint},
    {dtype::uint16, dl_uint},     {dtype::uint32, dl_uint},   {dtype::uint64, dl_uint},   {dtype::boolean, dl_bool},
    {dtype::bfloat16, dl_bfloat},
};

/// What an exported description points into.
struct exported {
  troupe::tensor value;
  dl_managed managed{};
};

void destroy_unused(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, fresh_name))
    return; // a consumer has it
  auto* managed = static_cast<dl_managed*>(PyCapsule_GetPointer(capsule, fresh_name));
  managed->deleter(managed);
}

bool is_dense(const dl_tensor& t) {
  if (!t.strides)
    return true;
  int64_t expected = 1;
  for (int32_t i = t.rank - 1; i >= 0; --i) {
    if (t.dims[i] != 1 && t.strides[i] != expected)
      return false;
    expected *= t.dims[i];
  }
  return true;
}

dtype type_of(const dl_type& given) {
  for (const type_row& row : types)
    if (row.code == given.code && bits_of(row.type) == given.bits && given.lanes == 1)
      return row.type;
  throw error(errc::unsupported, "DLPack: elements of code " + std::to_string(given.code) + " and " +
                                     std::to_string(given.bits) + " bits cannot be taken");
}

/// Checks what another library says of its memory.
void check(const dl_tensor& t) {
  constexpr int32_t most_dims = 64;
  if (t.device.type != 1 && t.device.type != 3 && t.device.type != 11)
    throw error(errc::unsupported, "DLPack: the tensor is not in the host's memory (device type " +
                                       std::to_string(t.device.type) + "): copy it there first, e.g. with .cpu()");
  if (t.rank < 0 || t.rank > most_dims || (t.rank > 0 && !t.dims))
    throw error(errc::invalid_input, "DLPack: a tensor of rank " + std::to_string(t.rank));
  if (!is_dense(t))
    throw error(errc::invalid_input, "DLPack: the tensor is not contiguous: make a contiguous copy first");
}

} // namespace

py::capsule to_dlpack(const value& v) {
  const type_row* row =
      std::find_if(std::begin(types), std::end(types), [&](const type_row& r) { return r.type == v.type(); });
  if (row == std::end(types))
    throw py::buffer_error("DLPack has no type for " + std::string(to_string(v.type())));
  const troupe::tensor bytes = v.fetch();
  auto* made = new exported{.value = v.writable ? bytes : copy_of(bytes)};
  auto& dims = const_cast<shape&>(made->value.dims()); // DLPack has no const; consumers do not write dims
  made->managed = {.tensor = {.data = made->value.mutable_data(),
                              .device = {1, 0},
                              .rank = static_cast<int32_t>(dims.size()),
                              .type = {row->code, static_cast<uint8_t>(bits_of(row->type)), 1},
                              .dims = dims.data(),
                              .strides = nullptr,
                              .byte_offset = 0},
                   .context = made,
                   .deleter = [](dl_managed* managed) { delete static_cast<exported*>(managed->context); }};
  return py::reinterpret_steal<py::capsule>(PyCapsule_New(&made->managed, fresh_name, destroy_unused));
}

value from_dlpack(const py::object& object) {
  const py::object given = object.attr("__dlpack__")();
  if (!PyCapsule_IsValid(given.ptr(), fresh_name))
    throw error(errc::invalid_input, "DLPack: __dlpack__ gave no fresh capsule called 'dltensor'");
  auto* managed = static_cast<dl_managed*>(PyCapsule_GetPointer(given.ptr(), fresh_name));
  const dl_tensor& t = managed->tensor;
  check(t);
  const dtype type = type_of(t.type);
  shape dims(t.dims, t.dims + t.rank);
  const void* data = static_cast<const char*>(t.data) + t.byte_offset;
  const auto alignment = static_cast<uintptr_t>(bits_of(type) / 8);
  if (reinterpret_cast<uintptr_t>(data) % alignment != 0)
    throw error(errc::invalid_input, "DLPack: the tensor's memory is not aligned to its elements");
  PyCapsule_SetName(given.ptr(), used_name);
  py::capsule owner(managed, [](void* kept) {
    auto* done = static_cast<dl_managed*>(kept);
    if (done->deleter)
      done->deleter(done);
  });
  return {.host = {type, std::move(dims), keep_alive(std::move(owner)), data}, .writable = true};
}

} // namespace troupe::python

#include "troupe/tensor_file.hpp"

#include "base/guard.hpp"
#include "base/write_file.hpp"
#include "loader/container_proto.hpp"
#include "loader/file_kind.hpp"
#include "loader/mapped_file.hpp"
#include "loader/npy.hpp"
#include "loader/npz.hpp"
#include "loader/tensor_proto.hpp"
#include "tensor/convert.hpp"

#include <ostream>

namespace troupe {
namespace {

/// NumPy's formats are inputs of a run, not models: whatever is wrong with them is an invalid input.
template <class F>
auto with_array_file(const std::filesystem::path& file, F work) {
  return guarded(file.string(), [&] {
    try {
      return work();
    } catch (const error& e) {
      throw error(e.code() == errc::invalid_model ? errc::invalid_input : e.code(), e.what());
    }
  });
}

/// NumPy lacks some element types: bfloat16 and small floats are written as float32, integers of 4 and 2 bits as 8-bit
/// ones, all exactly.
tensor as_numpy_type(const tensor& t) {
  dtype type = t.type();
  if ((types::small_floats | set_of(dtype::bfloat16)) & set_of(type))
    type = dtype::float32;
  else if (types::small_ints & set_of(type))
    type = type == dtype::int4 || type == dtype::int2 ? dtype::int8 : dtype::uint8;
  if (type == t.type())
    return t;
  tensor wide(type, t.dims());
  convert(t.view(), wide.mutable_ref());
  return wide;
}

} // namespace

named_tensor parse_pb(std::span<const std::byte> bytes, dtype expected) {
  if (is_container(expected))
    return parse_container(bytes, expected);
  scanned_message scanned = read_as("a serialized tensor", bytes, [&] { return scan_wire(bytes, wire_root::tensor); });
  onnx::TensorProto proto;
  if (bytes.empty() || !proto.ParsePartialFromArray(scanned.message.data(), static_cast<int>(scanned.message.size())))
    fail(errc::invalid_model, "it is not a serialized tensor");
  // Without an owner the tensor copies its bytes: the file may change later.
  tensor_reader reader({nullptr, bytes, ""}, std::move(scanned), {});
  return named_tensor{proto.name(), reader.read(proto).value};
}

std::string make_pb(const std::string& name, const tensor& value) {
  if (is_container(value.type()))
    return make_container(name, value);
  onnx::TensorProto proto;
  proto.set_name(name);
  proto.set_data_type(static_cast<int>(value.type()));
  for (int64_t d : value.dims())
    proto.add_dims(d);
  constexpr int64_t most_bytes = (int64_t{1} << 31) - (1 << 20); // protobuf's limit
  if (value.bytes() > most_bytes)
    fail(errc::unsupported, "{} bytes are too many for a .pb file; use .npy", value.bytes());
  if (value.type() == dtype::string)
    for (const auto& text : value.values<std::string>())
      proto.add_string_data(text);
  else
    proto.set_raw_data(value.data(), static_cast<size_t>(value.bytes()));
  return proto.SerializeAsString();
}

named_tensor read_pb(const std::filesystem::path& file, dtype expected) {
  const auto mapped = mapped_file::open(file);
  return guarded(file.string(), [&] { return parse_pb(mapped->bytes(), expected); });
}

void write_pb(const std::filesystem::path& file, const std::string& name, const tensor& value) {
  write_file(file, guarded(file.string(), [&] { return make_pb(name, value); }));
}

tensor read_npy(const std::filesystem::path& file) {
  const auto mapped = mapped_file::open(file);
  return with_array_file(
      file, [&] { return read_as("a .npy array", mapped->bytes(), [&] { return parse_npy(mapped->bytes()); }); });
}

void write_npy(const std::filesystem::path& file, const tensor& value) {
  const tensor written = as_numpy_type(value);
  const std::string head = make_npy_header(written.type(), written.dims());
  write_file(file, [&](std::ostream& out) {
    out.write(head.data(), static_cast<std::streamsize>(head.size()));
    out.write(static_cast<const char*>(written.data()), static_cast<std::streamsize>(written.bytes()));
  });
}

std::map<std::string, tensor> read_npz(const std::filesystem::path& file) {
  const auto mapped = mapped_file::open(file);
  return with_array_file(file, [&] { return parse_npz(mapped->bytes()); });
}

} // namespace troupe

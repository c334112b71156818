#include "loader/tensor_proto.hpp"

#include "base/checked.hpp"
#include "loader/file_kind.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace troupe {

namespace {

shape dims_of(const onnx::TensorProto& proto) {
  if (static_cast<size_t>(proto.dims_size()) > limits::max_rank)
    fail(errc::unsupported, "a rank of {} is too high", proto.dims_size());
  return {proto.dims().begin(), proto.dims().end()};
}

/// Throws unless `found` elements (or bytes) are what the dims ask for.
void expect_count(int64_t found, int64_t wanted, const char* unit, const shape& dims) {
  if (found != wanted)
    fail(errc::invalid_model, "it holds {} {}, but its shape {} needs {}", found, unit, to_string(dims), wanted);
}

/// Copies elements of a typed field that has exactly the tensor's C++ type.
template <class T, class Field>
tensor copy_field(const Field& field, dtype type, shape dims) {
  expect_count(field.size(), volume(dims), "elements", dims);
  tensor t(type, std::move(dims));
  std::copy(field.begin(), field.end(), t.mutable_data<T>());
  return t;
}

/// int32_data holds the bits of all types of up to 32 bits; packed elements come a byte an entry.
tensor from_int32_data(const onnx::TensorProto& proto, dtype type, shape dims) {
  const int bits = std::max(bits_of(type), 8);
  const int64_t entries = bytes_of(type, volume(dims)) / (bits / 8);
  expect_count(proto.int32_data_size(), entries, "entries of int32_data", dims);
  tensor t(type, std::move(dims));
  auto* out = static_cast<char*>(t.mutable_data());
  for (int32_t entry : proto.int32_data()) {
    if (bits < 32 && (entry < -(1 << (bits - 1)) || entry >= 1 << bits))
      fail(errc::invalid_model, "int32_data holds {}, which does not fit in {}", entry, to_string(type));
    if (type == dtype::boolean)
      entry = entry != 0;
    std::memcpy(out, &entry, static_cast<size_t>(bits / 8));
    out += bits / 8;
  }
  return t;
}

tensor from_typed_fields(const onnx::TensorProto& proto, dtype type, shape dims) {
  switch (type) {
    case dtype::float32: return copy_field<float>(proto.float_data(), type, std::move(dims));
    case dtype::float64: return copy_field<double>(proto.double_data(), type, std::move(dims));
    case dtype::int64: return copy_field<int64_t>(proto.int64_data(), type, std::move(dims));
    case dtype::uint64: return copy_field<uint64_t>(proto.uint64_data(), type, std::move(dims));
    case dtype::uint32: return copy_field<uint32_t>(proto.uint64_data(), type, std::move(dims));
    case dtype::string: return copy_field<std::string>(proto.string_data(), type, std::move(dims));
    default: return from_int32_data(proto, type, std::move(dims));
  }
}

bool has_typed_field(const onnx::TensorProto& p) {
  return p.float_data_size() || p.int32_data_size() || p.int64_data_size() || p.double_data_size() ||
         p.uint64_data_size() || p.string_data_size();
}

/// A non-negative decimal number of an external_data entry.
int64_t number_of(const std::string& key, const std::string& text) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc{} || stop != end || value < 0)
    fail(errc::invalid_model, "external data: the {} {} is not a valid number of bytes", key, in_quotes(text));
  return value;
}

struct external_place {
  std::string location;
  int64_t offset = 0;
  int64_t length = -1; // not stated
};

external_place place_of(const onnx::TensorProto& proto) {
  external_place place;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location")
      place.location = entry.value();
    else if (entry.key() == "offset")
      place.offset = number_of(entry.key(), entry.value());
    else if (entry.key() == "length")
      place.length = number_of(entry.key(), entry.value());
  }
  return place;
}

bool all_zero_or_one(const std::byte* data, int64_t count) {
  return std::all_of(data, data + count, [](std::byte b) { return b <= std::byte{1}; });
}

} // namespace

tensor_reader::tensor_reader(tensor_bytes file, scanned_message scanned, std::filesystem::path folder)
    : file_(std::move(file)), scanned_(std::move(scanned)), files_(std::move(folder)) {}

sourced_tensor tensor_reader::read(const onnx::TensorProto& proto) {
  try {
    return read_checked(proto);
  } catch (const error& e) {
    fail(e.code(), "tensor {}: {}", in_quotes(proto.name()), e.what());
  }
}

sourced_tensor tensor_reader::read_checked(const onnx::TensorProto& proto) {
  // A SequenceProto or OptionalProto taken for a tensor has its elements in this field.
  if (proto.has_segment())
    fail(errc::unsupported, "it is a segmented tensor, or a sequence or optional where a tensor is expected");
  const dtype type = dtype_from_onnx(proto.data_type());
  shape dims = dims_of(proto);
  const int64_t bytes = bytes_of(type, volume(dims));
  if (proto.data_location() == onnx::TensorProto::EXTERNAL)
    return external(proto, type, std::move(dims));
  const blob raw = proto.has_raw_data() ? blob_of(scanned_, proto.raw_data()) : blob{};
  if (has_typed_field(proto)) {
    if (raw.length > 0)
      fail(errc::invalid_model, "it has both raw_data and a typed field");
    return {from_typed_fields(proto, type, std::move(dims)), ""};
  }
  if (type == dtype::string) {
    expect_count(0, volume(dims), "strings in string_data", dims);
    return {tensor(type, std::move(dims)), ""};
  }
  expect_count(static_cast<int64_t>(raw.length), bytes, "bytes", dims);
  return in_place(file_, raw.offset, type, std::move(dims));
}

sourced_tensor tensor_reader::external(const onnx::TensorProto& proto, dtype type, shape dims) {
  if (type == dtype::string)
    fail(errc::invalid_model, "strings cannot be external data");
  if (proto.has_raw_data() || has_typed_field(proto))
    fail(errc::invalid_model, "it has external data and data in the model");
  const external_place place = place_of(proto);
  const auto file = files_.open(place.location);
  const int64_t wanted = bytes_of(type, volume(dims));
  const auto size = static_cast<int64_t>(file->bytes().size());
  if (place.length >= 0)
    expect_count(place.length, wanted, "bytes of external data", dims);
  if (place.offset > size || wanted > size - place.offset) {
    refuse_other_kinds(file->bytes(), "the model's external data");
    fail(errc::invalid_model, "external data {}: bytes {} to {} are wanted, but the file has {}",
         in_quotes(place.location), place.offset, checked_add(place.offset, wanted), size);
  }
  if (budgeted_.insert(file->identity()).second) // whatever the location is called
    touch_budget_ = checked_add(touch_budget_, checked_mul(size, limits::touched_bytes_a_byte));
  return in_place({file, file->bytes(), file->identity()}, static_cast<uint64_t>(place.offset), type, std::move(dims));
}

sourced_tensor tensor_reader::in_place(const tensor_bytes& file, uint64_t offset, dtype type, shape dims) {
  const int64_t bytes = bytes_of(type, volume(dims));
  const std::byte* data = file.bytes.data() + (bytes > 0 ? offset : 0);
  const auto alignment = static_cast<uintptr_t>(std::max(bits_of(type) / 8, 1));
  const bool aligned = file.owner && reinterpret_cast<uintptr_t>(data) % alignment == 0;
  const bool untouched = aligned && type != dtype::boolean && bytes > limits::hashed_bytes;
  if (file.bytes.data() != file_.bytes.data() && !untouched && (touch_budget_ -= bytes) < 0)
    fail(errc::unsupported, "external data: too many tensors name the same bytes");
  // C++ bools are 0 or 1; a file may say otherwise.
  const bool regular = type != dtype::boolean || all_zero_or_one(data, bytes);
  std::string source;
  if (regular && !file.identity.empty())
    source = fmt::format("{}@{}+{}", file.identity, offset, bytes);
  if (regular && bytes > 0 && aligned)
    return {tensor(type, std::move(dims), file.owner, data), std::move(source)};
  tensor copy(type, std::move(dims));
  if (bytes > 0)
    std::memcpy(copy.mutable_data(), data, static_cast<size_t>(bytes));
  if (!regular)
    for (int64_t i = 0; i < bytes; ++i)
      copy.mutable_data<uint8_t>()[i] = copy.data<uint8_t>()[i] != 0;
  return {std::move(copy), std::move(source)};
}

} // namespace troupe

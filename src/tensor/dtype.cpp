#include "tensor/dtype.hpp"

#include "base/checked.hpp"

#include <array>

namespace troupe {
namespace {

constexpr size_t container_bits = sequence_bit | optional_bit;

/// The names of all containers, by number.
std::array<std::string, 2 * container_bits> container_names() {
  std::array<std::string, 2 * container_bits> names;
  for (size_t i = sequence_bit; i <= (container_bits | static_cast<size_t>(dtype::int2)); ++i) {
    const auto type = static_cast<dtype>(i);
    names[i] = fmt::format("{}({})", is_optional(type) ? "optional" : "sequence",
                           is_container(element_of(type)) ? names[static_cast<size_t>(element_of(type))]
                                                          : to_string(element_of(type)));
  }
  return names;
}

} // namespace

std::string_view to_string(dtype type) {
  if (is_container(type)) {
    static const auto names = container_names();
    return names[static_cast<size_t>(type) % names.size()];
  }
  switch (type) {
    case dtype::undefined: return "undefined";
    case dtype::float32: return "float32";
    case dtype::uint8: return "uint8";
    case dtype::int8: return "int8";
    case dtype::uint16: return "uint16";
    case dtype::int16: return "int16";
    case dtype::int32: return "int32";
    case dtype::int64: return "int64";
    case dtype::string: return "string";
    case dtype::boolean: return "bool";
    case dtype::float16: return "float16";
    case dtype::float64: return "float64";
    case dtype::uint32: return "uint32";
    case dtype::uint64: return "uint64";
    case dtype::bfloat16: return "bfloat16";
    case dtype::float8e4m3fn: return "float8e4m3fn";
    case dtype::float8e4m3fnuz: return "float8e4m3fnuz";
    case dtype::float8e5m2: return "float8e5m2";
    case dtype::float8e5m2fnuz: return "float8e5m2fnuz";
    case dtype::uint4: return "uint4";
    case dtype::int4: return "int4";
    case dtype::float4e2m1: return "float4e2m1";
    case dtype::float8e8m0: return "float8e8m0";
    case dtype::uint2: return "uint2";
    case dtype::int2: return "int2";
  }
  return "unknown";
}

dtype dtype_from_onnx(int onnx_code) {
  const bool known = (onnx_code >= 1 && onnx_code <= 13) || (onnx_code >= 16 && onnx_code <= 26);
  if (!known)
    fail(errc::unsupported, "element type {} (ONNX TensorProto.DataType) is not supported", onnx_code);
  return static_cast<dtype>(onnx_code);
}

int bits_of(dtype type) {
  switch (type) {
    case dtype::undefined:
    case dtype::string: return 0;
    case dtype::uint2:
    case dtype::int2: return 2;
    case dtype::uint4:
    case dtype::int4:
    case dtype::float4e2m1: return 4;
    case dtype::uint8:
    case dtype::int8:
    case dtype::boolean:
    case dtype::float8e4m3fn:
    case dtype::float8e4m3fnuz:
    case dtype::float8e5m2:
    case dtype::float8e5m2fnuz:
    case dtype::float8e8m0: return 8;
    case dtype::uint16:
    case dtype::int16:
    case dtype::float16:
    case dtype::bfloat16: return 16;
    case dtype::float32:
    case dtype::int32:
    case dtype::uint32: return 32;
    case dtype::int64:
    case dtype::uint64:
    case dtype::float64: return 64;
  }
  return 0;
}

int64_t bytes_of(dtype type, int64_t count) {
  if (type == dtype::string)
    return checked_mul(count, sizeof(std::string));
  if (is_container(type))
    return checked_mul(count, sizeof(tensor));
  return checked_add(checked_mul(count, bits_of(type)), 7) / 8;
}

} // namespace troupe

#include "tensor/convert.hpp"

#include "base/parallel.hpp"
#include "tensor/half_rows.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

namespace troupe {
namespace {

/// Elements go through a buffer of one of four types that hold every source exactly: float, double, int64_t, uint64_t.
/// Blocks are multiples of 4, so that a block of packed elements starts on a byte.
constexpr int64_t block = 512;
constexpr int64_t blocks_per_thread = 64;

template <class Hub>
using buffer = std::array<Hub, block>;

/// The bits of element `i` where `width` bits are an element's.
uint8_t packed_bits(const uint8_t* packed, int64_t i, int width) {
  const int64_t in_byte = 8 / width;
  return static_cast<uint8_t>(packed[i / in_byte] >> (i % in_byte * width) & ((1 << width) - 1));
}

int small_integer(dtype type, uint8_t bits) {
  const int width = bits_of(type);
  const bool negative = (type == dtype::int4 || type == dtype::int2) && bits >> (width - 1) != 0;
  return negative ? bits - (1 << width) : bits;
}

/// Reads `count` elements from `begin` on; `Hub` is the buffer type of the source's type.
template <class Hub>
void decode(const const_view& from, int64_t begin, int64_t count, buffer<Hub>& out) {
  const auto copy = [&](const auto* data, auto get) {
    for (int64_t i = 0; i < count; ++i)
      out[i] = static_cast<Hub>(get(data[begin + i]));
  };
  const auto as_is = [](auto x) { return +x; };
  if constexpr (std::is_floating_point_v<Hub>) {
    if (from.type == dtype::float4e2m1) {
      for (int64_t i = 0; i < count; ++i)
        out[i] = decode_small_float(from.type, packed_bits(from.as<uint8_t>(), begin + i, 4));
      return;
    }
    if (is_small_float(from.type))
      return copy(from.as<uint8_t>(), [&](uint8_t bits) { return decode_small_float(from.type, bits); });
    visit_float(from.type, [&]<class T>(type_tag<T>) { copy(from.as<T>(), [](T x) { return static_cast<Hub>(x); }); });
  } else if (from.type == dtype::boolean) {
    copy(from.as<uint8_t>(), [](uint8_t x) { return x != 0; });
  } else if (types::packed & set_of(from.type)) {
    const int width = bits_of(from.type);
    for (int64_t i = 0; i < count; ++i)
      out[i] = static_cast<Hub>(small_integer(from.type, packed_bits(from.as<uint8_t>(), begin + i, width)));
  } else {
    visit_integer(from.type, [&]<class T>(type_tag<T>) { copy(from.as<T>(), as_is); });
  }
}

template <class T, class Hub>
T narrowed(Hub value) {
  if constexpr (std::is_integral_v<T> && std::is_floating_point_v<Hub>)
    return to_integer<T>(value);
  else
    return static_cast<T>(value);
}

/// Packs `code(element)` of all elements, as many bits as the type has.
template <class Hub, class Code>
void encode_packed(const buffer<Hub>& in, int64_t begin, int64_t count, const mutable_view& to, Code code) {
  const int width = bits_of(to.type), in_byte = 8 / width, mask = (1 << width) - 1;
  uint8_t* packed = to.as<uint8_t>() + begin / in_byte;
  for (int64_t i = 0; i < count; i += in_byte) {
    int byte = 0;
    for (int64_t k = 0; k < std::min<int64_t>(in_byte, count - i); ++k)
      byte |= (code(in[i + k]) & mask) << (k * width);
    packed[i / in_byte] = static_cast<uint8_t>(byte);
  }
}

/// Returns a number's text; of a float, the shortest that reads back the same.
template <class Hub>
std::string to_text(Hub value) {
  if constexpr (std::is_floating_point_v<Hub>) {
    if (value != value)
      return "NaN";
    if (std::isinf(value))
      return value > 0 ? "INF" : "-INF";
    char text[32];
    return {text, std::to_chars(text, std::end(text), value, std::chars_format::general).ptr};
  }
  return fmt::format("{}", value);
}

template <class Hub>
void encode(const buffer<Hub>& in, int64_t begin, int64_t count, const mutable_view& to, const small_float_rule& rule) {
  const auto copy = [&](auto* data, auto make) {
    for (int64_t i = 0; i < count; ++i)
      data[begin + i] = make(in[i]);
  };
  if (to.type == dtype::string)
    copy(to.as<std::string>(), [&](Hub x) { return to_text(x); });
  else if (to.type == dtype::boolean)
    copy(to.as<uint8_t>(), [](Hub x) { return static_cast<uint8_t>(x != 0); });
  else if (to.type == dtype::float4e2m1)
    encode_packed(in, begin, count, to,
                  [&](Hub x) { return encode_small_float(to.type, static_cast<float>(x), rule); });
  else if (is_small_float(to.type))
    copy(to.as<uint8_t>(), [&](Hub x) { return encode_small_float(to.type, static_cast<float>(x), rule); });
  else if (types::packed & set_of(to.type))
    encode_packed(in, begin, count, to, [](Hub x) { return narrowed<int32_t>(x); });
  else if (types::floats & set_of(to.type))
    visit_float(to.type, [&]<class T>(type_tag<T>) { copy(to.as<T>(), [](Hub x) { return static_cast<T>(x); }); });
  else
    visit_integer(to.type, [&]<class T>(type_tag<T>) { copy(to.as<T>(), [](Hub x) { return narrowed<T>(x); }); });
}

template <class Hub>
void convert_through(const const_view& from, const mutable_view& to, const small_float_rule& rule) {
  const int64_t count = from.size(), blocks = (count + block - 1) / block;
  parallel_for(blocks, blocks_per_thread, [&](int64_t first, int64_t last) {
    buffer<Hub> hub;
    for (int64_t b = first; b < last; ++b) {
      const int64_t length = std::min(block, count - b * block);
      decode(from, b * block, length, hub);
      encode(hub, b * block, length, to, rule);
    }
  });
}

/// Converts rows of a thread's size without a buffer between.
template <class Narrow>
void widen(const const_view& from, const mutable_view& to) {
  parallel_for(from.size(), block * blocks_per_thread, [&](int64_t begin, int64_t end) {
    widen_row(from.as<Narrow>() + begin, to.as<float>() + begin, end - begin);
  });
}

template <class Narrow>
void narrow(const const_view& from, const mutable_view& to) {
  parallel_for(from.size(), block * blocks_per_thread, [&](int64_t begin, int64_t end) {
    narrow_row(from.as<float>() + begin, to.as<Narrow>() + begin, end - begin);
  });
}

/// Converts between float32 and a 16-bit float, which devices do for whole activations and weights; returns false for
/// other types.
bool convert_halves(const const_view& from, const mutable_view& to) {
  const auto is = [&](dtype a, dtype b) { return from.type == a && to.type == b; };
  if (is(dtype::float16, dtype::float32))
    widen<float16>(from, to);
  else if (is(dtype::bfloat16, dtype::float32))
    widen<bfloat16>(from, to);
  else if (is(dtype::float32, dtype::float16))
    narrow<float16>(from, to);
  else if (is(dtype::float32, dtype::bfloat16))
    narrow<bfloat16>(from, to);
  else
    return false;
  return true;
}

/// Reads text as a number of type Hub; an integer that is written with a point or an exponent is cut to a whole one.
template <class Hub>
Hub parse(const std::string& text) {
  char* end = nullptr;
  errno = 0;
  if constexpr (std::is_integral_v<Hub>) {
    const long long whole = std::strtoll(text.c_str(), &end, 10);
    if (errno == 0 && end != text.c_str() && *end == 0)
      return whole;
  }
  const double number = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end != 0)
    fail(errc::invalid_input, "the text '{}' is not a number", text.substr(0, 40));
  return narrowed<Hub>(number);
}

template <class Hub>
void convert_text(const const_view& from, const mutable_view& to, const small_float_rule& rule) {
  buffer<Hub> hub;
  for (int64_t i = 0, count = from.size(); i < count; i += block) {
    const int64_t length = std::min(block, count - i);
    for (int64_t k = 0; k < length; ++k)
      hub[k] = parse<Hub>(from.as<std::string>()[i + k]);
    encode(hub, i, length, to, rule);
  }
}

} // namespace

void convert(const const_view& from, const mutable_view& to, const small_float_rule& rule) {
  expects(from.size() == to.size(), "convert: sizes differ");
  const dtype_set type = set_of(from.type);
  const bool to_float = (types::floats | types::small_floats) & set_of(to.type);
  if (from.type == to.type && from.type == dtype::string)
    std::copy_n(from.as<std::string>(), from.size(), to.as<std::string>());
  else if (from.type == to.type)
    std::memmove(to.data, from.data, static_cast<size_t>(from.bytes()));
  else if (convert_halves(from, to))
    return;
  else if (from.type == dtype::string)
    to_float ? convert_text<double>(from, to, rule) : convert_text<int64_t>(from, to, rule);
  else if (from.type == dtype::float64)
    convert_through<double>(from, to, rule);
  else if (type & (types::floats | types::small_floats))
    convert_through<float>(from, to, rule);
  else if (from.type == dtype::uint64)
    convert_through<uint64_t>(from, to, rule);
  else
    convert_through<int64_t>(from, to, rule);
}

} // namespace troupe

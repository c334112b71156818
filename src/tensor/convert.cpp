#include "tensor/convert.hpp"

#include "base/parallel.hpp"
#include "tensor/float8.hpp"
#include "tensor/half_rows.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace troupe {
namespace {

/// Elements go through a buffer of one of four types that hold every source exactly: float, double, int64_t, uint64_t.
/// Blocks are even, so that a block of 4-bit elements starts on a byte.
constexpr int64_t block = 512;
constexpr int64_t blocks_per_thread = 64;

template <class Hub>
using buffer = std::array<Hub, block>;

int nibble(const uint8_t* packed, int64_t i, bool is_signed) {
  const int bits = packed[i / 2] >> (i % 2 ? 4 : 0) & 15;
  return is_signed && bits > 7 ? bits - 16 : bits;
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
    if (is_float8(from.type))
      return copy(from.as<uint8_t>(), [&](uint8_t bits) { return decode_float8(from.type, bits); });
    visit_float(from.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      copy(from.as<T>(), [](T x) { return static_cast<Hub>(x); });
    });
  } else if (from.type == dtype::boolean) {
    copy(from.as<uint8_t>(), [](uint8_t x) { return x != 0; });
  } else if (bits_of(from.type) == 4) {
    for (int64_t i = 0; i < count; ++i)
      out[i] = static_cast<Hub>(nibble(from.as<uint8_t>(), begin + i, from.type == dtype::int4));
  } else {
    visit_integer(from.type, [&](auto tag) { copy(from.as<typename decltype(tag)::type>(), as_is); });
  }
}

template <class T, class Hub>
T narrowed(Hub value) {
  if constexpr (std::is_integral_v<T> && std::is_floating_point_v<Hub>)
    return to_integer<T>(value);
  else
    return static_cast<T>(value);
}

template <class Hub>
uint8_t to_nibble(Hub value) {
  return static_cast<uint8_t>(narrowed<int32_t>(value) & 15);
}

template <class Hub>
void encode_nibbles(const buffer<Hub>& in, int64_t begin, int64_t count, const mutable_view& to) {
  uint8_t* packed = to.as<uint8_t>() + begin / 2;
  for (int64_t i = 0; i < count; i += 2) {
    const uint8_t low = to_nibble(in[i]);
    const uint8_t high = i + 1 < count ? to_nibble(in[i + 1]) : 0;
    packed[i / 2] = static_cast<uint8_t>(low | high << 4);
  }
}

/// Text of a number: the shortest that reads back the same; whole floats keep a ".0" as NumPy's do.
template <class Hub>
std::string to_text(Hub value, dtype from) {
  if (from == dtype::boolean)
    return value ? "True" : "False";
  if constexpr (std::is_floating_point_v<Hub>) {
    if (value != value)
      return "NaN";
    if (std::isinf(value))
      return value > 0 ? "INF" : "-INF";
    const std::string text = fmt::format("{}", value);
    return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
  } else {
    return fmt::format("{}", value);
  }
}

template <class Hub>
void encode(const buffer<Hub>& in, int64_t begin, int64_t count, const mutable_view& to, dtype from, bool saturate) {
  const auto copy = [&](auto* data, auto make) {
    for (int64_t i = 0; i < count; ++i)
      data[begin + i] = make(in[i]);
  };
  if (to.type == dtype::string)
    copy(to.as<std::string>(), [&](Hub x) { return to_text(x, from); });
  else if (to.type == dtype::boolean)
    copy(to.as<uint8_t>(), [](Hub x) { return static_cast<uint8_t>(x != 0); });
  else if (is_float8(to.type))
    copy(to.as<uint8_t>(), [&](Hub x) { return encode_float8(to.type, static_cast<float>(x), saturate); });
  else if (bits_of(to.type) == 4)
    encode_nibbles(in, begin, count, to);
  else if (types::floats & set_of(to.type))
    visit_float(to.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      copy(to.as<T>(), [](Hub x) { return static_cast<T>(x); });
    });
  else
    visit_integer(to.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      copy(to.as<T>(), [](Hub x) { return narrowed<T>(x); });
    });
}

template <class Hub>
void convert_through(const const_view& from, const mutable_view& to, bool saturate) {
  const int64_t count = from.size(), blocks = (count + block - 1) / block;
  parallel_for(blocks, blocks_per_thread, [&](int64_t first, int64_t last) {
    buffer<Hub> hub;
    for (int64_t b = first; b < last; ++b) {
      const int64_t length = std::min(block, count - b * block);
      decode(from, b * block, length, hub);
      encode(hub, b * block, length, to, from.type, saturate);
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

/// Converts between float32 and a 16-bit float, which devices do for whole activations and weights; returns false for other types.
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
void convert_text(const const_view& from, const mutable_view& to, bool saturate) {
  buffer<Hub> hub;
  for (int64_t i = 0, count = from.size(); i < count; i += block) {
    const int64_t length = std::min(block, count - i);
    for (int64_t k = 0; k < length; ++k)
      hub[k] = parse<Hub>(from.as<std::string>()[i + k]);
    encode(hub, i, length, to, from.type, saturate);
  }
}

} // namespace

void convert(const const_view& from, const mutable_view& to, bool saturate) {
  expects(from.size() == to.size(), "convert: sizes differ");
  const dtype_set type = set_of(from.type);
  const bool to_float = (types::floats | types::float8) & set_of(to.type);
  if (from.type == to.type && from.type == dtype::string)
    std::copy_n(from.as<std::string>(), from.size(), to.as<std::string>());
  else if (from.type == to.type)
    std::memmove(to.data, from.data, static_cast<size_t>(from.bytes()));
  else if (convert_halves(from, to))
    return;
  else if (from.type == dtype::string)
    to_float ? convert_text<double>(from, to, saturate) : convert_text<int64_t>(from, to, saturate);
  else if (from.type == dtype::float64)
    convert_through<double>(from, to, saturate);
  else if (type & (types::floats | types::float8))
    convert_through<float>(from, to, saturate);
  else if (from.type == dtype::uint64)
    convert_through<uint64_t>(from, to, saturate);
  else
    convert_through<int64_t>(from, to, saturate);
}

} // namespace troupe

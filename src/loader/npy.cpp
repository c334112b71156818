#include "loader/npy.hpp"

#include "base/checked.hpp"
#include "base/limits.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

namespace troupe {
namespace {

constexpr std::string_view magic = "\x93NUMPY";

struct type_code {
  std::string_view code; // without the byte order
  dtype type;
};

constexpr type_code type_codes[] = {
    {"f4", dtype::float32}, {"f8", dtype::float64}, {"f2", dtype::float16}, {"i1", dtype::int8},
    {"i2", dtype::int16},   {"i4", dtype::int32},   {"i8", dtype::int64},   {"u1", dtype::uint8},
    {"u2", dtype::uint16},  {"u4", dtype::uint32},  {"u8", dtype::uint64},  {"b1", dtype::boolean},
};

dtype type_of(std::string_view descr) {
  if (descr.size() < 2)
    fail(errc::invalid_input, ".npy header: '{}' is not an element type", descr);
  if (descr[0] == '>')
    fail(errc::invalid_input, ".npy header: big-endian elements ('{}') are not supported", descr);
  if (descr[1] == 'O')
    fail(errc::invalid_input, ".npy header: arrays of Python objects are refused");
  const bool little = descr[0] == '<' || descr[0] == '=' || descr[0] == '|';
  for (const auto& [code, type] : type_codes)
    if (little && descr.substr(1) == code)
      return type;
  fail(errc::invalid_input, ".npy header: the element type '{}' is not supported", descr);
}

/// Reads the dict literal of a header: strict, since NumPy writes only one form of it.
class dict_parser {
public:
  explicit dict_parser(std::string_view text) : rest_(text) {}

  npy_header parse() {
    npy_header header;
    int seen = 0;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = string();
      expect(':');
      if (key == "descr" && (seen & 1) == 0) {
        header.type = type_of(string());
        seen |= 1;
      } else if (key == "fortran_order" && (seen & 2) == 0) {
        header.fortran_order = boolean();
        seen |= 2;
      } else if (key == "shape" && (seen & 4) == 0) {
        header.dims = tuple();
        seen |= 4;
      } else {
        malformed();
      }
      if (!accept(',') && peek() != '}')
        malformed();
    }
    skip_space();
    if (seen != 7 || !rest_.empty())
      malformed();
    return header;
  }

private:
  [[noreturn]] void malformed() const { fail(errc::invalid_input, ".npy header: it is malformed"); }

  void skip_space() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \n\t"), rest_.size())); }

  char peek() {
    skip_space();
    return rest_.empty() ? '\0' : rest_[0];
  }

  bool accept(char c) {
    if (rest_.empty() || peek() != c)
      return false;
    rest_.remove_prefix(1);
    return true;
  }

  void expect(char c) {
    if (!accept(c))
      malformed();
  }

  std::string_view string() {
    const char quote = peek();
    if (quote == '[')
      fail(errc::invalid_input, ".npy header: structured arrays are not supported");
    if (quote != '\'' && quote != '"')
      malformed();
    const size_t end = rest_.find(quote, 1);
    if (end == std::string_view::npos)
      malformed();
    const std::string_view text = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return text;
  }

  bool boolean() {
    skip_space();
    for (const auto& [word, value] : {std::pair{std::string_view("True"), true}, {std::string_view("False"), false}})
      if (rest_.starts_with(word)) {
        rest_.remove_prefix(word.size());
        return value;
      }
    malformed();
  }

  shape tuple() {
    shape dims;
    expect('(');
    while (!accept(')')) {
      skip_space();
      int64_t value = 0;
      const auto [stop, problem] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
      if (problem != std::errc{} || value < 0 || dims.size() == limits::max_rank)
        fail(errc::invalid_input, ".npy header: the shape is not valid");
      dims.push_back(value);
      rest_.remove_prefix(static_cast<size_t>(stop - rest_.data()));
      if (!accept(',') && peek() != ')')
        malformed();
    }
    return dims;
  }

  std::string_view rest_;
};

/// Copies column-major elements into a row-major tensor.
template <class T>
void copy_fortran(const void* from, tensor& to) {
  const shape& dims = to.dims();
  shape strides(dims.size()); // of the source
  int64_t step = 1;
  for (size_t i = 0; i < dims.size(); step *= dims[i++])
    strides[i] = step;
  shape index(dims.size(), 0);
  const auto* source = static_cast<const char*>(from); // not aligned for T
  T* out = to.mutable_data<T>();
  int64_t at = 0;
  for (int64_t i = 0, count = to.size(); i < count; ++i) {
    std::memcpy(out + i, source + at * static_cast<int64_t>(sizeof(T)), sizeof(T));
    for (size_t axis = dims.size(); axis-- > 0;) {
      at += strides[axis];
      if (++index[axis] < dims[axis])
        break;
      at -= strides[axis] * dims[axis];
      index[axis] = 0;
    }
  }
}

} // namespace

int64_t npy_header::total_bytes() const {
  return checked_add(static_cast<int64_t>(data_offset), bytes_of(type, volume(dims)));
}

npy_header parse_npy_header(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.size() < 10 || !text.starts_with(magic))
    fail(errc::invalid_input, "not a .npy array");
  const int version = static_cast<unsigned char>(text[6]);
  if (version < 1 || version > 3)
    fail(errc::invalid_input, ".npy version {} is not supported", version);
  const size_t length_bytes = version == 1 ? 2 : 4;
  const size_t begin = 8 + length_bytes;
  uint32_t length = 0;
  if (text.size() >= begin)
    std::memcpy(&length, text.data() + 8, length_bytes);
  if (text.size() < begin || length > text.size() - begin || begin + length > max_npy_header_bytes)
    fail(errc::invalid_input, ".npy header: it is truncated or longer than {} bytes", max_npy_header_bytes);
  npy_header header = dict_parser(text.substr(begin, length)).parse();
  header.data_offset = begin + length;
  return header;
}

tensor parse_npy(std::span<const std::byte> bytes) {
  return read_npy(bytes, static_cast<int64_t>(bytes.size()), {});
}

tensor read_npy(std::span<const std::byte> start, int64_t size, const std::function<void(std::span<std::byte>)>& rest) {
  npy_header header = parse_npy_header(start);
  const int64_t total = header.total_bytes();
  if (total != size)
    fail(errc::invalid_input, ".npy array: {} bytes, but its shape {} needs {}", size, to_string(header.dims), total);
  tensor t(header.type, std::move(header.dims));
  const std::span<const std::byte> known = start.subspan(header.data_offset);
  const auto bytes = static_cast<size_t>(t.bytes());
  std::vector<std::byte> columns; // of which not all is given
  const auto fill = [&](std::byte* data) {
    if (!known.empty())
      std::memcpy(data, known.data(), known.size());
    if (known.size() < bytes)
      rest({data + known.size(), bytes - known.size()});
  };
  if (!header.fortran_order) {
    fill(static_cast<std::byte*>(t.mutable_data()));
  } else {
    if (known.size() < bytes) {
      columns.resize(bytes);
      fill(columns.data());
    }
    visit_width(t.type(),
                [&]<class T>(type_tag<T>) { copy_fortran<T>(columns.empty() ? known.data() : columns.data(), t); });
  }
  if (t.type() == dtype::boolean) // C++ bools are 0 or 1
    std::for_each_n(t.mutable_data<uint8_t>(), t.size(), [](uint8_t& b) { b = b != 0; });
  return t;
}

std::string make_npy_header(dtype type, std::span<const int64_t> dims) {
  std::string descr;
  for (const auto& [code, known] : type_codes)
    if (known == type)
      descr.append(1, bits_of(type) == 8 ? '|' : '<').append(code);
  if (descr.empty())
    fail(errc::unsupported, "NumPy has no {} arrays; use a .pb file", to_string(type));
  std::string tuple;
  for (int64_t d : dims)
    tuple += std::to_string(d) + (dims.size() == 1 ? "," : ", ");
  if (dims.size() > 1)
    tuple.resize(tuple.size() - 2);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, tuple);
  constexpr size_t prefix = 10, alignment = 64;
  header.append(alignment - (prefix + header.size() + 1) % alignment, ' ');
  header += '\n';
  std::string out(magic);
  out += {'\1', '\0', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  return out + header;
}

} // namespace troupe

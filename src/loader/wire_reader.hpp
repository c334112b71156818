// Protobuf's wire format, field by field, for what needs no message classes. All bytes are hostile.
#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

/// The fields of one serialized protobuf message, one after the other.
class wire_reader {
public:
  explicit wire_reader(std::string_view bytes) : rest_(bytes) {}

  /// Goes to the next field; false at the end.
  bool next() {
    if (rest_.empty())
      return false;
    const char* const begin = rest_.data();
    const uint64_t key = varint();
    field = key >> 3;
    number = 0;
    text = {};
    switch (key & 7) {
      case 0: number = varint(); break;
      case 1: take(8); break;
      case 2: text = take(varint()); break;
      case 5: take(4); break;
      default: fail(errc::invalid_model, "not an ONNX model: a field has wire type {}", key & 7);
    }
    whole = {begin, static_cast<size_t>(rest_.data() - begin)};
    return true;
  }

  /// Goes to the next number of a packed field's content.
  bool next_number() {
    if (rest_.empty())
      return false;
    number = varint();
    return true;
  }

  uint64_t field = 0;
  uint64_t number = 0;    // of a varint
  std::string_view text;  // of what has a length
  std::string_view whole; // key, length and content

private:
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80)
        return value;
    }
    fail(errc::invalid_model, "not an ONNX model: a number has more than 64 bits");
  }

  std::string_view take(uint64_t bytes) {
    if (bytes > rest_.size())
      fail(errc::invalid_model, "not an ONNX model: a field of {} bytes, where {} are left", bytes, rest_.size());
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }

  std::string_view rest_;
};

} // namespace troupe

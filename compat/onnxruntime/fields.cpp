#include "compat/onnxruntime/fields.hpp"

#include "troupe/error.hpp"

namespace troupe::ort {
namespace {

[[noreturn]] void malformed() {
  throw error(errc::invalid_model, "not an ONNX model: a field of the bytes is cut short");
}

bytes take(bytes& rest, uint64_t count) {
  if (count > rest.size())
    malformed();
  const bytes taken = rest.first(count);
  rest = rest.subspan(count);
  return taken;
}

} // namespace

uint64_t read_varint(bytes& rest) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !rest.empty(); shift += 7) {
    const auto byte = static_cast<uint64_t>(rest[0]);
    rest = rest.subspan(1);
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80)
      return value;
  }
  malformed();
}

field next(bytes& rest) {
  const bytes start = rest;
  field f;
  const uint64_t tag = read_varint(rest);
  f.number = tag >> 3;
  switch (tag & 7) {
    case 0: f.value = read_varint(rest); break;
    case 1: take(rest, 8); break;
    case 2: f.content = take(rest, read_varint(rest)); break;
    case 5: take(rest, 4); break;
    default: malformed();
  }
  f.whole = start.first(start.size() - rest.size());
  return f;
}

std::string_view text_of(bytes b) {
  return {reinterpret_cast<const char*>(b.data()), b.size()};
}

} // namespace troupe::ort

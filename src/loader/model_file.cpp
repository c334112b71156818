// The metadata of a model: its wire format is walked at the top only, so that neither graph nor weights are parsed for a name.
#include "troupe/model_file.hpp"

#include "base/guard.hpp"
#include "loader/mapped_file.hpp"
#include "loader/onnx_loader.hpp"

namespace troupe {
namespace {

/// The fields of one serialized protobuf message, one after the other.
class wire_reader {
public:
  explicit wire_reader(std::string_view bytes) : rest_(bytes) {}

  /// Goes to the next field; false at the end.
  bool next() {
    if (rest_.empty())
      return false;
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
    return true;
  }

  uint64_t field = 0;
  uint64_t number = 0;   // of a varint
  std::string_view text; // of what has a length

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

/// StringStringEntryProto.
void add_property(std::string_view entry, std::map<std::string, std::string>& properties) {
  std::string key;
  std::string value;
  for (wire_reader at(entry); at.next();)
    if (at.field == 1)
      key = at.text;
    else if (at.field == 2)
      value = at.text;
  properties[key] = value;
}

/// GraphProto.
void read_graph(std::string_view graph, model_metadata& found) {
  for (wire_reader at(graph); at.next();)
    if (at.field == 2)
      found.graph_name = at.text;
    else if (at.field == 10)
      found.graph_description = at.text;
}

/// ModelProto; the numbers are those of onnx.proto.
model_metadata read_model(std::span<const std::byte> bytes) {
  model_metadata found;
  for (wire_reader at({reinterpret_cast<const char*>(bytes.data()), bytes.size()}); at.next();)
    switch (at.field) {
      case 2: found.producer_name = at.text; break;
      case 3: found.producer_version = at.text; break;
      case 4: found.domain = at.text; break;
      case 5: found.version = static_cast<int64_t>(at.number); break;
      case 6: found.description = at.text; break;
      case 7: read_graph(at.text, found); break;
      case 14: add_property(at.text, found.properties); break;
      default: break;
    }
  return found;
}

} // namespace

built_model parse_model(std::span<const std::byte> bytes, const std::filesystem::path& folder) {
  return {load_model(bytes, folder)};
}

model_metadata parse_metadata(std::span<const std::byte> bytes) {
  return guarded("model", [&] { return read_model(bytes); });
}

model_metadata read_metadata(const std::filesystem::path& file) {
  const auto mapped = mapped_file::open(file);
  return guarded(file.string(), [&] { return read_model(mapped->bytes()); });
}

} // namespace troupe

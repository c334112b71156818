// The metadata of a model: its wire format is walked at the top only, so that neither graph nor weights are parsed for
// a name.
#include "troupe/model_file.hpp"

#include "base/guard.hpp"
#include "loader/file_kind.hpp"
#include "loader/mapped_file.hpp"
#include "loader/onnx_loader.hpp"
#include "loader/wire_reader.hpp"

#include <algorithm>
#include <array>

namespace troupe {
namespace {

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

/// Adds the names of a tensor's symbolic dims. `fields` lead to them: from ValueInfoProto to its type, the type's
/// tensor, the tensor's shape, the shape's dims, their names.
void add_dims(std::string_view message, std::span<const uint64_t> fields, std::vector<std::string>& names) {
  if (fields.empty()) {
    if (!message.empty() && std::find(names.begin(), names.end(), message) == names.end())
      names.emplace_back(message);
    return;
  }
  for (wire_reader at(message); at.next();)
    if (at.field == fields.front())
      add_dims(at.text, fields.subspan(1), names);
}

/// GraphProto.
void read_graph(std::string_view graph, model_metadata& found) {
  constexpr std::array<uint64_t, 5> to_dim_names{2, 1, 2, 1, 2};
  for (wire_reader at(graph); at.next();)
    switch (at.field) {
      case 2: found.graph_name = at.text; break;
      case 10: found.graph_description = at.text; break;
      case 11: add_dims(at.text, to_dim_names, found.input_dims); break;
      default: break;
    }
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
  return guarded("model", [&] { return read_as("an ONNX model", bytes, [&] { return read_model(bytes); }); });
}

model_metadata read_metadata(const std::filesystem::path& file) {
  const auto mapped = mapped_file::open(file);
  return guarded(file.string(), [&] {
    return read_as("an ONNX model", mapped->bytes(), [&] { return read_model(mapped->bytes()); });
  });
}

} // namespace troupe

// The numbers are those of onnx.proto.
#include "loader/file_facts.hpp"

#include "base/guard.hpp"
#include "base/limits.hpp"
#include "loader/file_kind.hpp"
#include "loader/mapped_file.hpp"
#include "loader/wire_reader.hpp"

namespace troupe {
namespace {

/// How often a file says something that is ignored.
struct counted {
  int64_t configurations = 0, configured_nodes = 0, sharded_nodes = 0, staged_nodes = 0, training = 0;
};

void count_graph(std::string_view graph, counted& found, int depth);

/// AttributeProto: graphs in control flow.
void count_attribute(std::string_view attribute, counted& found, int depth) {
  for (wire_reader at(attribute); at.next();)
    if (at.field == 6 || at.field == 11)
      count_graph(at.text, found, depth + 1);
}

/// NodeProto: device_configurations, of sharding_spec and pipeline_stage.
void count_node(std::string_view node, counted& found, int depth) {
  bool configured = false, sharded = false, staged = false;
  for (wire_reader at(node); at.next();)
    if (at.field == 5) {
      count_attribute(at.text, found, depth);
    } else if (at.field == 10) {
      configured = true;
      for (wire_reader of(at.text); of.next();) {
        sharded = sharded || of.field == 2;
        staged = staged || of.field == 3;
      }
    }
  found.configured_nodes += configured;
  found.sharded_nodes += sharded;
  found.staged_nodes += staged;
}

void count_graph(std::string_view graph, counted& found, int depth) {
  if (depth > limits::max_nesting)
    fail(errc::unsupported, "graphs are nested more than {} levels deep", limits::max_nesting);
  for (wire_reader at(graph); at.next();)
    if (at.field == 1)
      count_node(at.text, found, depth);
}

std::vector<std::string> lines_of(const counted& found) {
  std::vector<std::string> lines;
  if (found.configurations + found.configured_nodes > 0) {
    std::string line = fmt::format("{} device configurations of the file, which {} nodes use", found.configurations,
                                   found.configured_nodes);
    if (found.sharded_nodes > 0)
      line += fmt::format(", {} of them with a sharding", found.sharded_nodes);
    if (found.staged_nodes > 0)
      line += fmt::format(", {} of them with a pipeline_stage", found.staged_nodes);
    lines.push_back(line + ": policy, pins and strategy decide what runs where");
  }
  if (found.training > 0)
    lines.push_back("what the file says of training: troupe only infers");
  return lines;
}

/// ModelProto.
file_facts read_model_facts(std::string_view model) {
  file_facts facts;
  counted found;
  for (wire_reader at(model); at.next();)
    switch (at.field) {
      case 1: facts.ir_version = static_cast<int64_t>(at.number); break;
      case 7: count_graph(at.text, found, 0); break;
      case 20: ++found.training; break;
      case 25: // FunctionProto
        for (wire_reader of(at.text); of.next();)
          if (of.field == 7)
            count_node(of.text, found, 0);
        break;
      case 26: ++found.configurations; break;
      default: break;
    }
  facts.ignored = lines_of(found);
  return facts;
}

} // namespace

file_facts read_facts(const std::filesystem::path& file) {
  const auto mapped = mapped_file::open(file);
  const std::span<const std::byte> bytes = mapped->bytes();
  return guarded(file.string(), [&] {
    return read_as("an ONNX model", bytes, [&] {
      return read_model_facts({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    });
  });
}

} // namespace troupe

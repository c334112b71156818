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
  int64_t configured_nodes = 0, training = 0;
};

void count_graph(std::string_view graph, counted& found, int depth);

/// NodeProto: device_configurations of nodes in functions and bodies of control flow, which are at a `depth`.
void count_node(std::string_view node, counted& found, int depth) {
  bool configured = false;
  for (wire_reader at(node); at.next();)
    if (at.field == 5) { // AttributeProto: graphs in control flow
      for (wire_reader of(at.text); of.next();)
        if (of.field == 6 || of.field == 11)
          count_graph(of.text, found, depth + 1);
    } else if (at.field == 10) {
      configured = depth > 0;
    }
  found.configured_nodes += configured;
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
  if (found.configured_nodes > 0)
    lines.push_back(fmt::format("device configurations of {} nodes in functions and bodies of control flow: those of "
                                "the outermost graph count",
                                found.configured_nodes));
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
            count_node(of.text, found, 1);
        break;
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

#include "loader/onnx_loader.hpp"

#include "base/guard.hpp"
#include "loader/annotations.hpp"
#include "loader/file_kind.hpp"
#include "loader/graph_builder.hpp"

#include <google/protobuf/arena.h>

#include <set>

namespace troupe {
namespace {

constexpr int64_t newest_ir_version = 14;

/// The opsets a model imports; files of the first IR versions need not say and mean the first.
opset_map imports_of(const onnx::ModelProto& model) {
  opset_map opsets = opsets_of(model.opset_import());
  if (opsets.empty() && model.ir_version() < 3)
    opsets[""] = 1;
  if (opsets.empty())
    fail(errc::invalid_model, "the model imports no operator set");
  return opsets;
}

void check_header(const onnx::ModelProto& model) {
  if (!model.has_ir_version() || !model.has_graph())
    fail(errc::invalid_model, "not an ONNX model: it has no {}", model.has_graph() ? "IR version" : "graph");
  if (model.ir_version() < 1)
    fail(errc::invalid_model, "{} is not an IR version", model.ir_version());
  if (model.ir_version() > newest_ir_version)
    fail(errc::unsupported, "IR version {} is newer than the newest supported, {}", model.ir_version(),
         newest_ir_version);
}

scanned_message scan_model(std::span<const std::byte> bytes) {
  if (bytes.empty())
    fail(errc::invalid_model, "not an ONNX model: it is empty");
  return read_as("an ONNX model", bytes, [&] { return scan_wire(bytes, wire_root::model); });
}

/// Parses and releases the scanned message; the model lives in `arena`.
onnx::ModelProto* parse_model(scanned_message& scanned, google::protobuf::Arena& arena) {
  auto* model = google::protobuf::Arena::CreateMessage<onnx::ModelProto>(&arena);
  if (!model->ParsePartialFromArray(scanned.message.data(), static_cast<int>(scanned.message.size())))
    fail(errc::invalid_model, "not a valid ONNX file: protobuf cannot parse it");
  scanned.message = {};
  check_header(*model);
  return model;
}

graph load(tensor_bytes file, const std::filesystem::path& folder) {
  const auto file_bytes = static_cast<int64_t>(file.bytes.size());
  scanned_message scanned = scan_model(file.bytes);
  google::protobuf::Arena arena;
  onnx::ModelProto* model = parse_model(scanned, arena);
  opset_map opsets = imports_of(*model);
  auto annotations = read_annotations({reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size()});
  tensor_reader reader(std::move(file), std::move(scanned), folder);
  graph g = graph_builder(*model, reader, std::move(opsets), file_bytes).build();
  g.annotations = std::move(annotations);
  return g;
}

void collect_operators(const onnx::GraphProto& graph, std::set<std::string>& names) {
  for (const auto& node : graph.node()) {
    const bool standard = node.domain().empty() || node.domain() == "ai.onnx";
    names.insert(standard ? node.op_type() : node.domain() + "." + node.op_type());
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g())
        collect_operators(attribute.g(), names);
      for (const auto& body : attribute.graphs())
        collect_operators(body, names);
    }
  }
}

} // namespace

graph load_model(const std::filesystem::path& file) {
  const auto mapped = mapped_file::open(file);
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  return guarded(file.string(), [&] { return load({mapped, mapped->bytes(), mapped->identity()}, folder); });
}

graph load_model(std::span<const std::byte> bytes, const std::filesystem::path& folder) {
  // The caller's bytes need not outlive the call: tensors copy what they need.
  return guarded("model", [&] { return load({nullptr, bytes, ""}, folder); });
}

std::vector<std::string> operators_of(const std::filesystem::path& file) {
  const auto mapped = mapped_file::open(file);
  return guarded(file.string(), [&] {
    scanned_message scanned = scan_model(mapped->bytes());
    google::protobuf::Arena arena;
    std::set<std::string> names;
    collect_operators(parse_model(scanned, arena)->graph(), names);
    return std::vector<std::string>(names.begin(), names.end());
  });
}

} // namespace troupe

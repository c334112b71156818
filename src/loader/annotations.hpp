// ONNX IR 11's multi-device annotations in a file: ModelProto.configuration, NodeProto.device_configurations. The field
// numbers are those of onnx.proto; its message classes are older than these fields.
#pragma once

#include "graph/annotations.hpp"

#include <filesystem>
#include <memory>
#include <string_view>

namespace troupe {

/// Returns what a serialized ModelProto says of its outermost graph's nodes; null if no node uses a configuration.
/// Throws `errc::invalid_model` for bytes that are not a message.
std::shared_ptr<const model_annotations> read_annotations(std::string_view model);

/// Writes a copy of a model file whose only annotations are those of `configuration`, and whose IR version is at least
/// 11. A node of the file that `configuration` does not know, because the rewrite fused it into another, has the
/// annotation of the nodes that read its results, if they have the same one. External data stays where it is. Throws
/// `errc::invalid_argument` if `out` is the file itself, or is in another folder while the model has external data;
/// `errc::io`, `errc::invalid_model`.
void write_annotated(const std::filesystem::path& file, const device_configuration& configuration,
                     const std::filesystem::path& out);

} // namespace troupe

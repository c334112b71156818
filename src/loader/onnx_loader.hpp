// ONNX file → graph.
//
// Initializers are not copied: the file and its external data files are mapped, a wire pre-scan records where each
// `raw_data` is, and weights point into the mapping. All bytes are hostile: every length, index and name is checked.
#pragma once

#include "graph/graph.hpp"

#include <filesystem>

namespace troupe {

/// Loads an ONNX model: local functions inlined, subgraphs loaded, values named and joined, nodes in topological order,
/// operators resolved (ops/registry.hpp), not yet inferred. Throws `errc::io`, `errc::invalid_model`,
/// `errc::unsupported`; the message names the file and the offending node, value or tensor.
graph load_model(const std::filesystem::path& file);

/// Loads a model from bytes; external data is looked for in `folder` (refused if that is empty).
graph load_model(std::span<const std::byte> bytes, const std::filesystem::path& folder = {});

/// Returns the operators that a model file's nodes name, bodies of control flow included, sorted, each once; with their
/// domain where it is not ai.onnx. Works for operators that troupe does not know. Throws `errc::io`,
/// `errc::invalid_model`.
std::vector<std::string> operators_of(const std::filesystem::path& file);

} // namespace troupe

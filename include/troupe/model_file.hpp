// ONNX models in memory, and what a model file says of itself. All bytes are hostile.
#pragma once

#include "troupe/built_model.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// Who made a model, and what for, as its file says; empty where it does not. Texts are the file's: bytes of any kind.
struct model_metadata {
  std::string producer_name, producer_version;
  std::string domain;
  std::string description;
  std::string graph_name, graph_description;
  int64_t version = 0;
  std::map<std::string, std::string> properties;
  std::vector<std::string> input_dims; // the names of its inputs' symbolic dims, in the file's order
};

/// Loads a serialized ModelProto, whose bytes need not outlive the call; `engine::load` takes the result. External data
/// is looked for in `folder`, and refused if that is empty. Throws `errc::invalid_model`, `errc::unsupported`,
/// `errc::io`.
TROUPE_API built_model parse_model(std::span<const std::byte> bytes, const std::filesystem::path& folder = {});

/// Returns what a serialized ModelProto says of itself; no weight is read. Throws `errc::invalid_model` where it is
/// malformed.
TROUPE_API model_metadata parse_metadata(std::span<const std::byte> bytes);

/// The same of a file. Throws `errc::io` too.
TROUPE_API model_metadata read_metadata(const std::filesystem::path& file);

} // namespace troupe

// Where a model comes from, and the file that a client wants of it.
#pragma once

#include "compat/onnxruntime/session_options.hpp"

#include <filesystem>
#include <span>
#include <vector>

namespace troupe::ort {

/// Where a model comes from: a file, or bytes and the folder of its external data.
struct model_source {
  std::filesystem::path file;
  std::span<const std::byte> bytes;
  std::filesystem::path folder;
};

/// A model's bytes, read where they are in a file. Throws `errc::io`.
class model_content {
public:
  explicit model_content(const model_source& from);
  std::span<const std::byte> bytes() const { return bytes_; }

private:
  std::vector<std::byte> read_;
  std::span<const std::byte> bytes_;
};

/// Writes the model to the file that the options name, with the values that they give. Not rewritten: what troupe makes
/// of a model depends on devices and dims, and has operators of its own. External data stays in its files if the file
/// comes beside the model's, else it is in the file. Throws ORT_NOT_IMPLEMENTED for ONNX Runtime's own format, ORT_FAIL
/// where the file would be larger than Protocol Buffers may be, `errc::io`.
void save_model(const model_source& from, const OrtSessionOptions& options, const log_sink& sink);

} // namespace troupe::ort

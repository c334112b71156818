// The wire pre-scan: a serialized ONNX message without the bytes of its tensors.
//
// Protobuf would copy each `raw_data` and refuses messages of 2 GiB. The scan walks the serialized bytes itself,
// follows the fields that lead to tensors (graphs, nodes, attributes, functions), and writes a copy of the message in
// which every TensorProto.raw_data is replaced by the 8-byte index of a `blob`: where the bytes are in the file. Every
// raw_data of a tensor that the loader reads is replaced, so an index cannot be forged by the file. Fields that the
// loader never reads (documentation, value_info, metadata, training) are left out. Nothing is trusted: lengths are
// checked against the enclosing message, nesting and the number of messages are limited, pages of weights are never
// touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Where the raw_data of one tensor is, in bytes from the start of the scanned message.
struct blob {
  uint64_t offset = 0, length = 0;
};

/// A message that protobuf can parse, and what was taken out of it.
struct scanned_message {
  std::string message;
  std::vector<blob> blobs;
};

/// What the scanned bytes are.
enum class wire_root : uint8_t { model, tensor };

/// Scans a serialized ModelProto or TensorProto; throws `errc::invalid_model` naming the byte where it is malformed,
/// and `errc::unsupported` where it is nested too deeply or has too many nodes or messages.
scanned_message scan_wire(std::span<const std::byte> bytes, wire_root root);

/// Returns the blob whose index is in the `raw_data` of a parsed, scanned TensorProto.
blob blob_of(const scanned_message& scanned, std::string_view raw_data);

} // namespace troupe

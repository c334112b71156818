// TensorProto → tensor. Bytes that are in a mapped file, aligned for their element type, are used in place; everything
// else is copied. Sizes are checked against the dims before anything is allocated.
#pragma once

#include "base/limits.hpp"
#include "graph/weight.hpp"
#include "loader/external_data.hpp"
#include "loader/proto.hpp"
#include "loader/wire_scan.hpp"

#include <set>

namespace troupe {

/// The bytes that a message was scanned from.
struct tensor_bytes {
  /// Keeps `bytes` alive; null if tensors must copy what they need.
  std::shared_ptr<const void> owner;
  std::span<const std::byte> bytes;
  /// Identity of the content (`mapped_file::identity`), empty if it has none.
  std::string identity;
};

/// A tensor and, where it is the unchanged content of a file, which part of which file (see `weight::from_tensor`).
struct sourced_tensor {
  tensor value;
  std::string source;
};

/// Reads the tensors of one scanned message.
class tensor_reader {
public:
  tensor_reader(tensor_bytes file, scanned_message scanned, std::filesystem::path folder);

  /// Throws `errc::invalid_model`, `errc::unsupported`, `errc::io`; messages name the tensor.
  sourced_tensor read(const onnx::TensorProto& proto);

  /// Returns a sparse tensor with all its zeros. Throws as `read` does.
  tensor read_sparse(const onnx::SparseTensorProto& proto);

  const scanned_message& scanned() const { return scanned_; }

private:
  sourced_tensor read_checked(const onnx::TensorProto& proto);
  sourced_tensor external(const onnx::TensorProto& proto, dtype type, shape dims);
  sourced_tensor in_place(const tensor_bytes& file, uint64_t offset, dtype type, shape dims);

  tensor_bytes file_;
  scanned_message scanned_;
  external_files files_;
  /// Bytes of external files that may still be copied, checked or hashed: many tensors may name the same bytes.
  int64_t touch_budget_ = limits::touched_bytes;
  std::set<std::string> budgeted_; // files, by identity
  /// Bytes that sparse tensors may still take when they are made dense.
  int64_t dense_bytes_left_ = limits::folded_bytes;
};

} // namespace troupe

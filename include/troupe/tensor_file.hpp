// Tensors in files: .pb (serialized TensorProto, SequenceProto or OptionalProto), .npy and .npz (NumPy). All bytes are
// hostile.
#pragma once

#include "troupe/tensor.hpp"

#include <filesystem>

namespace troupe {

/// A tensor and the name its file gives it (empty for .npy).
struct named_tensor {
  std::string name;
  tensor value;
};

/// Reads a serialized TensorProto; where `expected` is a sequence or an optional, a SequenceProto or OptionalProto of
/// that type: the bytes do not say which of the three they are. Throws `errc::invalid_model`, `errc::unsupported`
/// (sparse tensors, maps).
TROUPE_API named_tensor parse_pb(std::span<const std::byte> bytes, dtype expected = dtype::undefined);
/// Returns a serialized TensorProto, SequenceProto or OptionalProto; throws `errc::unsupported` for what is too large
/// for one.
TROUPE_API std::string make_pb(const std::string& name, const tensor& value);

/// The same with a file. Throw `errc::io` too.
TROUPE_API named_tensor read_pb(const std::filesystem::path& file, dtype expected = dtype::undefined);
TROUPE_API void write_pb(const std::filesystem::path& file, const std::string& name, const tensor& value);

/// Reads a .npy array, versions 1 to 3, C or Fortran order, little-endian. Throws `errc::io`, `errc::invalid_input`.
TROUPE_API tensor read_npy(const std::filesystem::path& file);
TROUPE_API void write_npy(const std::filesystem::path& file, const tensor& value);

/// Reads all arrays of an uncompressed or deflated .npz archive, by name.
TROUPE_API named_tensors read_npz(const std::filesystem::path& file);

} // namespace troupe

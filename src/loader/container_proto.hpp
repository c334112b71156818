// SequenceProto and OptionalProto: the tensors in them are TensorProtos, read and written by `parse_pb` and `make_pb`.
#pragma once

#include "troupe/tensor_file.hpp"

namespace troupe {

/// Reads a serialized SequenceProto or OptionalProto of type `type`. Throws `errc::invalid_model` for what is malformed
/// or holds another type, `errc::unsupported` for sparse tensors, maps, and more tensors than are supported.
named_tensor parse_container(std::span<const std::byte> bytes, dtype type);

/// Returns a serialized SequenceProto or OptionalProto.
std::string make_container(const std::string& name, const tensor& value);

} // namespace troupe

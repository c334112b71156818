// ZipMap's results as clients read them: a map of each row, from labels to its numbers. troupe's ZipMap gives the rows
// as they are (docs/operators.md).
#pragma once

#include "compat/onnxruntime/fields.hpp"
#include "compat/onnxruntime/value.hpp"

#include <filesystem>
#include <map>
#include <string>

namespace troupe::ort {

/// The labels of a ZipMap, as ONNX Runtime's maps have them: in ascending order.
struct zip_labels {
  tensor labels;               // [classes], int64 or string
  std::vector<size_t> columns; // of each label, in a row
};

/// By the name of ZipMap's result.
using zips_by_name = std::map<std::string, zip_labels, std::less<>>;

/// Returns the labels of each ZipMap of a serialized model's main graph. Throws `errc::invalid_model` for other bytes.
zips_by_name zips_in(bytes model);
/// The same of a file; none if it cannot be mapped.
zips_by_name zips_in(const std::filesystem::path& file);

/// Returns the type of such a result.
OrtTypeInfo type_of(const zip_labels& zip);

/// Returns the sequence of maps that `rows` is to a client, [rows, classes] or [classes]. Throws ORT_INVALID_ARGUMENT
/// where it has no column for each label.
OrtValue zipped(const tensor& rows, const zip_labels& zip);

} // namespace troupe::ort

// What the files of operators are made of: rows, and one table of them a file, for registry.cpp.
#pragma once

#include "ops/op.hpp"

namespace troupe {

inline constexpr std::string_view machine_learning = "ai.onnx.ml";
inline constexpr std::string_view microsoft = "com.microsoft";
inline constexpr std::string_view preview = "ai.onnx.preview";

/// Returns a row: what every operator states, then what it states by the names of its fields.
constexpr op_def op_row(std::string_view name, int64_t since, void (*infer)(infer_context&),
                        void (*reference)(kernel_context&), op_def rest = {}) {
  rest.name = name;
  rest.since = since;
  rest.infer = infer;
  rest.reference = reference;
  return rest;
}

/// A file's rows. Constants, since a function for each would bring pages of every file's code into memory when a
/// process starts.
using op_table = std::span<const op_def>;

/// All tables: cmake/ListTables.cmake finds them. A file FOLDER/FILE.cpp calls its own FOLDER_FILE_ops.
extern const std::span<const op_table* const> op_tables;

} // namespace troupe

// Task graphs in files of others, told apart by what is in them ([README](README.md) says which, and what of them
// counts).
#pragma once

#include "troupe/task_graph.hpp"

#include <filesystem>

namespace troupe {

/// Reads a task graph. Throws `errc::invalid_argument`, saying where in the text and what is wrong.
task_graph parse_graph(std::string_view text, const std::string& name);

/// Reads a file; see `parse_graph`. Throws `errc::io` if it cannot be read, or is larger than 1 GiB.
task_graph read_graph_file(const std::filesystem::path& file);

/// Of each format.
task_graph parse_wf_format(std::string_view text);
task_graph parse_stg(std::string_view text, const std::string& name);
task_graph parse_dot(std::string_view text, const std::string& name);
task_graph parse_dax(std::string_view text, const std::string& name);

/// Return a graph as a text of a format; see `save_task_graph`.
std::string to_wf_format(const task_graph& g);
std::string to_stg(const task_graph& g);
std::string to_dot(const task_graph& g);

} // namespace troupe

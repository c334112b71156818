#include "schedules/graph_file.hpp"

#include "base/error.hpp"
#include "base/text_file.hpp"
#include "schedules/xml_elements.hpp"

namespace troupe {
namespace {

constexpr int64_t max_graph_bytes = 1 << 30;

/// Returns the text from its first character on that is neither a space nor in a comment of DOT or STG.
std::string_view beginning_of(std::string_view text) {
  while (!text.empty()) {
    const size_t first = text.find_first_not_of(" \t\r\n");
    text.remove_prefix(std::min(first, text.size()));
    if (text.starts_with("#") || text.starts_with("//"))
      text.remove_prefix(std::min(text.find('\n'), text.size()));
    else if (text.starts_with("/*"))
      text.remove_prefix(std::min(text.find("*/", 2), text.size() - 2) + 2);
    else
      break;
  }
  return text;
}

} // namespace

task_graph parse_graph(std::string_view text, const std::string& name) {
  if (looks_like_xml(text))
    return parse_dax(text, name);
  const std::string_view begin = beginning_of(text);
  if (begin.starts_with("{"))
    return parse_wf_format(text);
  if (!begin.empty() && begin[0] >= '0' && begin[0] <= '9')
    return parse_stg(text, name);
  if (begin.starts_with("digraph") || begin.starts_with("strict") || begin.starts_with("graph"))
    return parse_dot(text, name);
  fail(errc::invalid_argument, "it is no task graph: WfFormat begins with '{{', DAX with '<', DOT with 'digraph', STG "
                               "with the number of tasks");
}

task_graph read_graph_file(const std::filesystem::path& path) {
  const std::string text = read_text(path, max_graph_bytes, fmt::format("the task graph '{}'", path.string()));
  try {
    return parse_graph(text, path.stem().string());
  } catch (const error& e) {
    throw error(e.code(), fmt::format("the task graph '{}': {}", path.string(), e.what()));
  }
}

} // namespace troupe

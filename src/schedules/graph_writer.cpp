// Task graphs as files that others read, the counterpart of what graph_file reads.
#include "base/printable.hpp"
#include "base/write_file.hpp"
#include "schedules/graph_draft.hpp"
#include "schedules/graph_file.hpp"
#include "schedules/task_model.hpp"

#include <nlohmann/json.hpp>

#include <cmath>

namespace troupe {
namespace {

using json = nlohmann::ordered_json;

void check_to_write(const task_graph& g) {
  check(g);
  for (const graph_edge& e : g.edges)
    if (!(e.bytes >= 0 && e.bytes <= max_edge_bytes))
      fail(errc::invalid_argument, "the task graph '{}' has an edge from {} to {} of {} bytes", g.name, e.from, e.to,
           e.bytes);
}

/// Predecessors and successors of each task, ascending.
struct neighbours {
  std::vector<std::vector<uint32_t>> before, after;

  explicit neighbours(const task_graph& g) : before(g.tasks.size()), after(g.tasks.size()) {
    for (const graph_edge& e : g.edges) {
      before[e.to].push_back(e.from);
      after[e.from].push_back(e.to);
    }
  }
};

/// Whether the first task is an entry and the last one an exit as STG has them: of no time, before and after all.
bool has_ends(const task_graph& g, const neighbours& of) {
  const size_t last = g.tasks.size() - 1;
  if (last < 2 || g.tasks[0].work != 0 || g.tasks[last].work != 0)
    return false;
  for (size_t n = 0; n <= last; ++n)
    if ((n > 0 && of.before[n].empty()) || (n < last && of.after[n].empty()))
      return false;
  return true;
}

uint64_t whole_seconds(const task_graph& g, uint32_t task) {
  const double seconds = std::round(g.tasks[task].work / operations_a_second);
  if (seconds * operations_a_second != g.tasks[task].work || seconds > max_task_seconds)
    fail(errc::invalid_argument, "the task '{}' takes {} s; STG has whole seconds up to {:g}",
         printable(task_name(g, task)), g.tasks[task].work / operations_a_second, max_task_seconds);
  return static_cast<uint64_t>(seconds);
}

std::string quoted(const std::string& name) {
  if (name.find('\\') != std::string::npos)
    fail(errc::invalid_argument, "the name '{}' has a '\\', which names in DOT cannot have", printable(name));
  std::string text = "\"";
  for (const char c : name)
    text.append(c == '"' ? "\\" : "").push_back(c);
  return text + '"';
}

struct graph_format {
  std::string_view extension;
  std::string (*write)(const task_graph&);
};

constexpr auto formats =
    std::to_array<graph_format>({{".json", to_wf_format}, {".stg", to_stg}, {".dot", to_dot}, {".gv", to_dot}});

} // namespace

std::string to_wf_format(const task_graph& g) {
  check_to_write(g);
  json tasks = json::array(), runs = json::array(), files = json::array();
  double whole_s = 0;
  for (uint32_t n = 0; n < g.tasks.size(); ++n) {
    const std::string id = task_name(g, n);
    const double seconds = g.tasks[n].work / operations_a_second;
    whole_s += seconds;
    const std::string& kind = g.tasks[n].kind;
    tasks.push_back({{"name", kind.empty() ? id : kind},
                     {"id", id},
                     {"parents", json::array()},
                     {"children", json::array()},
                     {"inputFiles", json::array()},
                     {"outputFiles", json::array()}});
    runs.push_back({{"id", id}, {"runtimeInSeconds", seconds}});
  }
  for (const graph_edge& e : g.edges) {
    tasks[e.to]["parents"].push_back(tasks[e.from]["id"]);
    tasks[e.from]["children"].push_back(tasks[e.to]["id"]);
    const int64_t bytes = std::llround(e.bytes);
    if (bytes == 0)
      continue;
    const std::string file = fmt::format("file_{}", files.size());
    tasks[e.from]["outputFiles"].push_back(file);
    tasks[e.to]["inputFiles"].push_back(file);
    files.push_back({{"id", file}, {"sizeInBytes", bytes}});
  }
  // What must be said of an execution is that of one machine, which does one task after the other.
  const json document{
      {"name", g.name.empty() ? "workflow" : g.name},
      {"schemaVersion", "1.5"},
      {"workflow",
       {{"specification", {{"tasks", std::move(tasks)}, {"files", std::move(files)}}},
        {"execution",
         {{"makespanInSeconds", whole_s}, {"executedAt", "1970-01-01T00:00:00Z"}, {"tasks", std::move(runs)}}}}}};
  return document.dump(1, ' ', false, json::error_handler_t::replace) + '\n';
}

std::string to_stg(const task_graph& g) {
  check_to_write(g);
  for (const graph_edge& e : g.edges)
    if (e.bytes != 0)
      fail(errc::invalid_argument, "the edge from '{}' to '{}' has {} bytes, which STG does not have",
           printable(task_name(g, e.from)), printable(task_name(g, e.to)), e.bytes);
  const neighbours of(g);
  const bool complete = has_ends(g, of);
  const uint32_t shift = complete ? 0 : 1; // for an entry, which has the number 0
  const auto count = static_cast<uint32_t>(g.tasks.size());
  std::string text = fmt::format("{}\n", complete ? count - 2 : count);
  const auto add = [&](uint32_t number, uint64_t seconds, const std::vector<uint32_t>& before) {
    text += fmt::format("{} {} {}", number, seconds, before.size());
    for (const uint32_t b : before)
      text += fmt::format(" {}", b);
    text += '\n';
  };
  if (!complete)
    add(0, 0, {});
  std::vector<uint32_t> exits;
  for (uint32_t n = 0; n < count; ++n) {
    std::vector<uint32_t> before = of.before[n];
    for (uint32_t& b : before)
      b += shift;
    if (!complete && before.empty())
      before.push_back(0);
    add(n + shift, whole_seconds(g, n), before);
    if (of.after[n].empty())
      exits.push_back(n + shift);
  }
  if (!complete)
    add(count + 1, 0, exits);
  return text;
}

std::string to_dot(const task_graph& g) {
  check_to_write(g);
  std::string text = fmt::format("digraph {} {{\n", quoted(g.name));
  std::vector<std::string> names;
  for (uint32_t n = 0; n < g.tasks.size(); ++n) {
    names.push_back(quoted(task_name(g, n)));
    text += fmt::format("  {} [size=\"{}\"];\n", names[n], g.tasks[n].work);
  }
  for (const graph_edge& e : g.edges)
    text += fmt::format("  {} -> {} [size=\"{}\"];\n", names[e.from], names[e.to], e.bytes);
  return text + "}\n";
}

void save_task_graph(const task_graph& g, const std::string& file) {
  const std::string extension = std::filesystem::path(file).extension().string();
  const auto* format =
      std::find_if(formats.begin(), formats.end(), [&](const graph_format& f) { return f.extension == extension; });
  if (format == formats.end())
    fail(errc::invalid_argument, "'{}': a task graph's file ends in .json (WfFormat), .stg, .dot or .gv",
         printable(file));
  write_file(file, format->write(g));
}

} // namespace troupe

// WfFormat 1.4 and 1.5, the instances of WfCommons (Coleman, Casanova, Pottier, Kaushik, Deelman, Ferreira da Silva,
// "WfCommons: a framework for enabling scientific workflow research and development", FGCS 128, 2022). An edge has the
// bytes of the files that its first task writes and its second reads.
#include "base/json_problem.hpp"
#include "base/json_reader.hpp"
#include "schedules/graph_draft.hpp"
#include "schedules/graph_file.hpp"

#include <unordered_set>

namespace troupe {
namespace {

using json = nlohmann::json;

/// What tasks of a file read and write.
struct file_uses {
  std::vector<std::pair<uint32_t, std::string>> reads; // task, file
  std::unordered_map<std::string, uint32_t> writers;
  std::unordered_map<std::string, double> bytes;
};

class wf_reader {
public:
  explicit wf_reader(const json_reader& file) : file_(file), workflow_(file["workflow"]) {}

  task_graph read() {
    const std::string version = file_["schemaVersion"].text();
    if (version == "1.5")
      read_parts();
    else if (version == "1.4")
      read_whole();
    else
      file_["schemaVersion"].complain("version '{}' is not known; 1.4 and 1.5 are", printable(version));
    return draft_.finish(file_.has("name") ? file_["name"].text() : "workflow");
  }

private:
  /// 1.4: a task has all that is known of it.
  void read_whole() {
    const std::vector<json_reader> tasks = workflow_["tasks"].list();
    for (const json_reader& task : tasks)
      add(task, task.has("id") ? "id" : "name", work_of(task));
    for (uint32_t n = 0; n < tasks.size(); ++n) {
      by_name_.emplace(tasks[n]["name"].text(), n); // older files name parents so
      if (tasks[n].has("files"))
        for (const json_reader& file : tasks[n]["files"].list())
          add_file(file, n);
    }
    join_all(tasks);
  }

  /// 1.5: what tasks are and what they took are lists of their own.
  void read_parts() {
    const json_reader specification = workflow_["specification"];
    const std::vector<json_reader> tasks = specification["tasks"].list();
    for (const json_reader& task : tasks)
      add(task, "id", 0);
    if (specification.has("files"))
      for (const json_reader& file : specification["files"].list())
        files_.bytes[file["id"].text()] = file["sizeInBytes"].number(0, max_edge_bytes);
    for (uint32_t n = 0; n < tasks.size(); ++n) {
      for (const std::string& file : names(tasks[n], "inputFiles"))
        files_.reads.emplace_back(n, file);
      for (const std::string& file : names(tasks[n], "outputFiles"))
        add_writer(tasks[n]["outputFiles"], file, n);
    }
    if (!workflow_.has("execution"))
      workflow_.complain("'execution' is missing: it says how long tasks took");
    std::vector<bool> has_time(tasks.size(), false);
    for (const json_reader& task : workflow_["execution"]["tasks"].list()) {
      const uint32_t n = task_of(task["id"]);
      draft_.work(n) = work_of(task);
      has_time[n] = true;
    }
    for (uint32_t n = 0; n < tasks.size(); ++n)
      if (!has_time[n])
        tasks[n].complain("'execution' does not say how long this task took");
    join_all(tasks);
  }

  static double work_of(const json_reader& task) {
    return task["runtimeInSeconds"].number(0, max_task_seconds) * operations_a_second;
  }

  static std::vector<std::string> names(const json_reader& task, const char* member) {
    std::vector<std::string> all;
    if (task.has(member))
      for (const json_reader& each : task[member].list())
        all.push_back(each.text());
    return all;
  }

  void add(const json_reader& task, const char* id, double work) {
    const std::string name = task[id].text();
    if (name.empty())
      task[id].complain("a task has no name");
    try {
      draft_.add(name, work);
    } catch (const error& e) {
      task.complain("{}", e.what());
    }
  }

  void add_file(const json_reader& file, uint32_t task) {
    const std::string name = file["name"].text(), link = file["link"].text();
    files_.bytes[name] = file["sizeInBytes"].number(0, max_edge_bytes);
    if (link == "input")
      files_.reads.emplace_back(task, name);
    else if (link == "output")
      add_writer(file, name, task);
    else
      file["link"].complain("'{}' is neither input nor output", printable(link));
  }

  void add_writer(const json_reader& place, const std::string& file, uint32_t task) {
    if (!files_.writers.emplace(file, task).second)
      place.complain("two tasks write the file '{}'", printable(file));
  }

  uint32_t task_of(const json_reader& id) const {
    const std::string name = id.text();
    if (const auto found = draft_.find(name))
      return *found;
    if (const auto found = by_name_.find(name); found != by_name_.end())
      return found->second;
    id.complain("there is no task '{}'", printable(name));
  }

  void join(const json_reader& place, uint32_t from, uint32_t to) {
    try {
      draft_.join(from, to, 0);
    } catch (const error& e) {
      place.complain("{}", e.what());
    }
    joined_.insert(uint64_t{from} << 32 | to);
  }

  /// Edges are what tasks say of each other; files only say how much goes over them.
  void join_all(const std::vector<json_reader>& tasks) {
    for (uint32_t n = 0; n < tasks.size(); ++n) {
      if (tasks[n].has("parents"))
        for (const json_reader& parent : tasks[n]["parents"].list())
          join(parent, task_of(parent), n);
      if (tasks[n].has("children"))
        for (const json_reader& child : tasks[n]["children"].list())
          join(child, n, task_of(child));
    }
    for (const auto& [reader, file] : files_.reads)
      if (const auto writer = files_.writers.find(file);
          writer != files_.writers.end() && joined_.contains(uint64_t{writer->second} << 32 | reader))
        draft_.join(writer->second, reader, files_.bytes[file]);
  }

  const json_reader file_, workflow_;
  graph_draft draft_;
  file_uses files_;
  std::unordered_map<std::string, uint32_t> by_name_;
  std::unordered_set<uint64_t> joined_; // from · 2^32 + to
};

} // namespace

task_graph parse_wf_format(std::string_view text) {
  json file;
  try {
    file = json::parse(text);
  } catch (const json::exception& why) {
    throw error(errc::invalid_argument, json_problem(text, why));
  }
  return wf_reader(json_reader(file, "")).read();
}

} // namespace troupe

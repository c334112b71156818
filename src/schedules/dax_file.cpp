// DAX, the abstract workflows of Pegasus (XML; Deelman et al., "Pegasus, a workflow management system for science
// automation", FGCS 46, 2015; https://pegasus.isi.edu/schema), to version 3.6. A job takes its `runtime`, an attribute
// as generators and SimGrid have it, or Pegasus' profile of that key. Edges are what `child` and `parent` say; an edge
// has the bytes of the files that its first job writes and its second reads, as the second says.
#include "base/printable.hpp"
#include "schedules/graph_draft.hpp"
#include "schedules/graph_file.hpp"
#include "schedules/xml_elements.hpp"

#include <charconv>
#include <unordered_set>

namespace troupe {
namespace {

constexpr size_t longest_number = 40; // that is shown

double number_in(const xml_element& e, std::string_view text, std::string_view what, double most) {
  text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{} || end != text.data() + text.size() || !(value >= 0 && value <= most))
    e.complain("'{}' is no {}: a number from 0 to {:g} is needed", printable(text.substr(0, longest_number)), what,
               most);
  return value;
}

/// Does what may fail, and says where.
template <class Action>
auto at_element(const xml_element& e, Action&& action) {
  try {
    return action();
  } catch (const error& why) {
    e.complain("{}", why.what());
  }
}

class dax_reader {
public:
  task_graph read(const xml_element& root, const std::string& name) {
    if (root.name() != "adag")
      root.complain("a workflow of Pegasus, <adag>, is needed there");
    for (const xml_element& e : root.children())
      if (e.name() == "job")
        add(e);
      else if (e.name() == "dax" || e.name() == "dag")
        e.complain("workflows in workflows are not read");
    for (const xml_element& e : root.children())
      if (e.name() == "child")
        join(e);
    add_bytes();
    return draft_.finish(root.text("name", name));
  }

private:
  struct use {
    uint32_t job = 0;
    const std::string* file = nullptr;
    std::optional<double> bytes;
  };

  void add(const xml_element& job) {
    const uint32_t task =
        at_element(job, [&] { return draft_.add(job.text("id"), seconds_of(job) * operations_a_second); });
    for (const xml_element& e : job.children())
      if (e.name() == "uses")
        add_use(e, task);
  }

  static double seconds_of(const xml_element& job) {
    if (const std::string* runtime = job.find("runtime"))
      return number_in(job, *runtime, "runtime", max_task_seconds);
    for (const xml_element& e : job.children())
      if (e.name() == "profile" && e.text("namespace", "") == "pegasus" && e.text("key", "") == "runtime")
        return number_in(e, e.content(), "runtime", max_task_seconds);
    job.complain("how long it takes is missing: the attribute 'runtime', or Pegasus' profile of that key");
  }

  void add_use(const xml_element& e, uint32_t job) {
    const std::string link = e.text("link", "none");
    use u{.job = job, .file = &e.text(e.find("name") ? "name" : "file"), .bytes = {}};
    if (const std::string* size = e.find("size"); size && !size->empty())
      u.bytes = number_in(e, *size, "size", max_edge_bytes);
    if (link == "output" || link == "inout")
      writes_[*u.file].push_back(u);
    if (link == "input" || link == "inout")
      reads_.push_back(u);
    if (link != "input" && link != "output" && link != "inout" && link != "none" && link != "checkpoint")
      e.complain("there is no link '{}'; there are input, output, inout, none, checkpoint", printable(link));
  }

  uint32_t job_of(const xml_element& e) const {
    const std::string& id = e.text("ref");
    if (const auto found = draft_.find(id))
      return *found;
    e.complain("there is no job '{}'", printable(id));
  }

  void join(const xml_element& child) {
    const uint32_t to = job_of(child);
    for (const xml_element& parent : child.children()) {
      if (parent.name() != "parent")
        parent.complain("a <child> has <parent>s");
      const uint32_t from = job_of(parent);
      at_element(parent, [&] { draft_.join(from, to, 0); });
      joined_.insert(uint64_t{from} << 32 | to);
    }
  }

  /// Several jobs may write files of one name.
  void add_bytes() {
    size_t pairs = 0;
    for (const use& read : reads_)
      if (const auto writers = writes_.find(*read.file); writers != writes_.end())
        for (const use& write : writers->second) {
          if (++pairs > max_graph_edges)
            fail(errc::invalid_argument, "more than {} pairs of jobs share files", max_graph_edges);
          if (joined_.contains(uint64_t{write.job} << 32 | read.job))
            draft_.join(write.job, read.job, read.bytes.value_or(write.bytes.value_or(0)));
        }
  }

  graph_draft draft_;
  std::vector<use> reads_;
  std::unordered_map<std::string_view, std::vector<use>> writes_; // by file; the document holds the names
  std::unordered_set<uint64_t> joined_;                           // from · 2^32 + to
};

} // namespace

task_graph parse_dax(std::string_view text, const std::string& name) {
  const xml_element root = parse_xml(text);
  return dax_reader().read(root, name);
}

} // namespace troupe

// A run as StarPU's tasks.rec (https://starpu.gitlabpages.inria.fr, "Offline performance tools"): a block of fields for
// each task, times in milliseconds. What bodies of control flow did is part of the task that runs them.
#include "trace/run_trace.hpp"

#include "plan/plan.hpp"
#include "troupe/inspect.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace troupe {
namespace {

/// A node that a device ran.
struct ran_node {
  node_id node = 0;
  device_index device = 0;
  uint32_t segment = 0;
  int64_t sent_ns = 0, begin_ns = 0, end_ns = 0;
};

std::vector<ran_node> nodes_of(const run_trace& trace) {
  std::vector<ran_node> all;
  for (const chunk_trace& c : trace.chunks) {
    const chunk& planned = trace.source->chunks[c.chunk];
    for (const device_timing& t : c.timings)
      if (t.kind == device_timing::work::node)
        all.push_back({t.id, planned.device, planned.segment, c.sent_ns, t.begin_ns, t.end_ns});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const ran_node& a, const ran_node& b) { return a.begin_ns < b.begin_ns; });
  return all;
}

class rec_writer {
public:
  explicit rec_writer(const run_trace& trace)
      : trace_(trace), plan_(*trace.source), jobs_(plan_.program->nodes.size(), 0), before_(jobs_.size()) {}

  std::string write() {
    const std::vector<ran_node> all = nodes_of(trace_);
    for (size_t i = 0; i < all.size(); ++i)
      jobs_[all[i].node] = i + 1;
    find_dependencies();
    for (const ran_node& each : all)
      add(each);
    return std::move(text_);
  }

private:
  /// Nodes that no device ran, such as views, pass on what they wait for. Nodes are in topological order.
  void find_dependencies() {
    for (size_t n = 0; n < before_.size(); ++n) {
      for (const value_id v : plan_.program->nodes[n].inputs) {
        const node_id made_by = v < 0 ? -1 : plan_.producer[v];
        if (made_by < 0)
          continue;
        if (jobs_[made_by] != 0)
          before_[n].push_back(jobs_[made_by]);
        else
          before_[n].insert(before_[n].end(), before_[made_by].begin(), before_[made_by].end());
      }
      std::sort(before_[n].begin(), before_[n].end());
      before_[n].erase(std::unique(before_[n].begin(), before_[n].end()), before_[n].end());
    }
  }

  void add(const ran_node& r) {
    const node& n = plan_.program->nodes[r.node];
    std::string kind = operator_name(n);
    const std::string name = n.name.empty() ? kind : n.name;
    std::replace(kind.begin(), kind.end(), '.', '_'); // StarPU takes what is after a point for an architecture
    text_ += fmt::format("Name: {}\nModel: {}\nJobId: {}\nSubmitOrder: {}\n", one_line(name), one_line(kind),
                         jobs_[r.node], jobs_[r.node]);
    if (!before_[r.node].empty())
      text_ += fmt::format("DependsOn: {}\n", fmt::join(before_[r.node], " "));
    text_ += fmt::format("WorkerId: {}\nMemoryNode: {}\nSubmitTime: {:.6f}\nStartTime: {:.6f}\nEndTime: {:.6f}\n",
                         r.device, r.device, ms(r.sent_ns), ms(r.begin_ns), ms(r.end_ns));
    add_data(n, r.segment);
    text_ += '\n';
  }

  /// Values as StarPU's handles, if their sizes are known.
  void add_data(const node& n, uint32_t segment) {
    if (segment >= trace_.memory.size())
      return;
    std::vector<std::string> handles, modes;
    std::vector<int64_t> bytes;
    const auto add_value = [&](value_id v, const char* mode) {
      if (v < 0 || static_cast<size_t>(v) >= trace_.memory[segment].value_bytes.size())
        return;
      handles.push_back(fmt::format("{:x}", v + 1));
      modes.emplace_back(mode);
      bytes.push_back(trace_.memory[segment].value_bytes[v]);
    };
    for (const value_id v : n.inputs)
      add_value(v, "R");
    for (const value_id v : n.outputs)
      add_value(v, "W");
    if (!handles.empty())
      text_ += fmt::format("Parameters: {}\nHandles: {}\nModes: {}\nSizes: {}\n", fmt::join(bytes, " "),
                           fmt::join(handles, " "), fmt::join(modes, " "), fmt::join(bytes, " "));
  }

  static std::string one_line(std::string text) {
    std::replace_if(
        text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
    return text;
  }

  double ms(int64_t ns) const { return static_cast<double>(ns - trace_.begin_ns) * 1e-6; }

  const run_trace& trace_;
  const plan& plan_;
  std::vector<size_t> jobs_;                // by node; 0: no device ran it
  std::vector<std::vector<size_t>> before_; // by node: the jobs that it waits for
  std::string text_;
};

} // namespace

std::string to_tasks_rec(const run_trace& trace) {
  expects(trace.source != nullptr, "to_tasks_rec: the run was not traced");
  return rec_writer(trace).write();
}

} // namespace troupe

// A run as StarPU's tasks.rec (https://starpu.gitlabpages.inria.fr, "Offline performance tools"): a block of fields for
// each task, times in milliseconds.
#include "trace/ran_nodes.hpp"
#include "troupe/inspect.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace troupe {
namespace {

std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return text;
}

/// Returns values as StarPU's handles, if their sizes are known.
std::string data_text(const run_trace& trace, const ran_node& r) {
  const node& n = trace.source->program->nodes[static_cast<size_t>(r.node)];
  std::vector<std::string> handles, modes;
  std::vector<int64_t> sizes;
  const auto add = [&](value_id v, const char* mode) {
    const int64_t bytes = ran_bytes(trace, r.segment, v);
    if (bytes < 0)
      return;
    handles.push_back(fmt::format("{:x}", v + 1));
    modes.emplace_back(mode);
    sizes.push_back(bytes);
  };
  for (const value_id v : n.inputs)
    add(v, "R");
  for (const value_id v : n.outputs)
    add(v, "W");
  if (handles.empty())
    return "";
  return fmt::format("Parameters: {}\nHandles: {}\nModes: {}\nSizes: {}\n", fmt::join(sizes, " "),
                     fmt::join(handles, " "), fmt::join(modes, " "), fmt::join(sizes, " "));
}

} // namespace

std::string to_tasks_rec(const run_trace& trace) {
  const std::vector<ran_node> all = ran_nodes_of(trace);
  const auto ms = [&](int64_t ns) { return static_cast<double>(ns - trace.begin_ns) * 1e-6; };
  std::string text;
  for (size_t i = 0; i < all.size(); ++i) {
    const ran_node& r = all[i];
    std::string kind = operator_name(trace.source->program->nodes[static_cast<size_t>(r.node)]);
    std::replace(kind.begin(), kind.end(), '.', '_'); // StarPU takes what is after a point for an architecture
    text += fmt::format("Name: {}\nModel: {}\nJobId: {}\nSubmitOrder: {}\n", one_line(ran_name(trace, r.node)),
                        one_line(kind), i + 1, i + 1);
    std::vector<size_t> before;
    for (const ran_read& read : r.reads)
      if (before.empty() || before.back() != read.from + 1)
        before.push_back(read.from + 1);
    if (!before.empty())
      text += fmt::format("DependsOn: {}\n", fmt::join(before, " "));
    text += fmt::format("WorkerId: {}\nMemoryNode: {}\nSubmitTime: {:.6f}\nStartTime: {:.6f}\nEndTime: {:.6f}\n{}\n",
                        r.device, r.device, ms(r.sent_ns), ms(r.begin_ns), ms(r.end_ns), data_text(trace, r));
  }
  return text;
}

} // namespace troupe

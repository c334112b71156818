#include "monitoring/made_run.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::testing {
namespace {

int64_t ns(double ms) {
  return std::llround(ms * 1e6);
}

class maker {
public:
  maker(const std::shared_ptr<const plan>& p, const part_times& times)
      : p_(*p), times_(times), trace_{.source = p, .begin_ns = 1000, .end_ns = 1000} {}

  run_trace make() {
    for (chunk_id c = 0; c < p_.chunks.size(); ++c)
      add(c);
    return std::move(trace_);
  }

private:
  void add(chunk_id id) {
    const chunk& c = p_.chunks[id];
    int64_t begin = trace_.begin_ns;
    for (chunk_id before : c.predecessors)
      begin = std::max(begin, p_.chunks[before].device == c.device ? ends_[before] : trace_.chunks[before].ended_ns);
    begin = std::max(begin, free_[c.device]);
    chunk_trace& t = trace_.chunks.emplace_back(chunk_trace{.chunk = id, .sent_ns = begin});
    int64_t now = begin + ns(times_.lead);
    const auto add = [&](device_timing::work kind, int32_t of, double ms) {
      t.timings.push_back({.kind = kind, .id = of, .begin_ns = now, .end_ns = now + ns(ms)});
      now += ns(ms);
    };
    for (value_id v : c.uploads)
      add(device_timing::work::upload, v, p_.producer[v] < 0 ? times_.input : times_.move);
    for (node_id n : c.nodes)
      add(device_timing::work::node, n, times_.node(p_, n));
    for (value_id v : c.downloads)
      add(device_timing::work::download, v, is_output(v) ? times_.output : times_.move);
    ends_.push_back(free_[c.device] = now);
    t.ended_ns = now + ns(times_.answer);
    trace_.end_ns = std::max(trace_.end_ns, t.ended_ns);
  }

  bool is_output(value_id v) const {
    const auto& outputs = p_.program->outputs;
    return std::find(outputs.begin(), outputs.end(), v) != outputs.end();
  }

  const plan& p_;
  const part_times& times_;
  run_trace trace_;
  std::vector<int64_t> ends_;
  std::map<device_index, int64_t> free_;
};

} // namespace

run_trace made_run(const std::shared_ptr<const plan>& p, const part_times& times) {
  return maker(p, times).make();
}

double seconds_of(const run_trace& trace) {
  return static_cast<double>(trace.end_ns - trace.begin_ns) * 1e-9;
}

} // namespace troupe::testing

#include "trace/chrome_trace.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <unordered_map>

namespace troupe {
namespace {

using json = nlohmann::ordered_json;

constexpr int run_process = 0;
constexpr int chunk_track = 0; // of each process; tracks of queues follow

/// A range of time.
struct span_ns {
  int64_t begin = 0, end = 0;
};

/// When a device worked on a chunk: from its first node to its last. A chunk without nodes lasts as long as its moves; where
/// the device says nothing, the chunk lasts from its sending to its answer.
span_ns working_time(const chunk_trace& c) {
  std::optional<span_ns> nodes, all;
  const auto widen = [](std::optional<span_ns>& s, const device_timing& t) {
    s = s ? span_ns{std::min(s->begin, t.begin_ns), std::max(s->end, t.end_ns)} : span_ns{t.begin_ns, t.end_ns};
  };
  for (const device_timing& t : c.timings) {
    widen(all, t);
    if (t.kind == device_timing::work::node)
      widen(nodes, t);
  }
  return nodes ? *nodes : all ? *all : span_ns{c.sent_ns, c.ended_ns};
}

class writer {
public:
  explicit writer(const run_trace& trace) : trace_(trace), plan_(*trace.source) {}

  std::string write() {
    lay_tracks();
    add_slice(run_process, chunk_track, "run", "run", {trace_.begin_ns, trace_.end_ns}, json::object());
    for (const chunk_trace& c : trace_.chunks)
      add_chunk(c);
    add_flows();
    return json{{"traceEvents", std::move(events_)}, {"displayTimeUnit", "ms"}}.dump(
        -1, ' ', false, json::error_handler_t::replace); // names in the file may be no UTF-8
  }

private:
  static int process_of(device_index device) { return static_cast<int>(device) + 1; }
  int process_of(const chunk_trace& c) const { return process_of(plan_.chunks[c.chunk].device); }

  double microseconds(int64_t ns) const { return static_cast<double>(ns - trace_.begin_ns) / 1000; }

  json& add(const char* phase, int process, int track, const std::string& name) {
    return events_.emplace_back(json{{"ph", phase}, {"pid", process}, {"tid", track}, {"name", name}});
  }

  void add_slice(int process, int track, const std::string& name, const char* category, span_ns time, json args) {
    json& e = add("X", process, track, name);
    e["cat"] = category;
    e["ts"] = microseconds(time.begin);
    e["dur"] = static_cast<double>(time.end - time.begin) / 1000;
    if (!args.empty())
      e["args"] = std::move(args);
  }

  /// Gives every timing a track of its queue on which nothing else runs at that time, and names all tracks.
  void lay_tracks() {
    add("M", run_process, chunk_track, "process_name")["args"]["name"] = "troupe";
    for (device_index d = 0; d < plan_.devices.size(); ++d) {
      add("M", process_of(d), chunk_track, "process_name")["args"]["name"] = plan_.devices[d].name;
      add("M", process_of(d), chunk_track, "thread_name")["args"]["name"] = "chunks";
    }
    std::map<std::pair<device_index, uint32_t>, std::vector<const device_timing*>> queues;
    for (const chunk_trace& c : trace_.chunks)
      for (const device_timing& t : c.timings)
        queues[{plan_.chunks[c.chunk].device, t.queue}].push_back(&t);
    std::vector<int> tracks(plan_.devices.size(), chunk_track);
    for (auto& [key, timings] : queues) {
      const auto& [device, queue] = key;
      const int lanes = assign_lanes(timings, tracks[device] + 1);
      for (int lane = 0; lane < lanes; ++lane)
        add("M", process_of(device), ++tracks[device], "thread_name")["args"]["name"] =
            lane ? fmt::format("queue {}, beside it {}", queue, lane) : fmt::format("queue {}", queue);
    }
  }

  /// Returns how many tracks from `first` on one queue's timings need.
  int assign_lanes(std::vector<const device_timing*>& timings, int first) {
    std::stable_sort(timings.begin(), timings.end(),
                     [](const auto* a, const auto* b) { return a->begin_ns < b->begin_ns; });
    std::vector<int64_t> busy_until;
    for (const device_timing* t : timings) {
      const auto free =
          std::find_if(busy_until.begin(), busy_until.end(), [&](int64_t end) { return end <= t->begin_ns; });
      track_of_[t] = first + static_cast<int>(free - busy_until.begin());
      if (free == busy_until.end())
        busy_until.push_back(t->end_ns);
      else
        *free = t->end_ns;
    }
    return static_cast<int>(busy_until.size());
  }

  static std::string chunk_name(const chunk_trace& c) { return fmt::format("chunk {}", c.chunk); }

  void add_chunk(const chunk_trace& c) {
    const chunk& planned = plan_.chunks[c.chunk];
    const span_ns time = working_time(c);
    json args{{"chunk", c.chunk}, {"nodes", planned.nodes.size()}, {"segment", planned.segment}};
    args["sent_us"] = microseconds(c.sent_ns);
    args["answered_us"] = microseconds(c.ended_ns);
    add_slice(process_of(c), chunk_track, chunk_name(c), "chunk", time, std::move(args));
    // Spans of chunks that wait at the same time overlap, so they are asynchronous events.
    for (const auto& [phase, ns] : {std::pair{"b", c.sent_ns}, std::pair{"e", c.ended_ns}}) {
      json& e = add(phase, process_of(c), chunk_track, chunk_name(c));
      e["cat"] = "waiting";
      e["id"] = c.chunk;
      e["ts"] = microseconds(ns);
    }
    for (const device_timing& t : c.timings)
      add_timing(c, t);
  }

  void add_timing(const chunk_trace& c, const device_timing& t) {
    const int track = track_of_.at(&t);
    const span_ns time{t.begin_ns, t.end_ns};
    if (t.kind != device_timing::work::node) {
      const bool up = t.kind == device_timing::work::upload;
      add_slice(process_of(c), track, (up ? "upload " : "download ") + plan_.program->values.at(t.id).name,
                up ? "upload" : "download", time, {{"bytes", t.bytes}, {"chunk", c.chunk}});
      return;
    }
    const node& n = plan_.program->nodes.at(t.id);
    const std::string op = n.domain.empty() ? n.op_type : n.domain + "." + n.op_type;
    add_slice(process_of(c), track, n.name.empty() ? op : n.name, "node", time,
              {{"op", op}, {"kernel", t.kernel}, {"chunk", c.chunk}, {"node", t.id}});
  }

  /// An arrow starts inside the slice it leaves and ends at the start of the one it leads to.
  void add_flows() {
    std::vector<const chunk_trace*> by_id(plan_.chunks.size());
    for (const chunk_trace& c : trace_.chunks)
      by_id[c.chunk] = &c;
    int id = 0;
    for (const chunk_trace& c : trace_.chunks)
      for (chunk_id p : plan_.chunks[c.chunk].predecessors) {
        const chunk_trace* from = by_id[p];
        if (!from)
          continue;
        const span_ns source = working_time(*from);
        add_flow("s", *from, ++id, std::max(source.begin, source.end - 1));
        add_flow("f", c, id, working_time(c).begin)["bp"] = "e"; // of the enclosing slice
      }
  }

  json& add_flow(const char* phase, const chunk_trace& c, int id, int64_t ns) {
    json& e = add(phase, process_of(c), chunk_track, "depends");
    e["cat"] = "dependency";
    e["id"] = id;
    e["ts"] = microseconds(ns);
    return e;
  }

  const run_trace& trace_;
  const plan& plan_;
  json events_ = json::array();
  std::unordered_map<const device_timing*, int> track_of_;
};

} // namespace

std::string to_chrome_json(const run_trace& trace) {
  expects(trace.source != nullptr, "to_chrome_json: the run was not traced");
  return writer(trace).write();
}

} // namespace troupe

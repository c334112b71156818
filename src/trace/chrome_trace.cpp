#include "trace/run_trace.hpp"
#include "troupe/results.hpp"

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

/// When a device worked on a chunk: from its first node to its last. A chunk without nodes lasts as long as its moves; if
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

/// A chunk of the model's plan or of a body's.
struct traced_chunk {
  const plan& source;
  const chunk_trace& trace;
  std::string name;
  int id; // among all of the run

  const chunk& planned() const { return source.chunks[trace.chunk]; }
  bool is_control() const { return source.devices[planned().device].kind == device_kind::control; }
  /// Real devices have the same index in all plans of a run; control flow is executed by the run itself.
  int process() const { return is_control() ? run_process : process_of(planned().device); }
  static int process_of(device_index device) { return static_cast<int>(device) + 1; }
};

class writer {
public:
  explicit writer(const run_trace& trace) : trace_(trace), plan_(*trace.source) { collect(trace); }

  std::string write() {
    lay_tracks();
    add_slice(run_process, chunk_track, "run", "run", {trace_.begin_ns, trace_.end_ns}, json::object());
    for (const traced_chunk& c : chunks_)
      add_chunk(c);
    add_flows();
    return json{{"traceEvents", std::move(events_)}, {"displayTimeUnit", "ms"}}.dump(
        -1, ' ', false, json::error_handler_t::replace); // names in the file may be no UTF-8
  }

private:
  /// Collects the chunks of a run, then those of its bodies; arrows join those of one plan.
  void collect(const run_trace& run) {
    const size_t first = chunks_.size();
    const int first_id = next_id_;
    next_id_ += static_cast<int>(run.source->chunks.size());
    for (const chunk_trace& c : run.chunks)
      chunks_.push_back({*run.source, c, fmt::format("{}{}chunk {}", run.name, run.name.empty() ? "" : ": ", c.chunk),
                         first_id + static_cast<int>(c.chunk)});
    ranges_.emplace_back(first, chunks_.size());
    for (const run_trace& body : run.bodies)
      collect(body);
  }

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
    std::map<int, int> tracks{{run_process, chunk_track}};
    for (device_index d = 0; d < plan_.devices.size() && plan_.devices[d].kind != device_kind::control; ++d) {
      const int process = traced_chunk::process_of(d);
      add("M", process, chunk_track, "process_name")["args"]["name"] = plan_.devices[d].name;
      add("M", process, chunk_track, "thread_name")["args"]["name"] = "chunks";
      tracks[process] = chunk_track;
    }
    std::map<std::pair<int, uint32_t>, std::vector<const device_timing*>> queues;
    for (const traced_chunk& c : chunks_)
      for (const device_timing& t : c.trace.timings)
        queues[{c.process(), t.queue}].push_back(&t);
    for (auto& [key, timings] : queues) {
      const auto& [process, queue] = key;
      const int lanes = assign_lanes(timings, tracks[process] + 1);
      const std::string name = process == run_process ? "control flow" : fmt::format("queue {}", queue);
      for (int lane = 0; lane < lanes; ++lane)
        add("M", process, ++tracks[process], "thread_name")["args"]["name"] =
            lane ? fmt::format("{}, beside it {}", name, lane) : name;
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

  /// Control flow has no slice of its chunk: its node's says all.
  void add_chunk(const traced_chunk& c) {
    if (!c.is_control())
      add_chunk_slices(c);
    for (const device_timing& t : c.trace.timings)
      add_timing(c, t);
  }

  void add_chunk_slices(const traced_chunk& c) {
    json args{{"chunk", c.trace.chunk}, {"nodes", c.planned().nodes.size()}, {"segment", c.planned().segment}};
    args["sent_us"] = microseconds(c.trace.sent_ns);
    args["answered_us"] = microseconds(c.trace.ended_ns);
    add_slice(c.process(), chunk_track, c.name, "chunk", working_time(c.trace), std::move(args));
    // Spans of chunks that wait at the same time overlap, so they are asynchronous events.
    for (const auto& [phase, ns] : {std::pair{"b", c.trace.sent_ns}, std::pair{"e", c.trace.ended_ns}}) {
      json& e = add(phase, c.process(), chunk_track, c.name);
      e["cat"] = "waiting";
      e["id"] = c.id;
      e["ts"] = microseconds(ns);
    }
  }

  void add_timing(const traced_chunk& c, const device_timing& t) {
    const int track = track_of_.at(&t);
    const span_ns time{t.begin_ns, t.end_ns};
    const graph& program = *c.source.program;
    if (t.kind != device_timing::work::node) {
      const bool up = t.kind == device_timing::work::upload;
      add_slice(c.process(), track, (up ? "upload " : "download ") + program.values.at(t.id).name,
                up ? "upload" : "download", time, {{"bytes", t.bytes}, {"chunk", c.trace.chunk}});
      return;
    }
    const node& n = program.nodes.at(t.id);
    const std::string op = operator_name(n);
    add_slice(c.process(), track, n.name.empty() ? op : n.name, "node", time,
              {{"op", op}, {"kernel", t.kernel}, {"chunk", c.trace.chunk}, {"node", t.id}});
  }

  /// An arrow starts inside the slice it leaves and ends at the start of the one it leads to.
  void add_flows() {
    for (const auto& [first, end] : ranges_) {
      std::map<chunk_id, const traced_chunk*> by_id;
      for (size_t i = first; i < end; ++i)
        by_id[chunks_[i].trace.chunk] = &chunks_[i];
      for (const auto& [chunk, to] : by_id)
        for (chunk_id p : to->planned().predecessors)
          if (const auto from = by_id.find(p); from != by_id.end())
            add_flow(*from->second, *to);
    }
  }

  void add_flow(const traced_chunk& from, const traced_chunk& to) {
    const span_ns source = working_time(from.trace);
    ++flows_;
    add_flow_end("s", from, std::max(source.begin, source.end - 1));
    add_flow_end("f", to, working_time(to.trace).begin)["bp"] = "e"; // of the enclosing slice
  }

  json& add_flow_end(const char* phase, const traced_chunk& c, int64_t ns) {
    const bool own_track = c.is_control() && !c.trace.timings.empty();
    json& e = add(phase, c.process(), own_track ? track_of_.at(&c.trace.timings[0]) : chunk_track, "depends");
    e["cat"] = "dependency";
    e["id"] = flows_;
    e["ts"] = microseconds(ns);
    return e;
  }

  const run_trace& trace_;
  const plan& plan_;
  std::vector<traced_chunk> chunks_;
  std::vector<std::pair<size_t, size_t>> ranges_; // of `chunks_`: those of one execution
  int next_id_ = 0, flows_ = 0;
  json events_ = json::array();
  std::unordered_map<const device_timing*, int> track_of_;
};

} // namespace

std::string to_chrome_json(const run_trace& trace) {
  expects(trace.source != nullptr, "to_chrome_json: the run was not traced");
  return writer(trace).write();
}

} // namespace troupe

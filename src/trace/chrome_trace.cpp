#include "trace/run_trace.hpp"
#include "troupe/results.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <unordered_map>

namespace troupe {
namespace {

using json = nlohmann::ordered_json;

constexpr int own_process = 0; // of this process and its devices; other hosts follow
constexpr int run_track = 0;   // of that process

/// Whose tracks they are: row 0 is control flow, which the run itself executes, row d + 1 the device of that index. Real devices
/// have the same index in all plans of a run.
using row_index = size_t;
constexpr row_index control_row = 0;

/// Where a slice is drawn.
struct track {
  int process = own_process, thread = run_track;
};

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
  row_index row() const { return is_control() ? control_row : size_t{planned().device} + 1; }
};

class writer {
public:
  explicit writer(const run_trace& trace) : trace_(trace), plan_(*trace.source) { collect(trace); }

  std::string write() {
    lay_tracks();
    add_slice({}, "run", "run", {trace_.begin_ns, trace_.end_ns}, json::object());
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

  json& add(const char* phase, track at, const std::string& name) {
    return events_.emplace_back(json{{"ph", phase}, {"pid", at.process}, {"tid", at.thread}, {"name", name}});
  }

  void add_slice(track at, const std::string& name, const char* category, span_ns time, json args) {
    json& e = add("X", at, name);
    e["cat"] = category;
    e["ts"] = microseconds(time.begin);
    e["dur"] = static_cast<double>(time.end - time.begin) / 1000;
    if (!args.empty())
      e["args"] = std::move(args);
  }

  /// Returns the process of a host, named at its first use; the empty name is this process's own.
  int process_of(const std::string& host) {
    const auto [found, is_new] = processes_.try_emplace(host, static_cast<int>(processes_.size()));
    if (is_new)
      add("M", {found->second, 0}, "process_name")["args"]["name"] = host.empty() ? "troupe" : host;
    return found->second;
  }

  /// Returns a new track of a process.
  track new_track(int process, const std::string& name) {
    const track made{process, threads_[process]++};
    add("M", made, "thread_name")["args"]["name"] = name;
    return made;
  }

  /// Gives every device a track for its chunks, every timing a track of its queue on which nothing else runs at that time, and names
  /// them all.
  void lay_tracks() {
    std::map<std::pair<row_index, uint32_t>, std::vector<const device_timing*>> queues;
    for (const traced_chunk& c : chunks_)
      for (const device_timing& t : c.trace.timings)
        queues[{c.row(), t.queue}].push_back(&t);
    chunk_tracks_.push_back(new_track(process_of(""), "run"));
    lay_queues(queues, control_row, "control flow");
    for (const device_info& d : plan_.devices) {
      if (d.kind == device_kind::control)
        break; // those come last
      chunk_tracks_.push_back(new_track(process_of(d.host), d.name));
      lay_queues(queues, chunk_tracks_.size() - 1, d.name + ", queue");
    }
  }

  template <class Queues>
  void lay_queues(Queues& queues, row_index row, const std::string& name) {
    for (auto& [key, timings] : queues)
      if (key.first == row)
        lay_queue(timings, chunk_tracks_[row].process,
                  row == control_row ? name : fmt::format("{} {}", name, key.second));
  }

  void lay_queue(std::vector<const device_timing*>& timings, int process, const std::string& name) {
    std::stable_sort(timings.begin(), timings.end(),
                     [](const auto* a, const auto* b) { return a->begin_ns < b->begin_ns; });
    std::vector<std::pair<int64_t, track>> lanes; // with the time until which each is busy
    for (const device_timing* t : timings) {
      auto free = std::find_if(lanes.begin(), lanes.end(), [&](const auto& l) { return l.first <= t->begin_ns; });
      if (free == lanes.end()) {
        const std::string beside = lanes.empty() ? "" : fmt::format(", beside it {}", lanes.size());
        free = lanes.insert(free, {0, new_track(process, name + beside)});
      }
      free->first = t->end_ns;
      track_of_[t] = free->second;
    }
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
    add_slice(chunk_tracks_[c.row()], c.name, "chunk", working_time(c.trace), std::move(args));
    // Spans of chunks that wait at the same time overlap, so they are asynchronous events.
    for (const auto& [phase, ns] : {std::pair{"b", c.trace.sent_ns}, std::pair{"e", c.trace.ended_ns}}) {
      json& e = add(phase, chunk_tracks_[c.row()], c.name);
      e["cat"] = "waiting";
      e["id"] = c.id;
      e["ts"] = microseconds(ns);
    }
  }

  void add_timing(const traced_chunk& c, const device_timing& t) {
    const track at = track_of_.at(&t);
    const span_ns time{t.begin_ns, t.end_ns};
    const graph& program = *c.source.program;
    if (t.kind != device_timing::work::node) {
      const bool up = t.kind == device_timing::work::upload;
      add_slice(at, (up ? "upload " : "download ") + program.values.at(t.id).name, up ? "upload" : "download", time,
                {{"bytes", t.bytes}, {"chunk", c.trace.chunk}});
      return;
    }
    const node& n = program.nodes.at(t.id);
    const std::string op = operator_name(n);
    add_slice(at, n.name.empty() ? op : n.name, "node", time,
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
    json& e = add(phase, own_track ? track_of_.at(&c.trace.timings[0]) : chunk_tracks_[c.row()], "depends");
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
  std::map<std::string, int> processes_; // by host
  std::map<int, int> threads_;           // of each process, so far
  std::vector<track> chunk_tracks_;      // by row
  std::unordered_map<const device_timing*, track> track_of_;
};

} // namespace

std::string to_chrome_json(const run_trace& trace) {
  expects(trace.source != nullptr, "to_chrome_json: the run was not traced");
  return writer(trace).write();
}

} // namespace troupe

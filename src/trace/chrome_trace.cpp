#include "trace/timeline.hpp"
#include "troupe/results.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

namespace troupe {
namespace {

using json = nlohmann::ordered_json;

/// Where a slice is drawn.
struct process_track {
  int process = 0, thread = 0;
};

double microseconds(int64_t ns) {
  return static_cast<double>(ns) / 1000;
}

class trace_writer {
public:
  explicit trace_writer(const timeline& t) : t_(t) {}

  std::string write() {
    add_tracks();
    for (size_t b = 0; b < t_.bars.size(); ++b)
      add_bar(t_.bars[b], b);
    for (size_t e = 0; e < t_.edges.size(); ++e)
      add_flow(t_.edges[e], e + 1);
    for (const timeline_counter& c : t_.counters)
      add_counter(c);
    json document{{"traceEvents", std::move(events_)}, {"displayTimeUnit", "ms"}};
    if (!t_.title.empty())
      document["otherData"]["title"] = t_.title;
    return document.dump(-1, ' ', false, json::error_handler_t::replace); // names in the file may be no UTF-8
  }

private:
  json& add(const char* phase, process_track at, const std::string& name) {
    return events_.emplace_back(json{{"ph", phase}, {"pid", at.process}, {"tid", at.thread}, {"name", name}});
  }

  /// Returns the process of a host, named at its first use; the empty name is this process's own.
  int process_of(const std::string& host) {
    const auto [found, is_new] = processes_.try_emplace(host, static_cast<int>(processes_.size()));
    if (is_new)
      add("M", {found->second, 0}, "process_name")["args"]["name"] = host.empty() ? "troupe" : host;
    return found->second;
  }

  void add_tracks() {
    for (const timeline_track& track : t_.tracks) {
      const timeline_lane& lane = t_.lanes[track.lane];
      const int process = process_of(lane.host);
      const process_track at{process, threads_[process]++};
      add("M", at, "thread_name")["args"] = {{"name", track.name}, {"lane", lane.name}};
      tracks_.push_back(at);
      lanes_.try_emplace(track.lane, at);
    }
  }

  void add_bar(const timeline_bar& b, size_t id) {
    json& e = add("X", tracks_[b.track], b.name);
    e["cat"] = to_string(b.kind);
    e["ts"] = microseconds(b.begin_ns);
    e["dur"] = microseconds(b.duration_ns());
    json args = json::object();
    for (const auto& [key, text] : {std::pair("op", &b.op), std::pair("kernel", &b.kernel)})
      if (!text->empty())
        args[key] = *text;
    for (const auto& [key, number] :
         {std::pair("bytes", b.bytes), std::pair("chunk", b.chunk), std::pair("node", b.node),
          std::pair("nodes", b.node_count), std::pair("segment", b.segment)})
      if (number >= 0)
        args[key] = number;
    if (b.sent_ns >= 0) {
      args["sent_us"] = microseconds(b.sent_ns);
      args["answered_us"] = microseconds(b.answered_ns);
    }
    if (!args.empty())
      e["args"] = std::move(args);
    if (b.sent_ns >= 0)
      add_waiting(b, id);
  }

  /// Spans of chunks that wait at the same time overlap, so they are asynchronous events.
  void add_waiting(const timeline_bar& b, size_t id) {
    for (const auto& [phase, ns] : {std::pair{"b", b.sent_ns}, std::pair{"e", b.answered_ns}}) {
      json& e = add(phase, tracks_[b.track], b.name);
      e["cat"] = "waiting";
      e["id"] = id;
      e["ts"] = microseconds(ns);
    }
  }

  /// An arrow starts inside the slice it leaves and ends at the start of the one it leads to.
  void add_flow(const timeline_edge& edge, size_t id) {
    const timeline_bar &from = t_.bars[edge.from], &to = t_.bars[edge.to];
    add_flow_end("s", from, std::max(from.begin_ns, from.end_ns - 1), id);
    add_flow_end("f", to, to.begin_ns, id)["bp"] = "e"; // of the enclosing slice
  }

  json& add_flow_end(const char* phase, const timeline_bar& b, int64_t ns, size_t id) {
    json& e = add(phase, tracks_[b.track], "depends");
    e["cat"] = "dependency";
    e["id"] = id;
    e["ts"] = microseconds(ns);
    return e;
  }

  /// A counter belongs to its process, so its name says of which lane it is.
  void add_counter(const timeline_counter& c) {
    const auto at = lanes_.find(c.lane);
    if (at == lanes_.end())
      return; // a lane without a track
    for (const counter_point& p : c.points) {
      json& e = add("C", at->second, t_.lanes[c.lane].name + " " + c.name);
      e["ts"] = microseconds(p.at_ns);
      for (size_t s = 0; s < c.series.size(); ++s)
        e["args"][c.series[s]] = p.values[s];
    }
  }

  const timeline& t_;
  json events_ = json::array();
  std::map<std::string, int> processes_; // by host
  std::map<int, int> threads_;           // of each process, so far
  std::vector<process_track> tracks_;    // by track
  std::map<uint32_t, process_track> lanes_;
};

} // namespace

std::string to_chrome_json(const timeline& t) {
  check(t);
  return trace_writer(t).write();
}

std::string to_chrome_json(const run_trace& trace) {
  return to_chrome_json(timeline_of(trace));
}

} // namespace troupe

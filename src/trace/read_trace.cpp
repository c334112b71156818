#include "trace/read_trace.hpp"

#include "trace/trace_events.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

namespace troupe {
namespace {

/// A process and a thread of it, as the file numbers them.
using thread_id = std::pair<double, double>;

/// Microseconds; sums and differences of a few of them fit into 64 bits of nanoseconds.
constexpr double latest_us = 2e15;

int64_t nanoseconds(double us, size_t event) {
  if (!(std::abs(us) <= latest_us))
    fail(errc::invalid_input, "event {} of the trace is at {} us: times reach to {} us", event, us, latest_us);
  return std::llround(us * 1000);
}

int64_t whole(std::optional<double> number) {
  return number && *number >= 0 && *number < 9e15 ? static_cast<int64_t>(*number) : -1;
}

/// What a file says of a thread.
struct thread_facts {
  std::string name, lane;
  uint32_t track = 0;
};

/// One end of an arrow.
struct arrow_end {
  thread_id thread;
  int64_t at_ns = 0;
};

class trace_reader {
public:
  void take(const trace_event& e, size_t number) {
    if (!e.ph || e.ph->size() != 1)
      return;
    const thread_id thread{e.pid.value_or(0), e.tid.value_or(0)};
    switch ((*e.ph)[0]) {
      case 'M': return take_metadata(e, thread);
      case 'X':
        if (e.ts && e.dur && *e.dur >= 0)
          add_bar(e, thread, nanoseconds(*e.ts, number), nanoseconds(*e.ts, number) + nanoseconds(*e.dur, number));
        return;
      case 'B':
        if (e.ts)
          open_[thread].push_back(add_bar(e, thread, nanoseconds(*e.ts, number), nanoseconds(*e.ts, number)));
        return;
      case 'E':
        if (auto& open = open_[thread]; e.ts && !open.empty()) {
          t_.bars[open.back()].end_ns = std::max(t_.bars[open.back()].end_ns, nanoseconds(*e.ts, number));
          open.pop_back();
        }
        return;
      case 's':
      case 'f':
        if (e.ts && e.id)
          (*e.ph == "s" ? starts_ : ends_)[*e.id] = {thread, nanoseconds(*e.ts, number)};
        return;
      case 'C':
        if (e.ts && e.name)
          counts_[{thread, *e.name}].push_back({nanoseconds(*e.ts, number), e.args});
        return;
      default: return;
    }
  }

  timeline finish() {
    if (t_.bars.empty())
      fail(errc::invalid_input, "the trace has nothing that lasts: no complete event");
    lay_out();
    add_edges();
    add_counters();
    begin_at_zero();
    check(t_);
    return std::move(t_);
  }

private:
  struct count {
    int64_t at_ns = 0;
    std::vector<std::pair<std::string, trace_value>> values;
  };

  void take_metadata(const trace_event& e, const thread_id& thread) {
    const std::string* name = e.text("name");
    if (!e.name || !name)
      return;
    if (*e.name == "process_name")
      processes_[thread.first] = *name;
    if (*e.name == "thread_name") {
      threads_[thread].name = *name;
      if (const std::string* lane = e.text("lane"))
        threads_[thread].lane = *lane;
    }
  }

  uint32_t add_bar(const trace_event& e, const thread_id& thread, int64_t begin_ns, int64_t end_ns) {
    threads_[thread];
    bar_threads_.push_back(thread);
    timeline_bar& bar = t_.bars.emplace_back();
    bar.kind = kind_of(e.cat.value_or(""));
    bar.name = e.name.value_or("");
    bar.begin_ns = begin_ns;
    bar.end_ns = end_ns;
    for (const auto& [key, field] : {std::pair("op", &timeline_bar::op), std::pair("kernel", &timeline_bar::kernel)})
      if (const std::string* text = e.text(key))
        bar.*field = *text;
    for (const auto& [key, field] :
         {std::pair("bytes", &timeline_bar::bytes), std::pair("chunk", &timeline_bar::chunk),
          std::pair("node", &timeline_bar::node), std::pair("nodes", &timeline_bar::node_count),
          std::pair("segment", &timeline_bar::segment)})
      bar.*field = whole(e.number(key));
    const auto sent = e.number("sent_us"), answered = e.number("answered_us");
    if (sent && answered && std::max(std::abs(*sent), std::abs(*answered)) <= latest_us) {
      bar.sent_ns = std::llround(*sent * 1000);
      bar.answered_ns = std::llround(*answered * 1000);
    }
    return static_cast<uint32_t>(t_.bars.size() - 1);
  }

  static bar_kind kind_of(std::string_view category) {
    for (const bar_kind k : {bar_kind::run, bar_kind::chunk, bar_kind::node, bar_kind::upload, bar_kind::download})
      if (to_string(k) == category)
        return k;
    return bar_kind::other;
  }

  /// Gives each thread its track, and each lane that threads name one place.
  void lay_out() {
    std::map<std::pair<double, std::string>, uint32_t> lanes; // in the order of their first threads
    std::vector<std::vector<thread_facts*>> of_lanes;
    for (auto& [id, facts] : threads_) {
      if (facts.name.empty())
        facts.name = fmt::format("thread {}", id.second);
      if (facts.lane.empty())
        facts.lane = facts.name;
      const auto [found, is_new] = lanes.try_emplace({id.first, facts.lane}, static_cast<uint32_t>(t_.lanes.size()));
      if (is_new) {
        t_.lanes.push_back({facts.lane, host_of(id.first)});
        of_lanes.emplace_back();
      }
      of_lanes[found->second].push_back(&facts);
    }
    for (uint32_t lane = 0; lane < of_lanes.size(); ++lane)
      for (thread_facts* facts : of_lanes[lane]) {
        facts->track = static_cast<uint32_t>(t_.tracks.size());
        t_.tracks.push_back({lane, facts->name});
      }
    for (size_t b = 0; b < t_.bars.size(); ++b)
      t_.bars[b].track = threads_.at(bar_threads_[b]).track;
  }

  std::string host_of(double process) const {
    const auto found = processes_.find(process);
    return found == processes_.end() || found->second == "troupe" ? "" : found->second;
  }

  /// An arrow belongs to the slice that began last at its end's time.
  void add_edges() {
    std::map<thread_id, std::vector<std::pair<int64_t, uint32_t>>> begins;
    for (uint32_t b = 0; b < t_.bars.size(); ++b)
      if (t_.bars[b].kind != bar_kind::run)
        begins[bar_threads_[b]].emplace_back(t_.bars[b].begin_ns, b);
    for (auto& [thread, bars] : begins)
      std::sort(bars.begin(), bars.end());
    const auto bar_at = [&](const arrow_end& end) -> std::optional<uint32_t> {
      const auto found = begins.find(end.thread);
      if (found == begins.end())
        return std::nullopt;
      const auto after = std::upper_bound(found->second.begin(), found->second.end(), std::pair(end.at_ns, UINT32_MAX));
      if (after == found->second.begin() || t_.bars[std::prev(after)->second].end_ns < end.at_ns)
        return std::nullopt;
      return std::prev(after)->second;
    };
    for (const auto& [id, start] : starts_)
      if (const auto end = ends_.find(id); end != ends_.end())
        if (const auto from = bar_at(start), to = bar_at(end->second); from && to)
          t_.edges.push_back({*from, *to});
    std::sort(t_.edges.begin(), t_.edges.end(), [](const timeline_edge& a, const timeline_edge& b) {
      return std::pair(a.to, a.from) < std::pair(b.to, b.from);
    });
  }

  void add_counters() {
    for (auto& [of, counts] : counts_) {
      const auto thread = threads_.find(of.first);
      if (thread == threads_.end())
        continue; // of a process without bars
      const uint32_t lane = t_.tracks[thread->second.track].lane;
      timeline_counter counter{.lane = lane, .name = of.second};
      if (const std::string prefix = t_.lanes[lane].name + " "; counter.name.starts_with(prefix))
        counter.name.erase(0, prefix.size());
      std::map<std::string, size_t> series;
      for (const count& c : counts)
        for (const auto& [name, value] : c.values)
          if (std::holds_alternative<double>(value) && series.size() < most_series &&
              series.try_emplace(name, series.size()).second)
            counter.series.push_back(name);
      std::stable_sort(counts.begin(), counts.end(), [](const count& a, const count& b) { return a.at_ns < b.at_ns; });
      for (const count& c : counts)
        add_point(counter, series, c);
      t_.counters.push_back(std::move(counter));
    }
  }

  static void add_point(timeline_counter& counter, const std::map<std::string, size_t>& series, const count& c) {
    std::vector<int64_t> values(counter.series.size(), 0);
    for (const auto& [name, value] : c.values)
      if (const auto at = series.find(name); at != series.end() && std::holds_alternative<double>(value))
        values[at->second] = std::llround(std::clamp(std::get<double>(value), -9e15, 9e15));
    counter.points.push_back({c.at_ns, std::move(values)});
  }

  void begin_at_zero() {
    int64_t first = INT64_MAX, last = INT64_MIN;
    for (const timeline_bar& b : t_.bars) {
      first = std::min(first, b.begin_ns);
      last = std::max(last, b.end_ns);
    }
    for (timeline_bar& b : t_.bars) {
      b.begin_ns -= first;
      b.end_ns -= first;
      b.sent_ns -= b.answered_ns < 0 ? 0 : first;
      b.answered_ns -= b.answered_ns < 0 ? 0 : first;
    }
    for (timeline_counter& c : t_.counters)
      for (counter_point& p : c.points)
        p.at_ns = std::max<int64_t>(p.at_ns - first, 0);
    t_.end_ns = last - first;
  }

  /// More in one counter are left out, so that a point is never large.
  static constexpr size_t most_series = 16;

  timeline t_;
  std::vector<thread_id> bar_threads_; // by bar
  std::map<thread_id, thread_facts> threads_;
  std::map<double, std::string> processes_;
  std::map<thread_id, std::vector<uint32_t>> open_; // bars that B has begun
  std::unordered_map<std::string, arrow_end> starts_, ends_;
  std::map<std::pair<thread_id, std::string>, std::vector<count>> counts_;
};

} // namespace

timeline read_trace(std::string_view text) {
  trace_reader reader;
  const trace_document document =
      read_trace_events(text, [&](const trace_event& e, size_t number) { reader.take(e, number); });
  timeline t = reader.finish();
  t.title = document.title;
  return t;
}

} // namespace troupe

#include "trace/check_trace.hpp"

#include "base/error.hpp"
#include "base/printable.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

namespace troupe {
namespace {

/// A thread of a process.
using thread_of = std::pair<double, double>;

/// An X slice, or B with its E.
struct slice {
  double begin = 0, end = 0;
  size_t event = 0;
  double last_end = 0; // of this one and all before it on its track
};

/// One end or step of a flow.
struct flow_end {
  double at = 0;
  size_t event = 0;
  thread_of thread;
  char phase = 's';
  bool binds_enclosing = true;
};

constexpr std::string_view known_phases = "BEXiICbneSTpFstfPNODMVvRc()";

/// Two times that are written in microseconds with three decimals differ by rounding alone if they are nearer than
/// this.
constexpr double rounding_us = 0.0015;

class trace_checker {
public:
  trace_problems found;

  void take(const trace_event& e, size_t number) {
    number_ = number;
    described_ =
        fmt::format("event {} ({} '{}')", number, printable(e.ph.value_or("?")), printable(e.name.value_or("")));
    if (!e.wrong.empty())
      return problem("'{}' is of the wrong type", e.wrong);
    if (!e.ph || e.ph->size() != 1 || known_phases.find((*e.ph)[0]) == std::string_view::npos)
      return problem("there is no such phase");
    phase_ = (*e.ph)[0];
    if (fields_are_there(e))
      check_phase(e);
  }

  void finish() {
    for (auto& [thread, open] : stacks_)
      for (const auto& [slice, name] : open)
        problem_of(slice.event, "B has no E");
    for (const auto& [span, open] : spans_)
      if (open.first > 0)
        problem_of(open.second, "b has no e");
    for (auto& [thread, slices] : slices_)
      check_nesting(slices);
    for (auto& [id, ends] : flows_)
      check_flow(ends);
  }

private:
  template <class... Args>
  void problem(fmt::format_string<Args...> text, Args&&... args) {
    add(described_ + ": " + fmt::format(text, std::forward<Args>(args)...));
  }
  void problem_of(size_t event, std::string_view what) { add(fmt::format("event {}: {}", event, what)); }
  void add(std::string text) {
    if (found.count++ < trace_problems::most_listed)
      found.listed.push_back(std::move(text));
  }

  bool is_one_of(std::string_view phases) const { return phases.find(phase_) != std::string_view::npos; }

  /// What the format asks of each phase.
  bool fields_are_there(const trace_event& e) {
    const std::array<std::tuple<std::string_view, bool, std::string_view>, 8> fields{
        {{"name", e.name.has_value(), "BXiICbneSTpFstfMNODPR"},
         {"pid", e.pid.has_value(), "BEXiICbneSTpFstfMNODR"},
         {"tid", e.tid.has_value(), "BEXstf"},
         {"ts", e.ts.has_value(), "BEXiICbneSTpFstfNODPVvR"},
         {"dur", e.dur.has_value(), "X"},
         {"id", e.id.has_value(), "bneSTpFstfNOD"},
         {"cat", e.cat.has_value(), "bnestf"},
         {"args", e.has_args, "CM"}}};
    for (const auto& [name, is_there, phases] : fields)
      if (!is_there && is_one_of(phases)) {
        problem("'{}' is missing", name);
        return false;
      }
    return true;
  }

  void check_phase(const trace_event& e) {
    const thread_of thread{e.pid.value_or(0), e.tid.value_or(0)};
    switch (phase_) {
      case 'X':
        if (*e.dur < 0)
          return problem("it lasts {} us", *e.dur);
        slices_[thread].push_back({*e.ts, *e.ts + *e.dur, number_});
        break;
      case 'B': stacks_[thread].push_back({{*e.ts, *e.ts, number_}, *e.name}); break;
      case 'E': end_slice(e, thread); break;
      case 'b':
      case 'e': check_span(e); break;
      case 's':
      case 't':
      case 'f':
        if (e.bp && *e.bp != "e")
          problem("'bp' is '{}', which only may be 'e'", printable(*e.bp));
        flows_[{*e.cat, *e.name, *e.id}].push_back({*e.ts, number_, thread, phase_, phase_ != 'f' || e.bp.has_value()});
        break;
      case 'C':
        if (e.args.empty())
          problem("a counter without a number");
        for (const auto& [name, value] : e.args)
          if (!std::holds_alternative<double>(value))
            problem("'{}' of a counter is not a number", printable(name));
        break;
      case 'M': check_metadata(e); break;
      default: break;
    }
  }

  void end_slice(const trace_event& e, const thread_of& thread) {
    auto& open = stacks_[thread];
    if (open.empty())
      return problem("E without a B on its thread");
    auto [begun, name] = std::move(open.back());
    open.pop_back();
    if (e.name && !e.name->empty() && *e.name != name)
      problem("E ends '{}', which was begun last", printable(name));
    if (*e.ts < begun.begin)
      return problem("E is before its B");
    begun.end = *e.ts;
    slices_[thread].push_back(begun);
  }

  void check_span(const trace_event& e) {
    auto& open = spans_[{*e.cat, *e.id, *e.pid}];
    if (phase_ == 'b') {
      ++open.first;
      open.second = number_;
    } else if (open.first == 0)
      problem("e without a b of its category and id before");
    else
      --open.first;
  }

  void check_metadata(const trace_event& e) {
    if (*e.name == "process_name" || *e.name == "thread_name") {
      if (!e.text("name"))
        problem("args.name is not a string");
    } else if (*e.name == "process_sort_index" || *e.name == "thread_sort_index") {
      if (!e.number("sort_index"))
        problem("args.sort_index is not a number");
    } else if (*e.name == "process_labels" && !e.text("labels"))
      problem("args.labels is not a string");
    if (e.name->starts_with("thread_") && !e.tid)
      problem("'tid' is missing");
  }

  /// Sorts the slices: outer ones first.
  void check_nesting(std::vector<slice>& slices) {
    std::sort(slices.begin(), slices.end(), [](const slice& a, const slice& b) {
      return std::tuple(a.begin, -a.end, a.event) < std::tuple(b.begin, -b.end, b.event);
    });
    std::vector<const slice*> open;
    double last_end = slices.front().end;
    for (slice& s : slices) {
      s.last_end = last_end = std::max(last_end, s.end);
      while (!open.empty() && open.back()->end <= s.begin + rounding_us)
        open.pop_back();
      if (!open.empty() && s.end > open.back()->end + rounding_us)
        problem_of(s.event, fmt::format("it overlaps event {}, which began before on its track and ends inside of it",
                                        open.back()->event));
      else
        open.push_back(&s);
    }
  }

  /// Whether a slice of the thread covers the time; its slices are sorted.
  bool is_inside(const thread_of& thread, double at) const {
    const auto found = slices_.find(thread);
    if (found == slices_.end())
      return false;
    const auto after = std::upper_bound(found->second.begin(), found->second.end(), at + rounding_us,
                                        [](double t, const slice& s) { return t < s.begin; });
    return after != found->second.begin() && std::prev(after)->last_end + rounding_us >= at;
  }

  void check_flow(std::vector<flow_end>& ends) {
    std::stable_sort(ends.begin(), ends.end(), [](const flow_end& a, const flow_end& b) {
      return std::pair(a.at, order_of(a.phase)) < std::pair(b.at, order_of(b.phase));
    });
    const auto is_start = [](const flow_end& e) { return e.phase == 's'; };
    const auto starts = std::count_if(ends.begin(), ends.end(), is_start);
    if (starts != 1)
      problem_of(ends.front().event, fmt::format("the flow begins {} times", starts));
    else if (ends.front().phase != 's')
      problem_of(ends.front().event, "it is before the flow begins");
    if (std::none_of(ends.begin(), ends.end(), [](const flow_end& e) { return e.phase == 'f'; }))
      problem_of(ends.front().event, "the flow does not end");
    for (const flow_end& e : ends)
      if (e.binds_enclosing && !is_inside(e.thread, e.at))
        problem_of(e.event, "the flow is not inside of a slice");
  }

  static int order_of(char phase) { return phase == 's' ? 0 : phase == 't' ? 1 : 2; }

  size_t number_ = 0;
  char phase_ = 0;
  std::string described_;
  std::map<thread_of, std::vector<std::pair<slice, std::string>>> stacks_;
  std::map<thread_of, std::vector<slice>> slices_;
  std::map<std::tuple<std::string, std::string, double>, std::pair<size_t, size_t>> spans_; // open, last of them
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<flow_end>> flows_;
};

} // namespace

trace_problems check_trace(std::string_view text) {
  trace_checker checker;
  const trace_document document =
      read_trace_events(text, [&](const trace_event& e, size_t number) { checker.take(e, number); });
  checker.found.events = document.events;
  checker.finish();
  if (document.time_unit && *document.time_unit != "ms" && *document.time_unit != "ns") {
    ++checker.found.count;
    checker.found.listed.push_back("displayTimeUnit is neither \"ms\" nor \"ns\"");
  }
  return std::move(checker.found);
}

} // namespace troupe

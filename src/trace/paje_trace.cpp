// Timelines in the format of Paje (Schnorr, "Paje trace file format", 2014), which ViTE, PajeNG and StarVZ read: a
// container for each device, one in it for each track, with bars as states that nest; edges as links; counters as
// variables of their device. Times are seconds, and ascend.
#include "trace/timeline.hpp"
#include "troupe/inspect.hpp"

#include <algorithm>
#include <unordered_map>

namespace troupe {
namespace {

/// The events that are used, with their fields. Those of a state's colour are three numbers from 0 to 1.
constexpr std::string_view head = R"(%EventDef PajeDefineContainerType 0
% Alias string
% Type string
% Name string
%EndEventDef
%EventDef PajeDefineStateType 1
% Alias string
% Type string
% Name string
%EndEventDef
%EventDef PajeDefineVariableType 2
% Alias string
% Type string
% Name string
% Color color
%EndEventDef
%EventDef PajeDefineLinkType 3
% Alias string
% Type string
% StartContainerType string
% EndContainerType string
% Name string
%EndEventDef
%EventDef PajeDefineEntityValue 4
% Alias string
% Type string
% Name string
% Color color
%EndEventDef
%EventDef PajeCreateContainer 5
% Time date
% Alias string
% Type string
% Container string
% Name string
%EndEventDef
%EventDef PajeDestroyContainer 6
% Time date
% Name string
% Type string
%EndEventDef
%EventDef PajePushState 7
% Time date
% Type string
% Container string
% Value string
%EndEventDef
%EventDef PajePopState 8
% Time date
% Type string
% Container string
%EndEventDef
%EventDef PajeSetVariable 9
% Time date
% Type string
% Container string
% Value double
%EndEventDef
%EventDef PajeStartLink 10
% Time date
% Type string
% Container string
% StartContainer string
% Value string
% Key string
%EndEventDef
%EventDef PajeEndLink 11
% Time date
% Type string
% Container string
% EndContainer string
% Value string
% Key string
%EndEventDef
0 P 0 "run"
0 D P "device"
0 T D "track"
1 S T "work"
3 L P T T "depends"
)";

/// A name as Paje has it: in quotes, in one line; nothing can be escaped. PajeNG's tables, which StarVZ reads, have
/// names without quotes between commas.
std::string paje_name(std::string_view name) {
  std::string text = "\"";
  for (const char c : name)
    text += c == '"' ? '\'' : c == ',' ? ';' : static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  return text + '"';
}

std::string seconds_text(int64_t ns) {
  return fmt::format("{:.9f}", static_cast<double>(ns) * 1e-9);
}

class paje_writer {
public:
  explicit paje_writer(const timeline& t) : t_(t), text_(head) {}

  std::string write() {
    define_values();
    define_variables();
    create_containers();
    std::vector<std::vector<const timeline_bar*>> bars(t_.tracks.size());
    for (const timeline_bar& b : t_.bars)
      bars[b.track].push_back(&b);
    for (size_t track = 0; track < bars.size(); ++track)
      add_states(track, std::move(bars[track]));
    for (size_t i = 0; i < t_.edges.size(); ++i)
      add_link(t_.edges[i], i);
    for (size_t i = 0; i < t_.counters.size(); ++i)
      add_counter(t_.counters[i], i);
    std::stable_sort(events_.begin(), events_.end(), [](const event& a, const event& b) { return a.ns < b.ns; });
    for (const event& e : events_)
      text_ += e.text;
    destroy_containers();
    return std::move(text_);
  }

private:
  struct event {
    int64_t ns = 0;
    std::string text;
  };

  void define_values() {
    for (const timeline_bar& b : t_.bars) {
      const auto [found, is_new] = values_.try_emplace(b.name, values_.size());
      if (is_new) {
        const double part = static_cast<double>(found->second % 97) / 96; // colours that differ for neighbours
        text_ += fmt::format("4 v{} S {} \"{:.3f} {:.3f} {:.3f}\"\n", found->second, paje_name(b.name), part, 1 - part,
                             part < 0.5 ? 2 * part : 2 - 2 * part);
      }
    }
  }

  void define_variables() {
    for (size_t i = 0; i < t_.counters.size(); ++i)
      for (size_t s = 0; s < t_.counters[i].series.size(); ++s)
        text_ += fmt::format("2 c{}.{} D {} \"0 0 1\"\n", i, s,
                             paje_name(t_.counters[i].name + " " + t_.counters[i].series[s]));
  }

  void create_containers() {
    text_ += fmt::format("5 0 p P 0 {}\n", paje_name(t_.title.empty() ? "run" : t_.title));
    for (size_t l = 0; l < t_.lanes.size(); ++l)
      text_ += fmt::format("5 0 d{} D p {}\n", l, paje_name(t_.lanes[l].name));
    for (size_t i = 0; i < t_.tracks.size(); ++i)
      text_ += fmt::format("5 0 t{} T d{} {}\n", i, t_.tracks[i].lane, paje_name(t_.tracks[i].name));
  }

  void destroy_containers() {
    const std::string end = seconds_text(events_.empty() ? t_.end_ns : std::max(t_.end_ns, events_.back().ns));
    for (size_t i = 0; i < t_.tracks.size(); ++i)
      text_ += fmt::format("6 {} t{} T\n", end, i);
    for (size_t l = 0; l < t_.lanes.size(); ++l)
      text_ += fmt::format("6 {} d{} D\n", end, l);
    text_ += fmt::format("6 {} p P\n", end);
  }

  /// Bars of a track nest or follow each other: those that have ended are popped before the next one is pushed.
  void add_states(size_t track, std::vector<const timeline_bar*> bars) {
    std::stable_sort(bars.begin(), bars.end(), [](const timeline_bar* a, const timeline_bar* b) {
      return std::pair(a->begin_ns, -a->end_ns) < std::pair(b->begin_ns, -b->end_ns);
    });
    std::vector<int64_t> open; // the ends of those that are open
    const auto pop_until = [&](int64_t ns) {
      for (; !open.empty() && open.back() <= ns; open.pop_back())
        add(open.back(), "8 {} S t{}\n", track);
    };
    for (const timeline_bar* b : bars) {
      pop_until(b->begin_ns);
      add(b->begin_ns, "7 {} S t{} v{}\n", track, values_.at(b->name));
      open.push_back(open.empty() ? b->end_ns : std::min(b->end_ns, open.back()));
    }
    pop_until(std::numeric_limits<int64_t>::max());
  }

  void add_link(const timeline_edge& e, size_t key) {
    const timeline_bar &from = t_.bars[e.from], &to = t_.bars[e.to];
    add(from.end_ns, "10 {} L p t{} depends {}\n", from.track, key);
    add(std::max(from.end_ns, to.begin_ns), "11 {} L p t{} depends {}\n", to.track, key);
  }

  void add_counter(const timeline_counter& c, size_t number) {
    for (const counter_point& p : c.points)
      for (size_t s = 0; s < p.values.size(); ++s)
        add(p.at_ns, "9 {} c{}.{} d{} {}\n", number, s, c.lane, p.values[s]);
  }

  /// Adds an event; the first place of the format is its time.
  template <class... Arguments>
  void add(int64_t ns, fmt::format_string<std::string, const Arguments&...> format, const Arguments&... arguments) {
    events_.push_back({ns, fmt::format(format, seconds_text(ns), arguments...)});
  }

  const timeline& t_;
  std::string text_;
  std::unordered_map<std::string, size_t> values_; // by name: the number of the state's value
  std::vector<event> events_;
};

} // namespace

std::string to_paje(const timeline& t) {
  check(t);
  return paje_writer(t).write();
}

std::string to_paje(const run_trace& trace) {
  return to_paje(timeline_of(trace));
}

} // namespace troupe

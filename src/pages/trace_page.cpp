#include "pages/trace_page.hpp"

#include "pages/page_parts.hpp"
#include "troupe/inspect.hpp"

#include <nlohmann/json.hpp>

#include <unordered_map>

namespace troupe {
namespace {

using json = nlohmann::ordered_json;

/// The nodes that the page's table lists.
constexpr size_t longest_listed = 40;

/// Texts as numbers: names of nodes occur often.
class text_table {
public:
  size_t add(const std::string& text) {
    const auto [found, is_new] = numbers_.try_emplace(text, texts_.size());
    if (is_new)
      texts_.push_back(text);
    return found->second;
  }
  json take() { return std::move(texts_); }

private:
  std::unordered_map<std::string, size_t> numbers_;
  json texts_ = json::array();
};

json lanes_of(const timeline& t, const trace_summary& s) {
  json lanes = json::array();
  for (size_t i = 0; i < t.lanes.size(); ++i) {
    const lane_summary& sum = s.lanes[i];
    lanes.push_back({{"name", t.lanes[i].name},
                     {"host", t.lanes[i].host},
                     {"busy", sum.busy_ns},
                     {"work", sum.work_ns},
                     {"move", sum.move_ns},
                     {"nodes", sum.nodes},
                     {"moves", sum.moves},
                     {"peakBytes", sum.peak_bytes},
                     {"peakQueue", sum.peak_queue}});
  }
  return lanes;
}

/// A column a field: JSON of half the size, and arrays of numbers in the page.
json bars_of(const timeline& t, text_table& texts) {
  json columns;
  for (const timeline_bar& b : t.bars) {
    columns["track"].push_back(b.track);
    columns["kind"].push_back(to_string(b.kind));
    columns["name"].push_back(texts.add(b.name));
    columns["begin"].push_back(b.begin_ns);
    columns["end"].push_back(b.end_ns);
    columns["op"].push_back(texts.add(b.op));
    columns["kernel"].push_back(texts.add(b.kernel));
    columns["chunk"].push_back(b.chunk);
    columns["bytes"].push_back(b.bytes);
    columns["sent"].push_back(b.sent_ns);
    columns["answered"].push_back(b.answered_ns);
  }
  for (json& kind : columns["kind"])
    kind = texts.add(kind.get<std::string>());
  return columns;
}

json counters_of(const timeline& t) {
  json counters = json::array();
  for (const timeline_counter& c : t.counters) {
    json at = json::array(), values = json::array();
    for (const counter_point& p : c.points) {
      at.push_back(p.at_ns);
      values.push_back(p.values);
    }
    counters.push_back({{"lane", c.lane}, {"name", c.name}, {"series", c.series}, {"at", at}, {"values", values}});
  }
  return counters;
}

json data_of(const timeline& t, const std::string& title) {
  check(t);
  const trace_summary s = summary_of(t, longest_listed);
  text_table texts;
  json tracks = json::array(), edges = json::array();
  for (const timeline_track& track : t.tracks)
    tracks.push_back({{"lane", track.lane}, {"name", track.name}});
  for (const timeline_edge& e : t.edges)
    edges.push_back({e.from, e.to});
  json data{{"title", title}, {"end", t.end_ns}, {"lanes", lanes_of(t, s)}, {"tracks", tracks}};
  data["bars"] = bars_of(t, texts);
  data["edges"] = edges;
  data["counters"] = counters_of(t);
  data["longest"] = s.longest;
  data["critical"] = s.critical;
  data["criticalTime"] = s.critical_ns;
  data["texts"] = texts.take();
  return data;
}

std::string text_of(const json& data) {
  return data.dump(-1, ' ', false, json::error_handler_t::replace);
}

double diff_ms(double ns) {
  return ns * 1e-6;
}

json diff_rows(const std::vector<diffed_pair>& pairs) {
  json rows = json::array();
  for (const diffed_pair& p : pairs) {
    json& row = rows.emplace_back(json{{"kind", to_string(p.kind)},
                                       {"name", p.name},
                                       {"op", p.op},
                                       {"lane_a", p.a.lane},
                                       {"lane_b", p.b.lane},
                                       {"count_a", p.a.count},
                                       {"count_b", p.b.count},
                                       {"a_ms", diff_ms(p.a.total_ns)},
                                       {"b_ms", diff_ms(p.b.total_ns)},
                                       {"delta_ms", diff_ms(p.delta_ns())}});
    row["ratio"] = p.a.total_ns > 0 ? json(p.b.total_ns / p.a.total_ns) : json(nullptr);
  }
  return rows;
}

json diff_rows(const std::vector<diffed_single>& singles) {
  json rows = json::array();
  for (const diffed_single& s : singles)
    rows.push_back({{"kind", to_string(s.kind)},
                    {"name", s.name},
                    {"op", s.op},
                    {"lane", s.side.lane},
                    {"count", s.side.count},
                    {"ms", diff_ms(s.side.total_ns)}});
  return rows;
}

json json_of(const trace_diff& diff) {
  json lanes = json::array();
  for (const diffed_lane& l : diff.lanes)
    lanes.push_back({{"name", l.name}, {"busy_a_ms", diff_ms(l.busy_a_ns)}, {"busy_b_ms", diff_ms(l.busy_b_ns)}});
  return {{"a_ms", diff_ms(diff.a_ns)},
          {"b_ms", diff_ms(diff.b_ns)},
          {"delta_ms", diff_ms(diff.b_ns - diff.a_ns)},
          {"ratio", diff.a_ns > 0 ? json(diff.b_ns / diff.a_ns) : json(nullptr)},
          {"lanes", lanes},
          {"moved", diff_rows(diff.moved)},
          {"slower", diff_rows(diff.slower)},
          {"faster", diff_rows(diff.faster)},
          {"unchanged", diff.unchanged},
          {"only_a", diff_rows(diff.only_a)},
          {"only_b", diff_rows(diff.only_b)}};
}

} // namespace

std::string to_page(const timeline& t) {
  return page_of(trace_parts, text_of({{"traces", json::array({data_of(t, t.title)})}}));
}

std::string to_page(const timeline& a, const std::string& name_a, const timeline& b, const std::string& name_b) {
  const json traces = json::array({data_of(a, name_a), data_of(b, name_b)});
  return page_of(trace_parts, text_of({{"traces", traces}, {"diff", json_of(diff_of(a, b))}}));
}

std::string to_json(const trace_diff& diff) {
  return text_of(json_of(diff));
}

std::string to_html(const run_trace& trace) {
  return to_page(timeline_of(trace));
}

} // namespace troupe

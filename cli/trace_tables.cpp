#include "cli/trace_tables.hpp"

#include "base/printable.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::cli {
namespace {

double trace_ms(double ns) {
  return ns * 1e-6;
}

/// A name in its column, cut where it is longer.
std::string in_column(const std::string& name, size_t width) {
  std::string text = printable(name);
  if (text.size() <= width)
    return text;
  text.resize(width - 1);
  while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0) == 0x80)
    text.pop_back();
  if (!text.empty() && static_cast<unsigned char>(text.back()) >= 0xC0)
    text.pop_back();
  return text + "…";
}

std::string op_of(bar_kind kind, const std::string& op) {
  return op.empty() ? std::string(to_string(kind)) : op;
}

void print_pairs(std::string_view heading, const std::vector<diffed_pair>& pairs, size_t most) {
  if (pairs.empty())
    return;
  fmt::print("{} ({}):\n", heading, pairs.size());
  for (const diffed_pair& p : std::span(pairs).first(std::min(most, pairs.size()))) {
    const std::string ratio = p.a.total_ns > 0 ? fmt::format("{:.3g} x", p.b.total_ns / p.a.total_ns) : "";
    fmt::print("  {:<40} {:<12} {:>10.3f} -> {:>10.3f} ms {:>+11.3f} ms {:>9}  {}\n", in_column(p.name, 40),
               in_column(op_of(p.kind, p.op), 12), trace_ms(p.a.total_ns), trace_ms(p.b.total_ns),
               trace_ms(p.delta_ns()), ratio,
               p.moved() ? printable(p.a.lane) + " -> " + printable(p.b.lane) : printable(p.a.lane));
  }
}

void print_singles(std::string_view heading, const std::vector<diffed_single>& singles, size_t most) {
  if (singles.empty())
    return;
  fmt::print("{} ({}):\n", heading, singles.size());
  for (const diffed_single& s : std::span(singles).first(std::min(most, singles.size())))
    fmt::print("  {:<40} {:<12} {:>10.3f} ms  {}\n", in_column(s.name, 40), in_column(op_of(s.kind, s.op), 12),
               trace_ms(s.side.total_ns), printable(s.side.lane));
}

bool shows(const lane_summary& l) {
  return l.busy_ns > 0 || l.peak_bytes > 0;
}

} // namespace

void print(const timeline& t, const trace_summary& summary) {
  const auto total = static_cast<double>(std::max<int64_t>(t.end_ns, 1));
  fmt::print("{}: {:.3f} ms; nodes and moves of the critical path take {:.3f} ms\n", printable(t.title),
             trace_ms(total), trace_ms(summary.critical_ns));
  fmt::print("{:<24} {:>7} {:>7} {:>12} {:>7} {:>12} {:>12} {:>6}\n", "device", "busy", "nodes", "in nodes", "moves",
             "in moves", "most memory", "queue");
  for (size_t i = 0; i < t.lanes.size(); ++i)
    if (const lane_summary& l = summary.lanes[i]; shows(l))
      fmt::print("{:<24} {:>5.1f} % {:>7} {:>9.3f} ms {:>7} {:>9.3f} ms {:>12} {:>6}\n", in_column(t.lanes[i].name, 24),
                 100 * static_cast<double>(l.busy_ns) / total, l.nodes, trace_ms(l.work_ns), l.moves,
                 trace_ms(l.move_ns), l.peak_bytes < 0 ? "" : bytes_text(l.peak_bytes),
                 l.peak_queue < 0 ? "" : std::to_string(l.peak_queue));
  fmt::print("longest nodes:\n");
  for (uint32_t b : summary.longest) {
    const timeline_bar& bar = t.bars[b];
    const auto ns = static_cast<double>(bar.duration_ns());
    fmt::print("  {:<40} {:<12} {:>10.3f} ms {:>5.1f} %  {}{}\n", in_column(bar.name, 40),
               in_column(op_of(bar.kind, bar.op), 12), trace_ms(ns), 100 * ns / total,
               printable(t.lanes[t.tracks[bar.track].lane].name),
               std::binary_search(summary.critical.begin(), summary.critical.end(), b) ? ", critical" : "");
  }
}

nlohmann::ordered_json json_of(const timeline& t, const trace_summary& summary) {
  using json = nlohmann::ordered_json;
  json lanes = json::array(), longest = json::array();
  for (size_t i = 0; i < t.lanes.size(); ++i) {
    const lane_summary& l = summary.lanes[i];
    json& lane = lanes.emplace_back(json{{"name", t.lanes[i].name},
                                         {"host", t.lanes[i].host},
                                         {"busy_ms", trace_ms(static_cast<double>(l.busy_ns))},
                                         {"nodes", l.nodes},
                                         {"nodes_ms", trace_ms(l.work_ns)},
                                         {"moves", l.moves},
                                         {"moves_ms", trace_ms(l.move_ns)}});
    if (l.peak_bytes >= 0)
      lane["peak_bytes"] = l.peak_bytes;
    if (l.peak_queue >= 0)
      lane["peak_queue"] = l.peak_queue;
  }
  for (uint32_t b : summary.longest) {
    const timeline_bar& bar = t.bars[b];
    longest.push_back({{"name", bar.name},
                       {"op", bar.op},
                       {"kernel", bar.kernel},
                       {"lane", t.lanes[t.tracks[bar.track].lane].name},
                       {"begin_ms", trace_ms(static_cast<double>(bar.begin_ns))},
                       {"ms", trace_ms(static_cast<double>(bar.duration_ns()))},
                       {"critical", std::binary_search(summary.critical.begin(), summary.critical.end(), b)}});
  }
  return {{"title", t.title},
          {"total_ms", trace_ms(static_cast<double>(t.end_ns))},
          {"critical_ms", trace_ms(summary.critical_ns)},
          {"lanes", lanes},
          {"longest", longest}};
}

void print(const trace_diff& diff, size_t most) {
  fmt::print("{:.3f} ms -> {:.3f} ms, {:+.3f} ms{}\n", trace_ms(diff.a_ns), trace_ms(diff.b_ns),
             trace_ms(diff.b_ns - diff.a_ns), diff.a_ns > 0 ? fmt::format(", {:.3g} x", diff.b_ns / diff.a_ns) : "");
  for (const diffed_lane& l : diff.lanes)
    if (l.busy_a_ns > 0 || l.busy_b_ns > 0)
      fmt::print("  {:<24} busy {:>10.3f} -> {:>10.3f} ms\n", in_column(l.name, 24), trace_ms(l.busy_a_ns),
                 trace_ms(l.busy_b_ns));
  print_pairs("moved", diff.moved, most);
  print_pairs("slower", diff.slower, most);
  print_pairs("faster", diff.faster, most);
  print_singles("only in the first", diff.only_a, most);
  print_singles("only in the second", diff.only_b, most);
  if (diff.unchanged > 0)
    fmt::print("as before: {}\n", diff.unchanged);
}

} // namespace troupe::cli

#include "monitoring/bottlenecks.hpp"

#include "base/printable.hpp"
#include "base/quantile.hpp"
#include "graph/bodies.hpp"
#include "monitoring/long_node.hpp"
#include "plan/place/policies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

namespace troupe::monitoring {
namespace {

/// From this number on, chunks are many.
constexpr size_t many_chunks = 8;
/// Predictions that are wrong by less are as good as one can ask for.
constexpr double far_off = 3;
/// Times below it say nothing about predictions.
constexpr double shortest_s = 1e-4;

double percent(double part) {
  return 100 * std::clamp(part, 0.0, 1.0);
}

double ms(double seconds) {
  return 1e3 * seconds;
}

std::string joined(const std::vector<std::string>& names, std::string_view between) {
  return fmt::format("{}", fmt::join(names, between));
}

/// Returns the names of the devices that computed something, but for one.
std::vector<std::string> used_but(const traced_work& work, std::optional<device_index> without = {}) {
  std::vector<std::string> names;
  for (device_index d : work.used())
    if (d != without)
      names.push_back(work.name(d));
  return names;
}

class run_search {
public:
  explicit run_search(const traced_work& work, bool dims_are_known)
      : work_(work), plan_(work.source()), total_s_(work.total_s()), dims_are_known_(dims_are_known) {}

  std::vector<finding> run() {
    balance();
    turns();
    moves();
    callers_copies();
    small_chunks();
    if (std::optional<finding> node = find_long_node(work_))
      found_.push_back(std::move(*node));
    fallback();
    predictions();
    rank(found_);
    return std::move(found_);
  }

private:
  double part(double seconds) const { return seconds / total_s_; }

  void add(std::string cause, std::string where, std::string what, double lost, std::string advice, double gain) {
    gain = std::max(gain, 0.0);
    found_.push_back({.severity = severity_of(gain),
                      .cause = std::move(cause),
                      .where = std::move(where),
                      .what = std::move(what),
                      .lost = std::clamp(lost, 0.0, 1.0),
                      .advice = std::move(advice),
                      .gain = gain});
  }

  /// Returns e.g. "cpu works 80 % of the time, gpu 20 %".
  std::string shares() const {
    std::string text;
    for (device_index d : work_.used())
      text += fmt::format("{}{}{:.0f} %{}", text.empty() ? "" : ", ", work_.name(d) + (text.empty() ? " works " : " "),
                          percent(part(work_.work_s(d))), text.empty() ? " of the time" : "");
    return text;
  }

  device_index busiest() const {
    return *std::max_element(work_.used().begin(), work_.used().end(),
                             [&](device_index a, device_index b) { return work_.work_s(a) < work_.work_s(b); });
  }

  /// Speed of a device for this model, in models a second.
  double speed(device_index d) const { return 1 / std::max(work_.predicted_s(d), 1e-12); }

  /// Devices idle while others work: what would equal shares, or the slowest one left out, save?
  void balance() {
    if (work_.used().size() < 2)
      return;
    double done = 0, speeds = 0, busy = 0;
    for (device_index d : work_.used()) {
      done += work_.work_s(d) * speed(d);
      speeds += speed(d);
      busy += work_.busy_s(d);
    }
    const double even_s = done / speeds;
    const double gain = work_.gain(makespan_if(work_.run(), [&](chunk_id, replayed_chunk& c) {
      if (work_.is_real(c.device) && work_.work_s(work_.lead_of(c.device)) > 0)
        c.work_s *= even_s / work_.work_s(work_.lead_of(c.device));
    }));
    const double lost = 1 - busy / (static_cast<double>(work_.used().size()) * total_s_);
    if (add_slow_device(gain, lost) || gain < least_gain)
      return;
    const bool counts = row_of(plan_.options.policy).by_finish;
    add("imbalance", work_.name(busiest()), shares(), lost,
        counts ? "measure the model's nodes, so that they are placed by real times: troupe profile MODEL --keep"
               : "place nodes by when they would end: --policy heft",
        gain);
  }

  /// Whether some device is so slow that the run is faster without it, more than `balanced` saves.
  bool add_slow_device(double balanced, double lost) {
    const auto by_speed = [&](device_index a, device_index b) { return speed(a) < speed(b); };
    const auto [slow, fast] = std::minmax_element(work_.used().begin(), work_.used().end(), by_speed);
    if (2 * speed(*slow) > speed(*fast))
      return false;
    std::vector<node_id> nodes;
    for (const chunk& c : plan_.chunks)
      if (work_.is_real(c.device) && work_.lead_of(c.device) == *slow)
        nodes.insert(nodes.end(), c.nodes.begin(), c.nodes.end());
    if (!work_.can_run(*fast, nodes))
      return false;
    const double gain =
        work_.gain_on(*fast, [&, slow = *slow](const replayed_chunk& c) { return work_.lead_of(c.device) == slow; });
    if (gain < least_gain || gain <= balanced)
      return false;
    add("slow_device", work_.name(*slow),
        fmt::format("{} is {:.1f} times slower than {}; {}", work_.name(*slow), speed(*fast) / speed(*slow),
                    work_.name(*fast), shares()),
        lost, "leave it out: --devices " + joined(used_but(work_, *slow), ","), gain);
    return true;
  }

  /// Devices wait for each other's results: requests in flight side by side would fill the gaps.
  void turns() {
    if (work_.used().size() < 2)
      return;
    double busiest_s = 0;
    for (device_index d : work_.used())
      busiest_s = std::max(busiest_s, work_.busy_s(d));
    const double any_s = work_.any_busy_s(), gain = part(any_s - busiest_s);
    if (gain < least_gain)
      return;
    add("taking_turns", joined(used_but(work_), ", "),
        fmt::format("devices wait for each other's results: some device is busy {:.0f} % of the time, the busiest one "
                    "{:.0f} %",
                    percent(part(any_s)), percent(part(busiest_s))),
        gain, "give it several requests at a time: --strategy pipeline; the gain is in throughput, not in latency",
        gain);
  }

  void moves() {
    const double gain = work_.gain(makespan_if(work_.run(), [&](chunk_id id, replayed_chunk& c) {
      c.move_s = 0;
      if (is_remote(plan_.devices[c.device])) { // the network's share is in what comes before and after
        c.lead_s = plan_.chunks[id].predecessors.empty() ? c.lead_s : std::min(c.lead_s, 0.0);
        c.answer_s = 0;
      }
    }));
    if (gain < least_gain)
      return;
    double seconds = 0;
    std::set<std::string> names;
    for (const replayed_chunk& c : work_.run().chunks)
      if (c.move_s > 0 || is_remote(plan_.devices[c.device])) {
        seconds += c.move_s;
        names.insert(work_.name(c.device));
      }
    const std::string what =
        fmt::format("values that cross devices take {:.3f} ms of copies, {:.0f} % of the time on the longest path",
                    ms(seconds), percent(gain));
    const auto [advice, saved] = against_moves(gain);
    add("moves", fmt::format("{}", fmt::join(names, ", ")), what, gain, advice, saved);
  }

  /// Returns what to do about moves and what it saves; at most `all`, unless one device is faster anyway.
  std::pair<std::string, double> against_moves(double all) const {
    const auto single = work_.best_single();
    if (single && single->second >= least_gain)
      return {on_one(single->first), single->second};
    if (row_of(plan_.options.policy).by_finish)
      return {"measure the devices and their links, so that placement knows them: troupe profile --calibrate", all};
    return {"count moves when nodes are placed: --policy heft", all};
  }

  std::string on_one(device_index d) const {
    return "keep the model on one device: --policy single --devices " + work_.name(d);
  }

  void callers_copies() {
    double in_s = 0, out_s = 0;
    for (const replayed_chunk& c : work_.run().chunks) {
      in_s += c.input_s;
      out_s += c.output_s;
    }
    const double in = work_.gain(makespan_if(work_.run(), [](chunk_id, replayed_chunk& c) { c.input_s = 0; }));
    const double out = work_.gain(makespan_if(work_.run(), [](chunk_id, replayed_chunk& c) { c.output_s = 0; }));
    if (in >= least_gain)
      add("inputs", "", fmt::format("copying the inputs takes {:.3f} ms, {:.0f} % of the time", ms(in_s), percent(in)),
          in,
          "make inputs with engine::allocate, and leave those that stay the same on the device: engine::put and "
          "run_options::device_inputs",
          in);
    if (out >= least_gain)
      add("outputs", "",
          fmt::format("copying the outputs takes {:.3f} ms, {:.0f} % of the time", ms(out_s), percent(out)), out,
          "leave outputs that the next run reads on the device: session::bind (--bind) or run_options::keep", out);
  }

  /// Whether several devices have chunks, if of one processor too.
  bool is_spread() const {
    std::set<device_index> homes;
    for (const replayed_chunk& c : work_.run().chunks)
      if (work_.is_real(c.device))
        homes.insert(c.device);
    return homes.size() > 1;
  }

  /// Overhead of chunks: before they begin and until their answers are back.
  void small_chunks() {
    const auto& chunks = work_.run().chunks;
    if (chunks.size() < many_chunks)
      return;
    const double gain = work_.gain(makespan_if(work_.run(), [&](chunk_id id, replayed_chunk& c) {
      if (is_remote(plan_.devices[c.device]))
        return;
      if (!plan_.chunks[id].predecessors.empty())
        c.lead_s = std::min(c.lead_s, 0.0);
      if (!plan_.chunks[id].dependents.empty())
        c.answer_s = 0;
    }));
    if (gain < least_gain)
      return;
    std::vector<double> works;
    works.reserve(chunks.size());
    for (const replayed_chunk& c : chunks)
      works.push_back(c.work_s);
    const std::string what = fmt::format(
        "{} chunks, half of which work {:.3f} ms or less; starting and answering them takes {:.0f} % of the time",
        chunks.size(), ms(median(std::move(works))), percent(gain));
    const auto single = is_spread() ? work_.best_single() : std::nullopt;
    if (single && single->second >= least_gain)
      add("small_chunks", "", what, gain, on_one(single->first), single->second);
    else
      add("small_chunks", "", what, gain, "let requests share the chunks: --max-batch with several requests at a time",
          gain);
  }

  /// The device that is there for what no other can run does most of the work.
  void fallback() {
    double all = 0;
    for (device_index d : work_.used())
      all += work_.work_s(d);
    for (device_index d : work_.used()) {
      if (!plan_.devices[d].fallback || work_.work_s(d) < all / 2)
        continue;
      std::map<std::string, int> operators;
      for (node_id n = 0; n < static_cast<node_id>(plan_.placement.size()); ++n)
        if (plan_.placement[n] == d)
          ++operators[operator_name(plan_.program->nodes[n])];
      std::vector<std::string> names;
      names.reserve(operators.size());
      for (const auto& [name, count] : operators)
        names.push_back(fmt::format("{} × {}", count, printable(name)));
      const double gain = work_.gain_on(d, [](const replayed_chunk&) { return true; });
      const bool alone = gain >= least_gain || work_.used().size() == 1;
      add("fallback", work_.name(d),
          fmt::format("{} is there for what no other device runs, and does {:.0f} % of the work: {}", work_.name(d),
                      percent(work_.work_s(d) / all), joined(names, ", ")),
          part(work_.work_s(d)),
          alone ? "run everything there: --devices " + work_.name(d)
                : "name it among the devices, so that it may do more than that: --policy heft --devices " +
                      joined(used_but(work_), ","),
          alone ? gain : 0);
      if (found_.back().lost >= 0.5)
        found_.back().severity = std::max(found_.back().severity, severity::warning);
    }
  }

  void predictions() {
    if (!dims_are_known_)
      return;
    for (device_index d = 0; d < plan_.devices.size(); ++d) {
      double measured = 0, predicted = 0;
      for (const chunk_trace& c : work_.trace().chunks)
        for (const device_timing& t : c.timings)
          if (t.kind == device_timing::work::node && plan_.placement[t.id] == d) {
            measured += has_body(plan_.program->nodes[t.id]) ? 0 : t.seconds();
            predicted += work_.predicted_s(t.id, d);
          }
      const double factor = std::max(measured / predicted, predicted / measured);
      if (std::max(measured, predicted) < shortest_s || !(factor > far_off) ||
          part(std::max(measured, predicted)) < least_gain)
        continue;
      add("prediction", work_.name(d),
          fmt::format(
              "nodes take {:.3f} ms, predicted are {:.3f} ms: what is placed by predictions may be placed badly",
              ms(measured), ms(predicted)),
          0, "measure the devices: troupe profile --calibrate; then the model's nodes: troupe profile MODEL --keep", 0);
    }
  }

  const traced_work& work_;
  const plan& plan_;
  const double total_s_;
  const bool dims_are_known_;
  std::vector<finding> found_;
};

bool has_symbols(const graph& g) {
  return std::any_of(g.values.begin(), g.values.end(), [](const value& v) {
    return !v.dims || std::any_of(v.dims->begin(), v.dims->end(), [](const dim& d) { return !d.is_constant(); });
  });
}

} // namespace

severity severity_of(double part) {
  return part >= 0.3 ? severity::critical : part >= least_gain ? severity::warning : severity::note;
}

void rank(std::vector<finding>& findings) {
  std::stable_sort(findings.begin(), findings.end(), [](const finding& a, const finding& b) {
    return std::tie(a.gain, a.lost) > std::tie(b.gain, b.lost);
  });
}

std::vector<finding> find_bottlenecks(const run_trace& trace, std::span<const shape> dims) {
  if (!trace.source || trace.end_ns <= trace.begin_ns)
    return {};
  const traced_work work(trace, dims);
  return run_search(work, !dims.empty() || !has_symbols(*trace.source->program)).run();
}

} // namespace troupe::monitoring

namespace troupe {

std::vector<finding> find_bottlenecks(const run_trace& trace) {
  return monitoring::find_bottlenecks(trace, {});
}

} // namespace troupe

#include "measure/tuning.hpp"

#include "launch/launch_table.hpp"
#include "launch/tiling.hpp"
#include "ops/op.hpp"
#include "plan/cut/joined_parts.hpp"

#include <algorithm>
#include <set>

namespace troupe {
namespace {

std::string describe_call(const node& n, const gpu_call& call) {
  std::string text = operator_name(n);
  for (const operand& o : call.inputs)
    if (o.present() && o.dims.size() > 1)
      text += fmt::format(" {}", to_string(std::span<const int64_t>(o.dims)));
  return text + fmt::format(" {}", to_string(call.outputs.at(0).type));
}

/// The usual way, then the others that are worth measuring, each once.
std::vector<kernel_way> ways_of(const op_def& def, gpu_call call, const shader_revision& revision) {
  const launch_lists usual = launches_of(def, call);
  if (usual.empty())
    return {};
  call.ways = way_range::all;
  launch_lists lists = launches_of(def, call);
  const auto is_usual = [&](const launch_list& l) {
    return key_of_kernel(l, revision) == key_of_kernel(usual[0], revision);
  };
  const auto first = std::ranges::find_if(lists, is_usual);
  if (first == lists.end())
    lists.insert(lists.begin(), usual[0]);
  else
    std::rotate(lists.begin(), first, first + 1);
  double best = 0;
  for (const launch_list& l : lists)
    if (l.time > 0 && (best == 0 || l.time < best))
      best = l.time;
  std::stable_sort(lists.begin() + 1, lists.end(),
                   [](const launch_list& a, const launch_list& b) { return a.time < b.time; });
  std::vector<kernel_way> ways;
  std::set<std::pair<uint64_t, uint64_t>> known;
  for (const launch_list& l : lists) {
    const hash128 key = key_of_kernel(l, revision);
    const bool hopeless = l.time > hopeless_time * best && !ways.empty();
    if (hopeless || ways.size() == max_tried_ways || !known.emplace(key.high, key.low).second)
      continue;
    ways.push_back({key, l.tile.empty() ? l.name : l.name + " " + l.tile});
  }
  return ways;
}

/// See the top of the header.
class tuner {
public:
  tuner(std::span<const tunable_call> calls, const tuning_runner& run, const std::function<double()>& time_left)
      : calls_(calls), run_(run), time_left_(time_left), best_(calls.size()) {
    found_.calls.resize(calls.size());
    for (const tunable_call& c : calls)
      found_.all_rounds = std::max(found_.all_rounds, c.ways.size() - 1);
  }

  tuning search(const std::function<void(double, double)>& progress) {
    for (size_t way = 1; way <= found_.all_rounds && has_time(); ++way) {
      progress(static_cast<double>(way - 1), static_cast<double>(found_.all_rounds));
      try_ways(way);
      ++found_.rounds;
    }
    confirm();
    return std::move(found_);
  }

private:
  /// A run has to take so much less.
  static constexpr double run_margin = 0.001;

  /// Whether rounds may go on: some time is kept for confirming.
  bool has_time() const {
    constexpr double kept = 0.25;
    return time_left_() > kept;
  }

  using way_set = std::vector<size_t>;

  struct best_way {
    size_t way = 0;
    double ratio = 1; // to the usual one's time
  };

  bool is_wrong(size_t call, size_t way) const {
    return std::ranges::any_of(found_.wrong, [&](const wrong_way& w) { return w.call == call && w.way == way; });
  }

  /// Every call's way of this number, where it has one.
  void try_ways(size_t way) {
    way_set set(calls_.size());
    for (size_t c = 0; c < set.size(); ++c)
      set[c] = way < calls_[c].ways.size() ? way : 0;
    tuning_round round = run_(set, false);
    if (!round.difference.empty()) {
      find_wrong(set, round.difference);
      for (size_t c = 0; c < set.size(); ++c)
        set[c] = is_wrong(c, set[c]) ? 0 : set[c];
      if (std::ranges::count(set, size_t{0}) == std::ssize(set) || !has_time())
        return;
      round = run_(set, false);
      if (!round.difference.empty()) // only together, or not always
        return;
    }
    note(set, round);
  }

  void note(const way_set& set, const tuning_round& round) {
    for (size_t c = 0; c < set.size(); ++c) {
      found_.calls[c].usual_s = found_.calls[c].seconds = round.usual_s[c];
      const double ratio = round.usual_s[c] > 0 ? round.tried_s[c] / round.usual_s[c] : 1;
      if (set[c] != 0 && ratio < best_[c].ratio)
        best_[c] = {set[c], ratio};
    }
  }

  /// Finds which ways of a set that gives other outputs do it alone; halves that agree hold none.
  void find_wrong(const way_set& set, const std::string& difference) {
    std::vector<size_t> changed;
    for (size_t c = 0; c < set.size(); ++c)
      if (set[c] != 0)
        changed.push_back(c);
    if (changed.size() == 1) {
      found_.wrong.push_back({changed[0], set[changed[0]], difference});
      return;
    }
    if (changed.empty()) // the model is not the same in every run
      return;
    const size_t half = changed.size() / 2;
    for (const auto part : {std::span(changed).first(half), std::span(changed).subspan(half)}) {
      if (!has_time())
        return;
      way_set some(set.size());
      for (const size_t c : part)
        some[c] = set[c];
      if (const tuning_round round = run_(some, false); !round.difference.empty())
        find_wrong(some, round.difference);
    }
  }

  /// Calls whose other ways make the model faster, together.
  struct accepted_part {
    std::vector<size_t> calls;
    double gain = 0; // of a run, as a part of the usual one's time
  };

  way_set set_of(std::span<const size_t> calls) const {
    way_set set(calls_.size());
    for (const size_t c : calls)
      set[c] = best_[c].way;
    return set;
  }

  /// Seconds of a run that the call's best way should save.
  double expected_gain(size_t c) const {
    return (1 - best_[c].ratio) * found_.calls[c].usual_s * static_cast<double>(calls_[c].nodes.size());
  }

  void confirm() {
    std::vector<size_t> better;
    for (size_t c = 0; c < calls_.size(); ++c)
      if (best_[c].ratio < 1 - tuning_margin)
        better.push_back(c);
    std::ranges::stable_sort(better, std::greater<>(), [&](size_t c) { return expected_gain(c); });
    if (better.empty())
      return;
    std::vector<accepted_part> parts;
    accept(better, parts);
    if (parts.empty()) {
      found_.refused = "the model is not faster with what is faster call by call";
      return;
    }
    found_.refused.clear();
    if (parts.size() > 1)
      accept_together(parts);
  }

  /// Accepts ways that make the model faster, all of them or those of either half; a round for all of `some` has been
  /// done if it is accepted.
  void accept(std::span<const size_t> some, std::vector<accepted_part>& parts) {
    const tuning_round round = run_(set_of(some), true);
    const double gain = gain_of(round);
    if (gain > run_margin) {
      choose(some, round);
      parts.push_back({{some.begin(), some.end()}, gain});
      return;
    }
    if (some.size() == 1)
      return;
    for (const auto half : {some.first((some.size() + 1) / 2), some.subspan((some.size() + 1) / 2)})
      if (time_left_() > 0)
        accept(half, parts);
  }

  /// Parts that were accepted apart have to be so together; else the best of them alone counts.
  void accept_together(const std::vector<accepted_part>& parts) {
    std::vector<size_t> all;
    for (const accepted_part& p : parts)
      all.insert(all.end(), p.calls.begin(), p.calls.end());
    const accepted_part& best = *std::ranges::max_element(parts, {}, &accepted_part::gain);
    const tuning_round round = run_(set_of(all), true);
    if (gain_of(round) > best.gain)
      choose(all, round);
    else
      choose(best.calls, run_(set_of(best.calls), true));
  }

  /// Returns what a long round saves of a run's time; nothing if its outputs differ.
  static double gain_of(const tuning_round& round) {
    return round.difference.empty() && round.usual_run_s > 0 ? 1 - round.tried_run_s / round.usual_run_s : 0;
  }

  /// Chooses the ways of `some`, which a long round has tried, where they were better again, and of no other call.
  void choose(std::span<const size_t> some, const tuning_round& round) {
    if (!round.difference.empty())
      return;
    found_.usual_run_s = round.usual_run_s;
    found_.tuned_run_s = round.tried_run_s;
    for (size_t c = 0; c < calls_.size(); ++c) {
      const bool better =
          std::ranges::find(some, c) != some.end() && round.tried_s[c] < (1 - tuning_margin) * round.usual_s[c];
      found_.calls[c] = {better ? best_[c].way : 0, better ? round.tried_s[c] : round.usual_s[c], round.usual_s[c]};
    }
  }

  const std::span<const tunable_call> calls_;
  const tuning_runner& run_;
  const std::function<double()>& time_left_;
  std::vector<best_way> best_; // by call
  tuning found_;
};

} // namespace

std::vector<tunable_call> tunable_calls(const bound_plan& bound, device_index device, const shader_revision& revision) {
  const plan& p = *bound.source;
  std::vector<tunable_call> calls;
  std::unordered_map<hash128, size_t> known;
  for (const chunk& c : p.chunks) {
    if (c.device != device || c.segment != bound.segment)
      continue;
    for (const node_id id : c.nodes) {
      const node& n = p.program->nodes[id];
      if (launches_nothing(p, n))
        continue;
      gpu_call call = make_gpu_call(bound, n, *p.devices[device].gpu);
      const hash128 key = key_of_call(*n.def, call);
      const auto [at, is_new] = known.try_emplace(key, calls.size());
      if (is_new)
        calls.push_back({key, describe_call(n, call), {}, ways_of(*n.def, std::move(call), revision)});
      calls[at->second].nodes.push_back(id);
    }
  }
  std::erase_if(calls, [](const tunable_call& c) { return c.ways.size() < 2; });
  return calls;
}

tuning tune(std::span<const tunable_call> calls, const tuning_runner& run, const std::function<double()>& time_left,
            const std::function<void(double, double)>& progress) {
  return tuner(calls, run, time_left).search(progress);
}

std::vector<kernel_choice> choices_of(std::span<const tunable_call> calls, const tuning& found) {
  std::vector<kernel_choice> choices;
  for (size_t c = 0; c < calls.size(); ++c) {
    const tuned_call& t = found.calls[c];
    if (t.usual_s == 0)
      continue;
    const kernel_way& way = calls[c].ways[t.way];
    choices.push_back({calls[c].key, way.kernel, way.name.substr(0, max_kernel_name), t.seconds, t.usual_s});
  }
  return choices;
}

} // namespace troupe

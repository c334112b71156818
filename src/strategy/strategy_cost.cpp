#include "strategy/strategy_cost.hpp"

#include "base/error.hpp"
#include "plan/bind/bound_plan.hpp"
#include "strategy/shares.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace troupe {
namespace {

/// Requests that are played to see how many a second there are: fewer if each has many pieces.
size_t requests_to_play(size_t pieces_each, size_t replicas) {
  constexpr size_t most_pieces = 256;
  return std::clamp(most_pieces / std::max<size_t>(pieces_each, 1), size_t{3}, 4 * replicas + 2);
}

/// Returns how many rows of a request are played, so that its pieces do not become too many.
int64_t rows_to_play(int64_t all, int64_t micro_batch, size_t chunks) {
  const auto most_pieces =
      static_cast<int64_t>(std::clamp(50'000 / std::max<size_t>(chunks, 1), size_t{8}, size_t{256}));
  return micro_batch == 0 || micro_batch > all / most_pieces ? all : micro_batch * most_pieces;
}

size_t fastest_for(std::span<const double> load, std::span<const replica_figures> speeds, double rows) {
  size_t best = 0;
  const auto end = [&](size_t r) { return load[r] + speeds[r].seconds(rows); };
  for (size_t r = 1; r < speeds.size(); ++r)
    if (end(r) < end(best))
      best = r;
  return best;
}

/// Of large pieces.
double rows_per_second(const replica_figures& f) {
  return 1 / std::max(f.row_seconds, 1e-12);
}

double output_bytes(const plan& p, std::span<const shape> dims) {
  double bytes = 0;
  for (value_id v : p.program->outputs)
    bytes += value_bytes(p, dims, v);
  return bytes;
}

} // namespace

size_t position_of(std::span<const device_info> devices, const std::string& name) {
  const auto found = std::find_if(devices.begin(), devices.end(), [&](const device_info& d) { return d.name == name; });
  return static_cast<size_t>(found - devices.begin());
}

int64_t strategy_coster::rows() const {
  return asked_.rows.empty() ? 1 : asked_.symbols.at(asked_.rows);
}

bindings strategy_coster::symbols_of(int64_t rows) const {
  bindings all = asked_.symbols;
  if (!asked_.rows.empty())
    all[asked_.rows] = rows;
  return all;
}

strategy_coster::plan_ptr strategy_coster::plan_for(const replica_set& on, placement_policy policy) {
  const std::vector<std::string> names = on.all();
  plan_ptr& made = plans_[{fmt::format("{}", fmt::join(names, "\n")), policy}];
  if (made)
    return made;
  std::vector<device_info> devices;
  devices.reserve(names.size());
  for (const std::string& name : names)
    devices.push_back(asked_.devices[position_of(asked_.devices, name)]);
  return made = make_plan(asked_.program, std::move(devices),
                          {.policy = policy, .pins = asked_.pins, .expected = asked_.symbols, .plugin = asked_.plugin});
}

strategy_coster::divided strategy_coster::divide(const strategy_choice& c, size_t requests, int64_t all,
                                                 std::span<const replica_figures> speeds) const {
  divided d;
  std::vector<double> load(speeds.size(), 0);
  const auto add = [&](size_t request, size_t replica, int64_t n) {
    if (n == 0)
      return;
    d.pieces.push_back({request, replica, n});
    d.largest = std::max(d.largest, n);
    load[replica] += speeds[replica].seconds(static_cast<double>(n));
  };
  double all_speeds = 0;
  for (const replica_figures& f : speeds)
    all_speeds += rows_per_second(f);
  // With adaptive shares, a request among many is not cut (`dispatcher::takes_whole`).
  const bool whole = asked_.rows.empty() || c.strategy == strategy::none ||
                     (c.strategy == strategy::data_parallel && c.micro_batch == 0 &&
                      asked_.stream.shares == share_rule::adaptive && requests > 1);
  for (size_t request = 0; request < requests; ++request) {
    if (!whole && c.strategy == strategy::data_parallel && c.micro_batch == 0) {
      const double begin = *std::min_element(load.begin(), load.end());
      std::vector<share_figures> figures;
      for (size_t r = 0; r < speeds.size(); ++r)
        figures.push_back({(all <= few_rows ? load[r] - begin : 0) + speeds[r].fixed_seconds, speeds[r].row_seconds});
      const auto shares = stepped_shares(all, shares_that_end_together(static_cast<double>(all), figures), false);
      for (size_t r = 0; r < shares.size(); ++r)
        add(request, r, shares[r]);
      continue;
    }
    for (int64_t left = all, n = 0; left > 0; left -= n) {
      const int64_t most = whole ? left : std::min(left, c.micro_batch > 0 ? c.micro_batch : left);
      const size_t r = fastest_for(load, speeds, static_cast<double>(most));
      n = most;
      if (!whole && c.strategy == strategy::work_stealing)
        n = guided_piece({.waiting = static_cast<double>(left),
                          .left = left,
                          .least = least_piece(c.micro_batch),
                          .most = c.micro_batch > 0 ? c.micro_batch : all},
                         rows_per_second(speeds[r]) / all_speeds);
      add(request, r, n);
    }
  }
  return d;
}

int64_t strategy_coster::memory(std::span<const plan_ptr> plans, size_t depth, int64_t piece_rows) const {
  const std::vector<size_t> processors = first_of_processors(asked_.devices);
  std::vector<int64_t> needed(asked_.devices.size(), 0); // by the first device of its processor
  int64_t all = 0;
  for (const plan_ptr& p : plans) {
    const bound_plan_ptr bound = bind_segment(p, 0, symbols_of(piece_rows));
    const std::vector<device_info> real = real_devices(*p);
    for (device_index d = 0; d < real.size(); ++d) {
      const size_t at = position_of(asked_.devices, real[d].name);
      const int64_t bytes =
          bytes_needed(*bound->layout, d) + static_cast<int64_t>(depth - 1) * slot_bytes(*bound->layout, d);
      int64_t& sum = needed[processors[at]];
      sum += bytes;
      all += bytes;
      if (sum > asked_.devices[at].memory_bytes)
        fail(errc::out_of_memory, "needs {:.2f} GiB on {}, which has {:.2f} GiB for plans",
             static_cast<double>(sum) / (1 << 30), asked_.devices[at].name,
             static_cast<double>(asked_.devices[at].memory_bytes) / (1 << 30));
    }
  }
  return all;
}

void strategy_coster::predict(strategy_choice& c, std::span<const plan_ptr> plans, size_t stages) {
  const machine_options machine =
      machine_for(c.strategy, asked_.stream, std::vector<replica_figures>(plans.size()), stages);
  std::vector<forecast_replica> replicas;
  for (const plan_ptr& p : plans)
    replicas.push_back({p, machine.depth});
  stream_forecast forecast(replicas, asked_.symbols, asked_.rows);
  std::vector<replica_figures> speeds;
  for (size_t r = 0; r < plans.size(); ++r)
    speeds.push_back(forecast.figures(r));
  bool gathers = false; // whether requests were cut in what was played last
  const auto seconds = [&](size_t requests, int64_t of_rows) {
    const std::vector<forecast_piece> pieces = divide(c, requests, of_rows, speeds).pieces;
    gathers = pieces.size() > requests;
    const std::vector<double> answered = forecast.play(pieces, requests);
    return *std::max_element(answered.begin(), answered.end());
  };
  const int64_t all = rows(), part = rows_to_play(all, c.micro_batch, plans[0]->chunks.size());
  const divided one = divide(c, 1, part, speeds);
  double latency = seconds(1, part);
  if (part < all) { // the rows that are left follow at the pace of the last ones
    const int64_t half = part / 2;
    latency += (latency - seconds(1, half)) * static_cast<double>(all - part) / static_cast<double>(part - half);
  }
  // The rate is of the second half of the requests: pipelines are full then.
  const size_t more = requests_to_play(one.pieces.size(), plans.size());
  double rate = static_cast<double>(more) * static_cast<double>(part) / static_cast<double>(all) /
                std::max(seconds(2 * more, part) - seconds(more, part), 1e-12);
  if (c.strategy != strategy::none)
    latency += queue_seconds;
  if (one.pieces.size() > 1) {
    const double gather =
        output_bytes(*plans[0], expected_dims(*plans[0]->program, asked_.symbols)) / gather_bytes_per_s;
    latency += gather;
    if (gathers)
      rate = std::min(rate, 1 / std::max(gather, 1e-9));
  }
  c.has_plan = true;
  c.latency_ms = latency * 1e3;
  c.requests_per_s = rate;
  c.memory_bytes = memory(plans, machine.depth, one.largest);
}

costed_strategy strategy_coster::cost(strategy how, placement_policy policy, std::vector<replica_set> replicas) {
  costed_strategy made{.shown = {.strategy = how, .policy = policy}, .replicas = std::move(replicas)};
  size_t stages = 0;
  for (const replica_set& r : made.replicas) {
    made.shown.devices.insert(made.shown.devices.end(), r.own.begin(), r.own.end());
    stages = std::max(stages, r.own.size());
  }
  if (!asked_.rows.empty() && how != strategy::none)
    made.shown.micro_batch =
        asked_.stream.micro_batch > 0 ? asked_.stream.micro_batch : micro_batch_of(how, rows(), stages);
  try {
    std::vector<plan_ptr> plans;
    for (const replica_set& r : made.replicas)
      plans.push_back(plan_for(r, policy));
    predict(made.shown, plans, stages);
  } catch (const error& e) {
    made.shown.possible = made.shown.has_plan = false;
    made.shown.why = e.what();
    made.shown.latency_ms = made.shown.requests_per_s = 0; // of what cannot run there is nothing to predict
    if (e.code() != errc::out_of_memory && !problem_)
      problem_ = e;
  }
  return made;
}

} // namespace troupe

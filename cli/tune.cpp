#include "cli/tune.hpp"

#include "base/elapsed.hpp"
#include "base/printable.hpp"
#include "base/quantile.hpp"
#include "cli/compare.hpp"
#include "cli/keep.hpp"
#include "measure/measure_nodes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

namespace troupe::cli {
namespace {

/// Whether the device computes with fewer digits than float32 has.
bool is_rough(const plan& p) {
  constexpr dtype_set short_types = types::floats | set_of(dtype::int8) | set_of(dtype::uint8);
  return std::ranges::any_of(p.program->values, [&](const value& v) {
    return (short_types & set_of(v.type)) && v.type != dtype::float32 && v.type != dtype::float64;
  });
}

/// Runs a model on one GPU with the usual kernels and with others, in turns.
class tuning_session {
public:
  tuning_session(const model_options& args, const std::string& device, const interrupts& stop)
      : args_(args), device_(device), stop_(stop), engine_(options_of(args, device)),
        kernels_(kernels_of(engine_, device)) {
    args_.quiet = true;
    kernels_->set({});
    usual_ = load();
    inputs_ = complete_inputs(usual_->inputs(), given_inputs(*usual_, args_), args_.dim_values(), args_.seed);
    warm_up(*usual_, inputs_, 1, stop_.token());
    wanted_ = usual_->run(inputs_, {.cancel = stop_.token()}).outputs;
    if (const std::string other = difference_of(usual_->run(inputs_, {.cancel = stop_.token()}).outputs);
        !other.empty())
      fail(errc::unsupported, "the model's outputs differ from run to run, so that no kernel can be checked: {}",
           other);
    const bound_plan_ptr bound = bound_plan_of(*usual_, inputs_);
    allowed_.l2 = is_rough(*bound->source) ? 2e-2 : 1e-4;
    const auto& devices = bound->source->devices;
    const auto own = std::ranges::find(devices, device, &device_info::name);
    if (own != devices.end())
      calls_ = tunable_calls(*bound, static_cast<device_index>(own - devices.begin()), kernels_->revision());
    call_of_.assign(bound->source->program->nodes.size(), none);
    for (size_t c = 0; c < calls_.size(); ++c)
      for (const node_id n : calls_[c].nodes)
        call_of_[static_cast<size_t>(n)] = c;
  }

  const std::vector<tunable_call>& calls() const { return calls_; }

  tuning_round run(std::span<const size_t> ways, bool long_round) {
    std::unordered_map<hash128, hash128> chosen;
    for (size_t c = 0; c < ways.size(); ++c)
      if (ways[c] != 0)
        chosen[calls_[c].key] = calls_[c].ways[ways[c]].kernel;
    kernels_->set(std::move(chosen));
    const session tried = load();
    tuning_round round;
    round.difference = difference_of(tried.run(inputs_, {.cancel = stop_.token()}).outputs);
    kernels_->set({});
    if (round.difference.empty())
      time(tried, long_round, round);
    return round;
  }

private:
  static constexpr size_t none = SIZE_MAX;

  static engine_options options_of(const model_options& args, const std::string& device) {
    engine_options options = args.engine();
    options.devices = {device};
    options.hosts.clear();
    std::erase_if(options.memory, [&](const auto& limit) { return limit.first != device; });
    return options;
  }

  session load() {
    session_options options = args_.session();
    options.policy = placement_policy::single;
    options.policy_plugin.clear();
    options.strategy = strategy::none;
    options.strategy_plugin.clear();
    options.pins.clear();
    options.plan_file.clear();
    return open_model(engine_, args_, options);
  }

  std::string difference_of(const named_tensors& got) const {
    for (const auto& [name, want] : wanted_)
      if (const comparison c = compare(got.at(name), want, allowed_); !c.difference.empty())
        return fmt::format("'{}': {}", name, c.difference);
    return {};
  }

  /// What a session's runs took: samples by call, and of untraced runs.
  struct samples {
    std::vector<std::vector<double>> calls;
    std::vector<double> runs;
  };

  void add_run(const session& s, bool long_round, samples& to) const {
    const run_result traced = s.run(inputs_, {.cancel = stop_.token(), .trace = true});
    std::vector<double> sums(calls_.size());
    for (const chunk_trace& c : traced.trace->chunks)
      for (const device_timing& t : c.timings)
        if (t.kind == device_timing::work::node && call_of_.at(static_cast<size_t>(t.id)) != none)
          sums[call_of_[static_cast<size_t>(t.id)]] += t.seconds();
    to.calls.resize(calls_.size());
    for (size_t c = 0; c < sums.size(); ++c)
      to.calls[c].push_back(sums[c] / static_cast<double>(calls_[c].nodes.size()));
    if (long_round)
      to.runs.push_back(busy_seconds(s.run(inputs_, {.cancel = stop_.token()}).stats, device_));
  }

  void time(const session& tried, bool long_round, tuning_round& round) const {
    const int fewest = long_round ? 7 : 3, most = long_round ? 61 : 21;
    const double enough_ms = long_round ? 2000 : 400;
    samples usual, other;
    samples warm;
    add_run(tried, true, warm);
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < fewest || (i < most && milliseconds_since(begin) < enough_ms); ++i) {
      add_run(*usual_, long_round, usual);
      add_run(tried, long_round, other);
    }
    for (size_t c = 0; c < calls_.size(); ++c) {
      round.usual_s.push_back(median(usual.calls[c]));
      round.tried_s.push_back(median(other.calls[c]));
    }
    round.usual_run_s = median(usual.runs);
    round.tried_run_s = median(other.runs);
  }

  model_options args_;
  const std::string device_;
  const interrupts& stop_;
  engine engine_;
  const std::shared_ptr<kernel_choices> kernels_;
  std::optional<session> usual_;
  named_tensors inputs_, wanted_;
  std::vector<tunable_call> calls_;
  std::vector<size_t> call_of_; // by node
  tolerance allowed_;
};

tuned_device tune_device(const model_options& args, const device_info& device, double budget_s,
                         const interrupts& stop) {
  progress line("tuning " + device.name, args.shows_progress());
  const auto begin = std::chrono::steady_clock::now();
  tuning_session model(args, device.name, stop);
  tuned_device done{device.name, key_of(device), model.calls(), {}};
  done.found = tune(
      done.calls, [&](std::span<const size_t> ways, bool long_round) { return model.run(ways, long_round); },
      [&] { return 1 - milliseconds_since(begin) / (budget_s * 1e3); },
      [&](double rounds, double all) { line.show(rounds, all, "rounds"); });
  done.seconds = milliseconds_since(begin) * 1e-3;
  return done;
}

} // namespace

std::vector<tuned_device> tune_model(const model_options& args, double budget_s, const interrupts& stop) {
  std::vector<tuned_device> all;
  const bool whole =
      measure_each(different_devices(device_infos(engine(args.engine()))), [&](const device_info& device) {
        if (device.gpu)
          all.push_back(tune_device(args, device, budget_s, stop));
      });
  if (whole && all.empty())
    fail(errc::unsupported,
         "no GPU runs the model, and only GPUs have kernels to choose from; name others with --devices");
  return all;
}

namespace {

/// Seconds of all of a call's nodes that its choice saves.
double gain_of(const tuned_device& d, size_t call) {
  const tuned_call& t = d.found.calls[call];
  return (t.usual_s - t.seconds) * static_cast<double>(d.calls[call].nodes.size());
}

double usual_seconds(const tuned_device& d) {
  double sum = 0;
  for (size_t c = 0; c < d.calls.size(); ++c)
    sum += d.found.calls[c].usual_s * static_cast<double>(d.calls[c].nodes.size());
  return sum;
}

double gain_of(const tuned_device& d) {
  double sum = 0;
  for (size_t c = 0; c < d.calls.size(); ++c)
    sum += gain_of(d, c);
  return sum;
}

std::string cut(const std::string& text, size_t length) {
  return text.size() <= length ? text : text.substr(0, length - 2) + "..";
}

void print_call(const tuned_device& d, size_t c) {
  const tunable_call& call = d.calls[c];
  const tuned_call& t = d.found.calls[c];
  fmt::print("{:>5} {:56} {:40} {:9.2f}", call.nodes.size(), cut(call.what, 56), cut(call.ways[0].name, 40),
             t.usual_s * 1e6);
  if (t.way != 0)
    fmt::print("  {:40} {:9.2f} {:6.1f} %", cut(call.ways[t.way].name, 40), t.seconds * 1e6,
               100 * (1 - t.seconds / t.usual_s));
  fmt::print("\n");
}

void print_device(const tuned_device& d) {
  fmt::print("{} ({}): {} distinct calls with several kernels, {} of {} rounds in {:.1f} s\n", d.name,
             printable(d.device.description), d.calls.size(), d.found.rounds, d.found.all_rounds, d.seconds);
  fmt::print("{:>5} {:56} {:40} {:>9}  {:40} {:>9} {:>8}\n", "nodes", "call", "usual kernel", "µs", "chosen kernel",
             "µs", "gain");
  std::vector<size_t> order;
  for (size_t c = 0; c < d.calls.size(); ++c)
    order.push_back(c);
  std::ranges::stable_sort(order, std::greater<>(), [&](size_t c) {
    return d.found.calls[c].usual_s * static_cast<double>(d.calls[c].nodes.size());
  });
  for (const size_t c : order)
    print_call(d, c);
  const double usual = usual_seconds(d);
  fmt::print("these nodes: {:.3f} ms, {:.3f} ms with what is chosen", usual * 1e3, (usual - gain_of(d)) * 1e3);
  if (d.found.usual_run_s > 0)
    fmt::print("; the GPU in a run: {:.3f} ms, {:.3f} ms with it", d.found.usual_run_s * 1e3,
               d.found.tuned_run_s * 1e3);
  fmt::print("\n");
  if (!d.found.refused.empty())
    fmt::print("nothing is chosen: {}\n", printable(d.found.refused));
  for (const wrong_way& w : d.found.wrong)
    fmt::print("WRONG, never chosen: {} for {}: {}\n", d.calls[w.call].ways[w.way].name,
               printable(d.calls[w.call].what), printable(w.difference));
}

nlohmann::json calls_json(const tuned_device& d) {
  nlohmann::json rows = nlohmann::json::array();
  for (size_t c = 0; c < d.calls.size(); ++c) {
    const tuned_call& t = d.found.calls[c];
    rows.push_back({{"call", d.calls[c].what},
                    {"nodes", d.calls[c].nodes.size()},
                    {"ways", d.calls[c].ways.size()},
                    {"usual", d.calls[c].ways[0].name},
                    {"usual_us", t.usual_s * 1e6},
                    {"chosen", d.calls[c].ways[t.way].name},
                    {"chosen_us", t.seconds * 1e6},
                    {"is_usual", t.way == 0}});
  }
  return rows;
}

} // namespace

void print_tuned(const std::vector<tuned_device>& tuned) {
  for (const tuned_device& d : tuned)
    print_device(d);
}

nlohmann::json tuned_json(const std::vector<tuned_device>& tuned) {
  nlohmann::json all = nlohmann::json::array();
  for (const tuned_device& d : tuned) {
    nlohmann::json wrong = nlohmann::json::array();
    for (const wrong_way& w : d.found.wrong)
      wrong.push_back(
          {{"call", d.calls[w.call].what}, {"kernel", d.calls[w.call].ways[w.way].name}, {"difference", w.difference}});
    all.push_back({{"device", d.name},
                   {"seconds", d.seconds},
                   {"rounds", d.found.rounds},
                   {"all_rounds", d.found.all_rounds},
                   {"calls", calls_json(d)},
                   {"usual_ms", usual_seconds(d) * 1e3},
                   {"chosen_ms", (usual_seconds(d) - gain_of(d)) * 1e3},
                   {"usual_run_ms", d.found.usual_run_s * 1e3},
                   {"tuned_run_ms", d.found.tuned_run_s * 1e3},
                   {"refused", d.found.refused},
                   {"wrong", std::move(wrong)}});
  }
  return all;
}

} // namespace troupe::cli

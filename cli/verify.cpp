// troupe verify: whether a model gives the same answer on every device, alone and side by side, under every policy and
// strategy (only the strategy that is asked for, if one is).
//
// The first trial, the CPU with the model's own operators, is what the others are compared with. An element passes
// where it is within `--rtol` of it, or within `--atol` times the output's largest magnitude: sums that cancel are as
// good as their terms. Elements of 16 bits may be a step of their type apart. A strategy gets several requests at once,
// so that each of its replicas answers some though a request cannot be cut. Where something differs, it names operators
// of the model that turn a difference of rounding into a large one.
#include "cli/command.hpp"
#include "cli/compare.hpp"
#include "cli/progress.hpp"
#include "cli/strategy_options.hpp"

#include "base/printable.hpp"
#include "plan/place/policies.hpp"
#include "plan/show/idle_devices.hpp"
#include "plan/show/statistics.hpp"
#include "strategy/replica_sets.hpp"
#include "troupe/inspect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <set>

namespace troupe::cli {
namespace {

struct verify_arguments : model_options {
  std::optional<double> rtol, atol;

  /// A float16 has a thousand steps between powers of two, and each layer rounds to one of them.
  tolerance allowed() const {
    const bool half = precision == "fp16";
    return {.relative = rtol.value_or(half ? 1e-2 : 1e-3), .absolute = atol.value_or(half ? 1e-2 : 1e-4)};
  }
};

/// One way to run the model.
struct trial {
  std::string name;
  std::vector<std::string> devices;
  session_options session;
  bool is_alone = false; // one device, here or of another host, and no others
};

struct outcome {
  std::string name;
  std::map<std::string, int> nodes; // by device, views aside; of the first replica
  std::vector<uint64_t> pieces;     // by replica of a strategy
  double absolute = 0, relative = 0;
  std::vector<std::string> warnings;
  std::string difference; // what differs or went wrong; empty if it passed
  bool unsupported = false;
  std::vector<std::string> deciders; // of the model
};

std::vector<std::string> open_devices(const verify_arguments& args) {
  std::vector<std::string> names;
  for (const device_summary& d : engine(args.engine()).devices())
    names.push_back(d.name);
  return names;
}

/// How a device is asked for: an instance "cpu#1" of a physical device is that device.
std::string request_of(const std::string& name) {
  return name.substr(0, name.find('#'));
}

std::vector<trial> make_trials(const verify_arguments& args) {
  session_options base = args.session();
  base.strategy = strategy::none;
  session_options plain = base;
  plain.fuse = false;
  plain.precision = precision::fp32;
  std::vector<trial> trials{{"cpu, nothing fused", {"cpu"}, plain, true}, {"cpu", {"cpu"}, base, true}};
  std::vector<std::string> devices = open_devices(args);
  for (const std::string& device : devices) {
    const std::vector<std::string> alone{request_of(device)};
    const auto is_same = [&](const trial& t) { return t.devices == alone; };
    if (std::none_of(trials.begin(), trials.end(), is_same))
      trials.push_back({alone[0] + " alone", alone, base, true});
  }
  // One device twice is two devices to a plan.
  const std::vector<std::string> together =
      devices.size() > 1 ? args.devices : std::vector<std::string>{request_of(devices.at(0)) + "*2"};
  std::vector<strategy> wanted{args.strategy};
  if (args.has_one_plan()) {
    wanted.assign(strategies.begin(), strategies.end());
    if (!base.policy_plugin.empty())
      trials.push_back({fmt::format("{}, {}", fmt::join(together, "+"), base.policy_plugin), together, base});
    for (const policy_row& row : policies()) {
      if (row.small_only)
        continue;
      session_options options = base;
      options.policy = row.policy;
      options.policy_plugin.clear();
      if (!row.cuts_nodes) {
        trials.push_back({fmt::format("{}, {}", fmt::join(together, "+"), row.name), together, options});
        continue;
      }
      for (const int along : {-1, 1}) { // wherever that can be done, not only where it is fast
        options.split_along = along;
        trials.push_back(
            {fmt::format("{}, {} along {}", fmt::join(together, "+"), row.name, along < 0 ? "longest axes" : "dim 1"),
             together, options});
      }
    }
  }
  for (const strategy how : wanted) {
    session_options options = base;
    options.strategy = how;
    trials.push_back({fmt::format("{}, {}", fmt::join(together, "+"), to_string(how)), together, options});
  }
  return trials;
}

void compare_outputs(const named_tensors& got, const named_tensors& want, const tolerance& allowed, outcome& result) {
  for (const auto& [name, expected] : want) {
    const comparison c = compare(got.at(name), expected, on_scale_of(expected, allowed));
    result.absolute = std::max(result.absolute, c.largest_absolute);
    result.relative = std::max(result.relative, c.largest_relative);
    if (!c.difference.empty() && result.difference.empty())
      result.difference = fmt::format("'{}': {}", name, c.difference);
  }
}

/// Returns which operators of a model decide between values that may be all but equal: where the last bit of an element
/// is another, their results may be quite others.
std::vector<std::string> deciders_of(const graph& g) {
  std::vector<std::string> found;
  const std::map<std::string, size_t> operators = statistics_of(g).operators;
  for (const char* name : {"ArgMax", "ArgMin", "DynamicQuantizeLinear", "NonMaxSuppression", "QuantizeLinear", "TopK"})
    if (operators.contains(name))
      found.emplace_back(name);
  return found;
}

engine_options engine_of(const trial& t, const verify_arguments& args) {
  engine_options options = args.engine();
  options.devices = t.devices;
  if (!t.is_alone)
    return options;
  if (t.devices[0].find('/') == std::string::npos) // then all devices of all hosts would join
    options.hosts.clear();
  std::erase_if(options.memory, [&](const auto& limit) { return limit.first != t.devices[0]; });
  return options;
}

/// Runs a trial; `want` is filled by the first one.
outcome run_trial(const trial& t, const verify_arguments& args, named_tensors& inputs, named_tensors& want,
                  const std::stop_token& stop) {
  outcome result{.name = t.name};
  try {
    engine devices(engine_of(t, args));
    const session model = open_model(devices, args, t.session);
    if (inputs.empty())
      inputs = complete_inputs(model.inputs(), given_inputs(model, args), args.dim_values(), args.seed);
    const size_t requests = t.session.strategy == strategy::none ? 1 : 2 * devices.devices().size();
    std::vector<std::future<run_result>> runs;
    while (runs.size() < requests)
      runs.push_back(model.submit(inputs, {.cancel = stop}));
    const std::shared_ptr<const plan> used = plan_of(model, inputs);
    count_nodes(*used, result.nodes);
    if (want.empty())
      result.deciders = deciders_of(*used->given);
    if (t.is_alone) // beside others a device may well have nothing to do
      result.warnings = warnings_of(model, inputs);
    for (std::future<run_result>& run : runs) {
      named_tensors outputs = run.get().outputs;
      if (want.empty())
        want = std::move(outputs);
      else
        compare_outputs(outputs, want, args.allowed(), result);
    }
    if (t.session.strategy != strategy::none)
      for (const replica_stats& r : model.queue_stats().replicas)
        result.pieces.push_back(r.pieces);
  } catch (const error& e) {
    if (e.code() == errc::cancelled)
      throw;
    result.unsupported = e.code() == errc::unsupported;
    result.difference = e.what();
  }
  return result;
}

std::string nodes_text(const outcome& o) {
  std::string text;
  for (const auto& [device, count] : o.nodes)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", device, count);
  text += " nodes";
  if (!o.pieces.empty())
    text += fmt::format("; pieces by replica: {}", fmt::join(o.pieces, ", "));
  return text;
}

const char* verdict_of(const outcome& o) {
  return o.difference.empty() ? "same" : o.unsupported ? "unsupported" : "DIFFERS";
}

void print(const outcome& o) {
  fmt::print("{:11} {:9.2g} {:9.2g}  {} ({}){}{}\n", verdict_of(o), o.absolute, o.relative, o.name, nodes_text(o),
             o.difference.empty() ? "" : ": ", printable(o.difference));
  std::cout.flush();
}

nlohmann::json to_json(const outcome& o) {
  return {{"placement", o.name},       {"outcome", verdict_of(o)},       {"nodes", o.nodes},
          {"pieces", o.pieces},        {"largest_absolute", o.absolute}, {"largest_relative", o.relative},
          {"difference", o.difference}};
}

/// Runs the trials until Ctrl-C, printing each.
std::vector<outcome> run_trials(const verify_arguments& args, const interrupts& stop) {
  named_tensors inputs, want;
  std::vector<outcome> outcomes;
  std::set<std::string> warned;
  const std::vector<trial> trials = make_trials(args);
  progress line("verify", args.shows_progress());
  for (const trial& t : trials) {
    if (stop.requested())
      break;
    line.show(static_cast<double>(outcomes.size()), static_cast<double>(trials.size()), "placements");
    try {
      outcomes.push_back(run_trial(t, args, inputs, want, stop.token()));
    } catch (const error&) { // cancelled
      break;
    }
    line.clear();
    if (want.empty()) // nothing to compare with
      fail(errc::device_failed, "{}: {}", outcomes.back().name, outcomes.back().difference);
    for (const std::string& warning : outcomes.back().warnings)
      if (warned.insert(warning).second)
        fmt::print(stderr, "troupe: warning: {}\n", printable(warning));
    if (!args.json)
      print(outcomes.back());
  }
  return outcomes;
}

void verify_model(const verify_arguments& args) {
  const interrupts stop;
  if (!args.json)
    fmt::print("{:11} {:>9} {:>9}  placement\n", "", "absolute", "relative");
  const std::vector<outcome> outcomes = run_trials(args, stop);
  if (args.json) {
    nlohmann::json out = nlohmann::json::array();
    for (const outcome& o : outcomes)
      out.push_back(to_json(o));
    write_json(out);
  }
  stop.exit_if_requested();
  if (std::none_of(outcomes.begin(), outcomes.end(), [](const outcome& o) { return !o.difference.empty(); }))
    return;
  if (const std::vector<std::string>& deciders = outcomes.front().deciders; !args.json && !deciders.empty())
    fmt::print("note: this model has {}: what decides between values that are all but equal makes much of a "
               "difference of rounding before it\n",
               fmt::join(deciders, ", "));
  throw CLI::RuntimeError(1);
}

} // namespace

void add_verify(CLI::App& app) {
  auto args = std::make_shared<verify_arguments>();
  args->kernels = kernel_time::now;
  CLI::App* command = app.add_subcommand("verify", "Run a model on each device, and on all together under every policy "
                                                   "and strategy or that of --strategy, and compare "
                                                   "the answers");
  add_model_options(*command, *args);
  add_strategy_options(*command, *args);
  command->option_defaults()->group("Options");
  command->add_option("--rtol", args->rtol, "Relative tolerance (default 1e-3; 1e-2 with --precision fp16)")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--atol", args->atol,
                   "Absolute tolerance, in parts of an output's largest magnitude (default 1e-4; 1e-2 with "
                   "--precision fp16)")
      ->check(CLI::NonNegativeNumber);
  command->callback([args] { verify_model(*args); });
}

} // namespace troupe::cli

// troupe compare: runs what an experiment file lists, simulated, real or both, and says what is really faster.
#include "cli/adversary.hpp"
#include "cli/command.hpp"
#include "cli/progress.hpp"

#include "base/elapsed.hpp"
#include "cost/profile_file.hpp"
#include "experiments/result_tables.hpp"
#include "run/model.hpp"
#include "schedules/adversary.hpp"
#include "schedules/task_model.hpp"
#include "sim/arrival_times.hpp"
#include "sim/cluster.hpp"

#include <fmt/ranges.h>

#include <deque>
#include <iostream>
#include <thread>

namespace troupe::cli {
namespace {

using namespace experiments;

struct compare_arguments {
  std::filesystem::path file, csv, page, profile;
  std::string policy_plugin, strategy_plugin;
  double confidence = 0.95;
  adversary_arguments adversary;
  bool json = false, quiet = false;
};

/// Runs settings, one repetition at a time. Models, engines and sessions are opened once.
class setting_runner {
public:
  setting_runner(const experiment& what, const compare_arguments& args) : what_(what), args_(args) {}

  /// Returns the seconds from the first request to the last answer. Throws what the run throws.
  double seconds(const setting& s, size_t number, size_t repetition) {
    return s.mode == mode::real ? measured(s, number, repetition) : simulated(s, repetition);
  }

private:
  struct loaded {
    built_model source;
    std::vector<value_info> inputs;
  };

  const loaded& model_of(const setting& s) {
    auto found = models_.find(s.model);
    if (found == models_.end()) {
      built_model source = load_or_make(s.model);
      found = models_.emplace(s.model, loaded{source, make_model(source.source(), {}, 0)->inputs}).first;
    }
    return found->second;
  }

  const named_tensors& inputs_of(const setting& s) {
    const auto [found, is_new] = inputs_.try_emplace({s.model, s.dims});
    if (is_new)
      found->second = complete_inputs(model_of(s).inputs, {}, s.dims, what_.seed);
    return found->second;
  }

  engine& engine_of(const device_list& devices) {
    auto& made = engines_[fmt::format("{}", devices)];
    if (!made)
      made = std::make_unique<engine>(
          engine_options{.devices = devices, .kernels = kernel_time::now, .profile_file = args_.profile.string()});
    return *made;
  }

  session_options options_of(const setting& s) const {
    session_options options{.policy = s.policy, .strategy = s.strategy};
    if (s.policy == placement_policy::plug_in)
      options.policy_plugin = args_.policy_plugin;
    if (s.strategy == strategy::plug_in)
      options.strategy_plugin = args_.strategy_plugin;
    if (s.strategy == strategy::none)
      options.dims = s.dims;
    return options;
  }

  double simulated(const setting& s, size_t repetition) {
    simulation_options how{.profile_file = args_.profile.string(),
                           .session = options_of(s),
                           .requests = what_.requests,
                           .arrivals = what_.arrivals,
                           .noise = what_.noise,
                           .seed = what_.seed + repetition};
    if (const auto* cluster = std::get_if<std::filesystem::path>(&s.where))
      how.cluster_file = cluster->string();
    else
      how.cluster_text = sim::write_cluster(sim::captured(device_infos(engine_of(std::get<device_list>(s.where)))));
    const simulation_report r = simulate(model_of(s).source, inputs_of(s), how);
    if (r.failed > 0)
      fail(errc::device_failed, "{} of {} requests failed: {}", r.failed, r.requests, r.first_failure);
    return r.makespan_ms * 1e-3;
  }

  double measured(const setting& s, size_t number, size_t repetition) {
    auto found = sessions_.find(number);
    const loaded& m = model_of(s);
    const named_tensors& inputs = inputs_of(s);
    if (found == sessions_.end()) {
      found = sessions_.emplace(number, engine_of(std::get<device_list>(s.where)).load(m.source, options_of(s))).first;
      found->second.run(inputs); // plans and kernels are made
    }
    const session& model = found->second;
    model.run(inputs); // not timed: after another setting's turn
    return what_.arrivals.how == arrivals::process::closed ? closed(model, inputs)
                                                           : at_times(model, inputs, what_.seed + repetition);
  }

  double closed(const session& model, const named_tensors& inputs) const {
    std::deque<std::future<run_result>> under_way;
    const auto begin = std::chrono::steady_clock::now();
    for (size_t i = 0; i < what_.requests; ++i) {
      if (under_way.size() == what_.arrivals.in_flight) {
        under_way.front().get();
        under_way.pop_front();
      }
      under_way.push_back(model.run_async(inputs));
    }
    for (auto& last : under_way)
      last.get();
    return milliseconds_since(begin) * 1e-3;
  }

  double at_times(const session& model, const named_tensors& inputs, uint64_t seed) const {
    std::vector<std::future<run_result>> all;
    const auto begin = std::chrono::steady_clock::now();
    for (const double at : sim::arrival_times(what_.arrivals, what_.requests, seed)) {
      std::this_thread::sleep_until(begin + std::chrono::duration<double>(at));
      all.push_back(model.run_async(inputs));
    }
    for (auto& each : all)
      each.get();
    return milliseconds_since(begin) * 1e-3;
  }

  const experiment& what_;
  const compare_arguments& args_;
  std::map<std::filesystem::path, loaded> models_;
  std::map<std::pair<std::filesystem::path, bindings>, named_tensors> inputs_;
  std::map<std::string, std::unique_ptr<engine>> engines_;
  std::map<size_t, session> sessions_; // by setting
};

/// Runs all settings in turns; a setting that cannot run is told and left out from then on.
void run_all(results& all, const compare_arguments& args) {
  setting_runner runner(all.what, args);
  std::vector<bool> broken(all.what.settings.size(), false);
  progress line("comparing", !args.json && !args.quiet);
  size_t done = 0;
  const size_t runs = all.what.repetitions * all.what.settings.size();
  for (size_t repetition = 0; repetition < all.what.repetitions; ++repetition)
    for (size_t s = 0; s < all.what.settings.size(); ++s) {
      line.show(static_cast<double>(done++), static_cast<double>(runs), "runs");
      if (broken[s])
        continue;
      const failure why = capture([&] {
        all.rows.push_back({s, repetition, runner.seconds(all.what.settings[s], s, repetition)});
      });
      if (why.failed()) {
        all.problems.push_back({s, repetition, why.message});
        broken[s] = true;
      }
    }
}

/// Checks that a library is named for each plug-in that the experiment lists, before anything takes its time.
void check_plugins(const compare_arguments& args, const experiment& what) {
  const auto lists = [&](auto is_one) { return std::any_of(what.settings.begin(), what.settings.end(), is_one); };
  if (args.policy_plugin.empty() && lists([](const setting& s) { return s.policy == placement_policy::plug_in; }))
    throw CLI::RequiresError("the policy 'plug-in' of the experiment", "--policy-plugin");
  if (args.strategy_plugin.empty() && lists([](const setting& s) { return s.strategy == strategy::plug_in; }))
    throw CLI::RequiresError("the strategy 'plug-in' of the experiment", "--strategy-plugin");
}

/// Notes what is needed to do it all again.
provenance record_all(const compare_arguments& args, const experiment& what) {
  provenance made{.versions = {{"troupe", TROUPE_VERSION}}, .files = {record_of(args.file)}};
  std::set<std::filesystem::path> files;
  for (const setting& s : what.settings) {
    if (const auto graph = task_graph_file(s.model.string()))
      files.insert(*graph);
    else if (!names_task_graph(s.model.string()))
      files.insert(model_file(s.model));
    if (const auto* cluster = std::get_if<std::filesystem::path>(&s.where))
      files.insert(*cluster);
  }
  if (const auto profile = args.profile.empty() ? profile_path() : args.profile; std::filesystem::exists(profile))
    files.insert(profile);
  for (const std::string& library : {args.policy_plugin, args.strategy_plugin})
    if (!library.empty())
      files.insert(library);
  for (const auto& file : files)
    made.files.push_back(record_of(file));
  return made;
}

void compare_settings(const compare_arguments& args, std::string_view text) {
  results all{.what = parse_experiment(text, args.file.string(), args.file.parent_path()), .rows = {}};
  check_plugins(args, all.what);
  all.made_with = record_all(args, all.what);
  run_all(all, args);
  const analysis found = analyse(all, args.confidence);
  if (!args.csv.empty())
    write_and_tell(args.csv, to_csv(all, found), "times");
  if (!args.page.empty())
    write_and_tell(args.page, to_page(all, found), "page");
  std::cout << (args.json ? to_json(all, found) + '\n' : to_text(all, found));
  if (all.rows.empty())
    fail(errc::device_failed, "no setting could be run: {}", all.problems.front().what);
}

void compare(const compare_arguments& args) {
  if (!args.adversary.policies.empty())
    return search_instance(args.adversary, args.json);
  if (args.file.empty())
    throw CLI::RequiredError("an experiment, or --adversary");
  const std::string text = read_experiment_text(args.file); // once: it may be a pipe
  if (is_instance(text))
    return print_instance(text, args.json);
  compare_settings(args, text);
}

} // namespace

void add_compare(CLI::App& app) {
  auto args = std::make_shared<compare_arguments>();
  CLI::App* command = app.add_subcommand(
      "compare", "Run what an experiment file lists (models, devices or clusters, policies, strategies), "
                 "simulated, real or both, and tell what is really faster");
  CLI::Option* experiment =
      command
          ->add_option("experiment", args->file,
                       "The experiment, JSON (src/experiments/README.md has the format), or what --save wrote")
          ->type_name("FILE");
  command->add_option("--csv", args->csv, "File for all times, one a line")->type_name("FILE");
  command->add_option("--page", args->page, "File for a page with plots and tables (HTML, needs nothing else)")
      ->type_name("FILE");
  command->add_option("--profile", args->profile, "Measured profiles of devices (default: those of this user)")
      ->type_name("FILE");
  command->add_option("--policy-plugin", args->policy_plugin, "The library of the policy 'plug-in' (troupe/policy.hpp)")
      ->type_name("FILE");
  command
      ->add_option("--strategy-plugin", args->strategy_plugin,
                   "The library of the strategy 'plug-in' (troupe/strategy.hpp)")
      ->type_name("FILE");
  command->add_option("--confidence", args->confidence, "Of intervals and verdicts (default 0.95)")
      ->check(CLI::Range(0.5, 0.9999));
  CLI::Option* adversary =
      command
          ->add_option("--adversary", args->adversary.policies,
                       "Two policies, A,B, in the place of an experiment: search a small task graph and devices on "
                       "which A loses most to B")
          ->type_name("POLICY")
          ->delimiter(',')
          ->expected(2)
          ->excludes(experiment);
  command->add_option("--seed", args->adversary.seed, "Of that search (default 1)")->needs(adversary);
  command->add_option("--save", args->adversary.save, "File for what it finds, which compare then takes")
      ->type_name("FILE")
      ->needs(adversary);
  command->add_flag("--json", args->json, "Print JSON, with versions and hashes of all files");
  command->add_flag("--quiet", args->quiet, "Show no progress");
  command->callback([args] { compare(*args); });
}

} // namespace troupe::cli

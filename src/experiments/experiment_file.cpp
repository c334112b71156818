#include "experiments/experiment_file.hpp"

#include "base/json_problem.hpp"
#include "base/json_reader.hpp"
#include "base/text_file.hpp"
#include "plan/place/policies.hpp"
#include "schedules/task_model.hpp"
#include "sim/arrival_times.hpp"
#include "strategy/replica_sets.hpp"

#include <algorithm>

namespace troupe::experiments {
namespace {

constexpr int file_version = 1;
constexpr int64_t max_file_bytes = int64_t{1} << 24;
constexpr size_t most_listed = 1000;
/// Each setting has a copy of its dims and devices: these bound what all of them take.
constexpr size_t most_dims = 64, most_devices = 64;
constexpr size_t longest_name = 256, longest_text = 4096;
constexpr int most_levels = 16;
constexpr int64_t largest_dim = int64_t{1} << 40;

/// What the file lists, before it is combined.
struct lists {
  std::vector<bindings> dims;
  std::vector<std::pair<std::filesystem::path, std::vector<bindings>>> models; // with no dims of their own: those above
  std::vector<target> targets;
  std::vector<placement_policy> policies;
  std::vector<troupe::strategy> strategies;
  std::vector<experiments::mode> modes;
};

/// Returns the elements of a list, which has at least one and at most `most`.
std::vector<json_reader> list_of(const json_reader& at, size_t most) {
  if (at.raw().is_array() && (at.raw().empty() || at.raw().size() > most))
    at.complain("a list of {}; 1 to {} are allowed", at.raw().size(), most);
  return at.list();
}

std::string text_of(const json_reader& at, size_t longest = longest_text) {
  std::string text = at.text();
  if (text.empty() || text.size() > longest)
    at.complain("a text of {} bytes; 1 to {} are allowed", text.size(), longest);
  return text;
}

nlohmann::json parse_json(std::string_view text) {
  const auto check_depth = [](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    if (depth > most_levels)
      fail(errc::invalid_argument, "more than {} lists and objects inside each other", most_levels);
    return true;
  };
  try {
    return nlohmann::json::parse(text, check_depth);
  } catch (const nlohmann::json::exception& e) {
    fail(errc::invalid_argument, "not JSON: {}", json_problem(text, e));
  }
}

bindings read_dims(const json_reader& at) {
  bindings dims;
  if (!at.raw().is_object() || at.raw().size() > most_dims)
    at.complain("an object of at most {} dims is needed", most_dims);
  for (const auto& [name, unused] : at.raw().items()) {
    if (name.size() > longest_name)
      at.complain("a name of {} characters; at most {} are allowed", name.size(), longest_name);
    dims[name] = at[name.c_str()].integer(0, largest_dim);
  }
  return dims;
}

/// One object, or several of which each is tried.
std::vector<bindings> read_dim_sets(const json_reader& at) {
  if (at.raw().is_object())
    return {read_dims(at)};
  std::vector<bindings> sets;
  for (const json_reader& one : list_of(at, most_listed))
    sets.push_back(read_dims(one));
  return sets;
}

/// A file of the experiment's folder, or the name of a task graph, which is tried.
std::filesystem::path read_model_name(const json_reader& at, const std::filesystem::path& folder) {
  std::string name = text_of(at);
  if (!names_task_graph(name))
    return folder / name;
  if (const auto file = task_graph_file(name))
    name = "graph:" + (folder / *file).string();
  try {
    read_task_graph(name);
  } catch (const error& e) {
    at.complain("{}", e.what());
  }
  return name;
}

auto read_models(const json_reader& at, const std::filesystem::path& folder) {
  decltype(lists::models) models;
  for (const json_reader& one : list_of(at, most_listed)) {
    if (one.raw().is_string()) {
      models.emplace_back(read_model_name(one, folder), std::vector<bindings>{});
      continue;
    }
    one.allow({"file", "dims"});
    models.emplace_back(read_model_name(one["file"], folder),
                        one.has("dims") ? read_dim_sets(one["dims"]) : std::vector<bindings>{});
  }
  return models;
}

device_list read_devices(const json_reader& at) {
  if (at.raw().is_string())
    return {text_of(at, longest_name)};
  device_list devices;
  for (const json_reader& one : list_of(at, most_devices))
    devices.push_back(text_of(one, longest_name));
  return devices;
}

std::vector<target> read_targets(const json_reader& root, const std::filesystem::path& folder) {
  std::vector<target> targets;
  if (root.has("clusters"))
    for (const json_reader& at : list_of(root["clusters"], most_listed))
      targets.emplace_back(folder / text_of(at));
  if (root.has("devices"))
    for (const json_reader& at : list_of(root["devices"], most_listed))
      targets.emplace_back(read_devices(at));
  if (targets.empty())
    root.complain("'clusters' (files) or 'devices' (lists of names) is needed");
  return targets;
}

/// Calls `parse`; its error gets the place.
template <class Parse>
auto named(const json_reader& at, Parse parse) {
  const std::string name = text_of(at);
  try {
    return parse(name);
  } catch (const error& e) {
    at.complain("{}", e.what());
  }
}

/// A file never says which library: the one who runs it does.
constexpr std::string_view plug_in_name = "plug-in";

troupe::strategy strategy_named(const std::string& name) {
  if (name == plug_in_name)
    return strategy::plug_in;
  if (name == to_string(strategy::standard))
    fail(errc::invalid_argument, "the strategy '{}' takes another one by itself: name the one to be measured", name);
  try {
    return parse_strategy(name);
  } catch (const error& e) {
    fail(errc::invalid_argument, "{}, {}", e.what(), plug_in_name);
  }
}

placement_policy policy_named(const std::string& name) {
  if (name == plug_in_name)
    return placement_policy::plug_in;
  try {
    return parse_policy(name);
  } catch (const error& e) {
    fail(errc::invalid_argument, "{}, {}", e.what(), plug_in_name);
  }
}

/// Reads a list of names.
template <class T>
std::vector<T> read_named(const json_reader& at, T (*parse)(const std::string& name)) {
  std::vector<T> all;
  for (const json_reader& one : list_of(at, most_listed))
    all.push_back(named(one, parse));
  return all;
}

std::vector<experiments::mode> read_modes(const json_reader& at) {
  const std::string name = text_of(at);
  if (name == "simulated")
    return {mode::simulated};
  if (name == "real")
    return {mode::real};
  if (name != "both")
    at.complain("there is no mode '{}'; there are simulated, real, both", name);
  return {mode::simulated, mode::real};
}

/// Times in seconds: a list, or a file of the experiment's folder with one a line.
arrivals read_times(const json_reader& at, const std::filesystem::path& folder) {
  if (at.raw().is_string())
    return named(at, [&](const std::string& name) {
      arrivals listed = troupe::read_arrivals((folder / name).string());
      if (!listed.rows.empty() || !listed.deadlines_s.empty())
        fail(errc::invalid_argument, "'{}' has rows or deadlines: experiments take times alone", name);
      return listed;
    });
  arrivals a{.how = arrivals::process::listed};
  for (const json_reader& one : list_of(at, sim::most_arrivals))
    a.times_s.push_back(one.number(a.times_s.empty() ? 0 : a.times_s.back(), sim::latest_arrival_s));
  return a;
}

void read_requests(const json_reader& at, const std::filesystem::path& folder, experiment& e) {
  constexpr int64_t most_requests = 100'000'000;
  const auto count = [](const json_reader& j) { return static_cast<size_t>(j.integer(1, most_requests)); };
  if (!at.raw().is_object()) {
    e.requests = count(at);
    return;
  }
  at.allow({"count", "in_flight", "per_second", "times"});
  if (at.has("times")) {
    if (at.raw().size() > 1)
      at.complain("'times' stands alone: it says how many requests there are and when each comes");
    e.arrivals = read_times(at["times"], folder);
    e.requests = e.arrivals.times_s.size();
    return;
  }
  e.requests = count(at["count"]);
  if (at.has("in_flight") && at.has("per_second"))
    at.complain(
        "'in_flight' and 'per_second' exclude each other: requests come when others are answered, or at a rate");
  if (at.has("in_flight"))
    e.arrivals.in_flight = count(at["in_flight"]);
  if (at.has("per_second"))
    e.arrivals = {.how = arrivals::process::poisson, .per_second = at["per_second"].number(1e-6, 1e9)};
}

/// The strategy and policy that others are compared with.
struct baseline_choice {
  placement_policy policy;
  troupe::strategy strategy;
};

template <class T>
void expect_listed(const json_reader& at, T value, const std::vector<T>& listed) {
  if (std::find(listed.begin(), listed.end(), value) == listed.end())
    at.complain("'{}' is not listed in this file, so nothing can be compared with it", text_of(at));
}

baseline_choice read_baseline(const json_reader& root, const lists& all) {
  baseline_choice chosen{all.policies[0], all.strategies[0]};
  if (!root.has("baseline"))
    return chosen;
  const json_reader at = root["baseline"];
  at.allow({"policy", "strategy"});
  if (at.has("policy")) {
    chosen.policy = named(at["policy"], policy_named);
    expect_listed(at["policy"], chosen.policy, all.policies);
  }
  if (at.has("strategy")) {
    chosen.strategy = named(at["strategy"], strategy_named);
    expect_listed(at["strategy"], chosen.strategy, all.strategies);
  }
  return chosen;
}

/// Adds the settings of one group, the baseline first. Policies of which a strategy makes the same are one setting.
void add_group(std::vector<setting>& settings, const setting& common, const lists& all, const baseline_choice& base) {
  const size_t first = settings.size();
  const auto add = [&](troupe::strategy how, placement_policy wanted) {
    const placement_policy policy = policy_of(how, wanted);
    const auto same = [&](const setting& s) { return s.strategy == how && s.policy == policy; };
    if (std::any_of(settings.begin() + static_cast<std::ptrdiff_t>(first), settings.end(), same))
      return;
    setting& s = settings.emplace_back(common);
    s.strategy = how;
    s.policy = policy;
    s.baseline = first;
  };
  add(base.strategy, base.policy);
  for (const troupe::strategy how : all.strategies)
    for (const placement_policy policy : all.policies)
      add(how, policy);
}

/// Clusters of files are never real, neither are made-up graphs.
bool fits(const std::filesystem::path& model, const target& where, experiments::mode m) {
  return m == mode::simulated || (std::holds_alternative<device_list>(where) && !names_task_graph(model.string()));
}

std::vector<setting> combine(const json_reader& root, const lists& all, const baseline_choice& base) {
  std::vector<setting> settings;
  for (const auto& [model, own_dims] : all.models)
    for (const bindings& dims : own_dims.empty() ? all.dims : own_dims)
      for (const target& where : all.targets)
        for (const experiments::mode m : all.modes)
          if (fits(model, where, m)) {
            add_group(settings, {.model = model, .dims = dims, .where = where, .mode = m}, all, base);
            if (settings.size() > max_settings)
              root.complain("more than {} combinations of models, dims, targets, policies and strategies",
                            max_settings);
          }
  return settings;
}

void check_modes(const json_reader& root, const lists& all) {
  if (all.modes.back() == mode::simulated)
    return;
  const auto exists = [](const target& t) { return std::holds_alternative<device_list>(t); };
  if (std::none_of(all.targets.begin(), all.targets.end(), exists))
    root["mode"].complain("real runs need 'devices': 'clusters' are files that can only be simulated");
  if (all.modes.size() > 1)
    return;
  if (std::any_of(all.models.begin(), all.models.end(),
                  [](const auto& m) { return names_task_graph(m.first.string()); }))
    root["models"].complain("made-up graphs can only be simulated; mode 'real' allows model files alone");
  if (root.has("clusters"))
    root["clusters"].complain("clusters of files can only be simulated; mode 'real' allows 'devices' alone");
  if (root.has("noise"))
    root["noise"].complain("noise is simulated; mode 'real' has its own");
}

void read_numbers(const json_reader& root, const std::filesystem::path& folder, experiment& e) {
  if (root.has("requests"))
    read_requests(root["requests"], folder, e);
  if (root.has("repetitions"))
    e.repetitions = static_cast<size_t>(root["repetitions"].integer(1, max_repetitions));
  if (root.has("seed"))
    e.seed = static_cast<uint64_t>(root["seed"].integer(0, INT64_MAX / 2));
  if (root.has("noise"))
    e.noise = root["noise"].number(0, 10);
}

experiment read(const json_reader& root, const std::string& source, const std::filesystem::path& folder) {
  root.allow({"troupe_experiment", "name", "models", "dims", "clusters", "devices", "policies", "strategies",
              "requests", "repetitions", "seed", "noise", "mode", "baseline"});
  root["troupe_experiment"].integer(file_version, file_version);
  lists all{.dims = root.has("dims") ? read_dim_sets(root["dims"]) : std::vector{bindings{}},
            .models = read_models(root["models"], folder),
            .targets = read_targets(root, folder)};
  all.policies =
      root.has("policies") ? read_named(root["policies"], policy_named) : std::vector{placement_policy::single};
  all.strategies =
      root.has("strategies") ? read_named(root["strategies"], strategy_named) : std::vector{strategy::none};
  all.modes = root.has("mode") ? read_modes(root["mode"]) : std::vector{mode::simulated};
  check_modes(root, all);
  experiment e{.name = root.has("name") ? text_of(root["name"]) : source};
  read_numbers(root, folder, e);
  e.settings = combine(root, all, read_baseline(root, all));
  if (e.settings.size() * e.repetitions > max_rows)
    root.complain("{} settings of {} repetitions each are more than {} runs", e.settings.size(), e.repetitions,
                  max_rows);
  return e;
}

} // namespace

std::string_view to_string(mode m) {
  return m == mode::real ? "real" : "simulated";
}

std::string to_string(const target& t) {
  const auto* devices = std::get_if<device_list>(&t);
  return devices ? fmt::format("{}", fmt::join(*devices, ",")) : std::get<std::filesystem::path>(t).filename().string();
}

experiment parse_experiment(std::string_view text, const std::string& source, const std::filesystem::path& folder) try {
  const nlohmann::json parsed = parse_json(text);
  return read(json_reader(parsed, ""), source, folder);
} catch (const error& e) {
  fail(e.code(), "{}: {}", source, e.what());
}

std::string read_experiment_text(const std::filesystem::path& file) {
  return read_text(file, max_file_bytes, fmt::format("the experiment '{}'", file.string()));
}

experiment read_experiment(const std::filesystem::path& file) {
  return parse_experiment(read_experiment_text(file), file.string(), file.parent_path());
}

} // namespace troupe::experiments

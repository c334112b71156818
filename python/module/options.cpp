#include "options.hpp"

#include "policy.hpp"
#include "strategy.hpp"

#include "troupe/option_words.hpp"

#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>

namespace troupe::python {
namespace {

template <class Options>
struct option {
  const char* name;
  void (*set)(Options&, const char* name, const py::handle&);
};

template <class Options, size_t Size>
Options options_of(const option<Options> (&known)[Size], const char* what, const py::dict& given) {
  Options made;
  for (const auto& [key, value] : given) {
    const std::string name = py::str(key);
    const auto* row = std::find_if(std::begin(known), std::end(known), [&](const auto& o) { return name == o.name; });
    if (row == std::end(known)) {
      std::string names;
      for (const auto& o : known)
        names.append(names.empty() ? "" : ", ").append(o.name);
      std::string message = what;
      message.append(" has no option '").append(name).append("'; they are: ").append(names);
      throw error(errc::invalid_argument, message);
    }
    try {
      row->set(made, row->name, value);
    } catch (const py::cast_error&) {
      throw error(errc::invalid_argument,
                  std::string(what) + ": option '" + name + "' cannot be " + std::string(py::repr(value)));
    }
  }
  return made;
}

/// Queues wait and answer in microseconds; a century is without end.
std::chrono::microseconds microseconds_of(const py::handle& seconds) {
  constexpr double longest = 3e9;
  const auto given = seconds.cast<double>();
  if (!(given >= 0))
    throw error(errc::invalid_argument, "a time of " + std::to_string(given) + " seconds");
  return std::chrono::microseconds(static_cast<int64_t>(std::ceil(std::min(given, longest) * 1e6)));
}

/// Returns structs of members of these types, which Python gives as tuples.
template <class Struct, class... Members>
std::vector<Struct> structs_of(const py::handle& v) {
  std::vector<Struct> all;
  for (auto& members : v.cast<std::vector<std::tuple<Members...>>>())
    all.push_back(std::apply([](auto&... each) { return Struct{std::move(each)...}; }, members));
  return all;
}

/// Of tuples (output, axis, start, end); None: from the first, up to the last.
std::vector<output_slice> slices_of(const py::handle& v) {
  using bound = std::optional<int64_t>;
  std::vector<output_slice> slices;
  for (auto& [output, axis, start, end] : v.cast<std::vector<std::tuple<std::string, int64_t, bound, bound>>>())
    slices.push_back({output, axis, start.value_or(0), end.value_or(INT64_MAX)});
  return slices;
}

// Rows set a member of the options, or of a struct in them, by the members that lead there: o.*a.*b.

template <auto... Path, class Options>
auto& member(Options& o) {
  return (o.*....*Path);
}

template <auto... Path, class Options>
void set(Options& o, const char*, const py::handle& v) {
  auto& value = member<Path...>(o);
  value = v.cast<std::remove_reference_t<decltype(value)>>();
}

template <auto Made, auto... Path, class Options>
void set_made(Options& o, const char*, const py::handle& v) {
  member<Path...>(o) = Made(v);
}

template <const auto& Words, auto... Path, class Options>
void set_word(Options& o, const char* name, const py::handle& v) {
  member<Path...>(o) = value_of(Words, name, v.cast<std::string>());
}

/// A word, or what of Python is asked in a plug-in's place.
template <const auto& Words, auto Word, auto Plugin, auto OwnOf>
void set_word_or_own(given_session& o, const char* name, const py::handle& v) {
  if (py::isinstance<py::str>(v))
    return set_word<Words, Word>(o, name, v);
  const auto own = OwnOf(v);
  o.*Plugin = own->handle();
  o.own.push_back(own);
}

using engine_row = option<engine_options>;
constexpr engine_row engine_rows[] = {
    {"devices", set<&engine_options::devices>},
    {"hosts", set<&engine_options::hosts>},
    {"certificate", set<&engine_options::credentials, &host_credentials::certificate>},
    {"key", set<&engine_options::credentials, &host_credentials::key>},
    {"ca", set<&engine_options::credentials, &host_credentials::ca>},
    {"insecure", set<&engine_options::credentials, &host_credentials::insecure>},
    {"completion", set_word<completion_words, &engine_options::completion>},
    {"kernels", set_word<kernel_words, &engine_options::kernels>},
    {"scheduler_threads", set<&engine_options::scheduler_threads>},
    {"cpu_threads", set<&engine_options::cpu_threads>},
    {"device_timeout",
     [](engine_options& o, const char*, const py::handle& v) { o.device_timeout = milliseconds_of(v.cast<double>()); }},
    {"memory", set<&engine_options::memory>},
    {"profile_file", set<&engine_options::profile_file>},
    {"record", set<&engine_options::recorder, &recorder_options::folder>},
    {"record_memory", set<&engine_options::recorder, &recorder_options::memory>},
};

using session_row = option<given_session>;
constexpr session_row session_rows[] = {
    {"policy", set_word_or_own<policy_words, &given_session::policy, &given_session::policy_plugin, own_policy_of>},
    {"policy_plugin", set<&given_session::policy_plugin>},
    {"split_along", [](given_session& o, const char*, const py::handle& v) { o.split_along = v.cast<int>(); }},
    {"devices", set<&given_session::devices>},
    {"strategy",
     set_word_or_own<strategy_words, &given_session::strategy, &given_session::strategy_plugin, own_strategy_of>},
    {"strategy_plugin", set<&given_session::strategy_plugin>},
    {"micro_batch", set<&given_session::stream, &stream_options::micro_batch>},
    {"depth", set<&given_session::stream, &stream_options::depth>},
    {"schedule", set_word<schedule_words, &given_session::stream, &stream_options::schedule>},
    {"shares", set_word<share_words, &given_session::stream, &stream_options::shares>},
    {"max_batch", set<&given_session::stream, &stream_options::max_batch>},
    {"max_delay", set_made<microseconds_of, &given_session::stream, &stream_options::max_delay>},
    {"queue_limit", set<&given_session::stream, &stream_options::queue_limit>},
    {"ordered", set<&given_session::stream, &stream_options::ordered>},
    {"goal", set_word<objective_words, &given_session::choice, &choice_options::goal>},
    {"max_devices", set<&given_session::choice, &choice_options::max_devices>},
    {"max_memory", set<&given_session::choice, &choice_options::max_memory>},
    {"max_latency", set_made<microseconds_of, &given_session::choice, &choice_options::max_latency>},
    {"pins", set_made<structs_of<placement_pin, std::string, std::string>, &given_session::pins>},
    {"plan_file", set<&given_session::plan_file>},
    {"fuse", set<&given_session::fuse>},
    {"precision", set_word<precision_words, &given_session::precision>},
    {"outputs", set<&given_session::outputs>},
    {"output_slices", set_made<slices_of, &given_session::output_slices>},
    {"dims", set<&given_session::dims>},
};

using simulation_row = option<given_simulation>;
constexpr simulation_row simulation_rows[] = {
    {"cluster", set<&given_simulation::cluster_text>},
    {"profile_file", set<&given_simulation::profile_file>},
    {"session",
     [](given_simulation& o, const char*, const py::handle& v) {
       const given_session session = session_options_of(py::reinterpret_borrow<py::dict>(v));
       o.session = session;
       o.own = session.own;
     }},
    {"task_seconds", set<&given_simulation::task_seconds>},
    {"requests", set<&given_simulation::requests>},
    {"warm_up", set<&given_simulation::warm_up>},
    {"in_flight", set<&given_simulation::arrivals, &arrivals::in_flight>},
    {"per_second",
     [](given_simulation& o, const char*, const py::handle& v) {
       o.arrivals.how = arrivals::process::poisson;
       o.arrivals.per_second = v.cast<double>();
     }},
    {"times_s",
     [](given_simulation& o, const char*, const py::handle& v) {
       o.arrivals.how = arrivals::process::listed;
       o.arrivals.times_s = v.cast<std::vector<double>>();
     }},
    {"rows", set<&given_simulation::arrivals, &arrivals::rows>},
    {"deadlines_s", set<&given_simulation::arrivals, &arrivals::deadlines_s>},
    {"losses", set_made<structs_of<simulated_loss, std::string, double, double>, &given_simulation::losses>},
    {"speeds", set_made<structs_of<simulated_speed, std::string, double, double>, &given_simulation::speeds>},
    {"noise", set<&given_simulation::noise>},
    {"seed", set<&given_simulation::seed>},
};

} // namespace

given_simulation simulation_options_of(const py::dict& given) {
  return options_of(simulation_rows, "a simulation", given);
}

engine_options engine_options_of(const py::dict& given) {
  return options_of(engine_rows, "an engine", given);
}

given_session session_options_of(const py::dict& given) {
  return options_of(session_rows, "a session", given);
}

std::chrono::milliseconds milliseconds_of(double seconds) {
  const double ms = std::ceil(seconds * 1000);
  if (!(ms >= 0))
    throw error(errc::invalid_argument, "a time of " + std::to_string(seconds) + " seconds");
  return ms < 1e15 ? std::chrono::milliseconds(static_cast<int64_t>(ms)) : std::chrono::milliseconds::max();
}

std::string word_of(strategy how) {
  return std::string(text_of(strategy_words, how));
}

std::string word_of(placement_policy policy) {
  return std::string(text_of(policy_words, policy));
}

} // namespace troupe::python

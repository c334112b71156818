#include "options.hpp"

#include "policy.hpp"

#include "troupe/option_words.hpp"

#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>

namespace troupe::python {
namespace {

template <class Options>
struct option {
  const char* name;
  void (*set)(Options&, const py::handle&);
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
      row->set(made, value);
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

std::vector<std::string> texts(const py::handle& v) {
  return v.cast<std::vector<std::string>>();
}

std::vector<placement_pin> pins_of(const py::handle& v) {
  std::vector<placement_pin> pins;
  for (auto& [pattern, device] : v.cast<std::vector<std::pair<std::string, std::string>>>())
    pins.push_back({pattern, device});
  return pins;
}

using engine_row = option<engine_options>;
constexpr engine_row engine_rows[] = {
    {"devices", [](engine_options& o, const py::handle& v) { o.devices = texts(v); }},
    {"hosts", [](engine_options& o, const py::handle& v) { o.hosts = texts(v); }},
    {"certificate", [](engine_options& o, const py::handle& v) { o.credentials.certificate = v.cast<std::string>(); }},
    {"key", [](engine_options& o, const py::handle& v) { o.credentials.key = v.cast<std::string>(); }},
    {"ca", [](engine_options& o, const py::handle& v) { o.credentials.ca = v.cast<std::string>(); }},
    {"insecure", [](engine_options& o, const py::handle& v) { o.credentials.insecure = v.cast<bool>(); }},
    {"completion",
     [](engine_options& o, const py::handle& v) {
       o.completion = value_of(completion_words, "completion", v.cast<std::string>());
     }},
    {"kernels", [](engine_options& o,
                   const py::handle& v) { o.kernels = value_of(kernel_words, "kernels", v.cast<std::string>()); }},
    {"scheduler_threads", [](engine_options& o, const py::handle& v) { o.scheduler_threads = v.cast<unsigned>(); }},
    {"cpu_threads", [](engine_options& o, const py::handle& v) { o.cpu_threads = v.cast<unsigned>(); }},
    {"device_timeout",
     [](engine_options& o, const py::handle& v) { o.device_timeout = milliseconds_of(v.cast<double>()); }},
    {"memory", [](engine_options& o, const py::handle& v) { o.memory = v.cast<std::map<std::string, int64_t>>(); }},
    {"profile_file", [](engine_options& o, const py::handle& v) { o.profile_file = v.cast<std::string>(); }},
    {"record", [](engine_options& o, const py::handle& v) { o.recorder.folder = v.cast<std::string>(); }},
    {"record_memory", [](engine_options& o, const py::handle& v) { o.recorder.memory = v.cast<size_t>(); }},
};

using session_row = option<given_session>;
constexpr session_row session_rows[] = {
    {"policy",
     [](given_session& o, const py::handle& v) {
       if (py::isinstance<py::str>(v))
         o.policy = value_of(policy_words, "policy", v.cast<std::string>());
       else
         o.policy_plugin = (o.own = own_policy_of(v))->handle();
     }},
    {"policy_plugin", [](given_session& o, const py::handle& v) { o.policy_plugin = v.cast<std::string>(); }},
    {"split_along", [](given_session& o, const py::handle& v) { o.split_along = v.cast<int>(); }},
    {"devices", [](given_session& o, const py::handle& v) { o.devices = texts(v); }},
    {"strategy", [](given_session& o,
                    const py::handle& v) { o.strategy = value_of(strategy_words, "strategy", v.cast<std::string>()); }},
    {"strategy_plugin", [](given_session& o, const py::handle& v) { o.strategy_plugin = v.cast<std::string>(); }},
    {"micro_batch", [](given_session& o, const py::handle& v) { o.stream.micro_batch = v.cast<int64_t>(); }},
    {"depth", [](given_session& o, const py::handle& v) { o.stream.depth = v.cast<size_t>(); }},
    {"schedule",
     [](given_session& o, const py::handle& v) {
       o.stream.schedule = value_of(schedule_words, "schedule", v.cast<std::string>());
     }},
    {"shares", [](given_session& o,
                  const py::handle& v) { o.stream.shares = value_of(share_words, "shares", v.cast<std::string>()); }},
    {"max_batch", [](given_session& o, const py::handle& v) { o.stream.max_batch = v.cast<int64_t>(); }},
    {"max_delay", [](given_session& o, const py::handle& v) { o.stream.max_delay = microseconds_of(v); }},
    {"queue_limit", [](given_session& o, const py::handle& v) { o.stream.queue_limit = v.cast<size_t>(); }},
    {"ordered", [](given_session& o, const py::handle& v) { o.stream.ordered = v.cast<bool>(); }},
    {"goal", [](given_session& o,
                const py::handle& v) { o.choice.goal = value_of(objective_words, "goal", v.cast<std::string>()); }},
    {"max_devices", [](given_session& o, const py::handle& v) { o.choice.max_devices = v.cast<size_t>(); }},
    {"max_memory", [](given_session& o, const py::handle& v) { o.choice.max_memory = v.cast<int64_t>(); }},
    {"max_latency", [](given_session& o, const py::handle& v) { o.choice.max_latency = microseconds_of(v); }},
    {"pins", [](given_session& o, const py::handle& v) { o.pins = pins_of(v); }},
    {"plan_file", [](given_session& o, const py::handle& v) { o.plan_file = v.cast<std::string>(); }},
    {"fuse", [](given_session& o, const py::handle& v) { o.fuse = v.cast<bool>(); }},
    {"precision",
     [](given_session& o, const py::handle& v) {
       o.precision = value_of(precision_words, "precision", v.cast<std::string>());
     }},
    {"outputs", [](given_session& o, const py::handle& v) { o.outputs = texts(v); }},
    {"dims", [](given_session& o, const py::handle& v) { o.dims = v.cast<bindings>(); }},
};

std::vector<simulated_loss> losses_of(const py::handle& v) {
  std::vector<simulated_loss> all;
  for (auto& [device, at_ms, back_ms] : v.cast<std::vector<std::tuple<std::string, double, double>>>())
    all.push_back({device, at_ms, back_ms});
  return all;
}

std::vector<simulated_speed> speeds_of(const py::handle& v) {
  std::vector<simulated_speed> all;
  for (auto& [device, at_ms, percent] : v.cast<std::vector<std::tuple<std::string, double, double>>>())
    all.push_back({device, at_ms, percent});
  return all;
}

using simulation_row = option<given_simulation>;
constexpr simulation_row simulation_rows[] = {
    {"cluster", [](given_simulation& o, const py::handle& v) { o.cluster_text = v.cast<std::string>(); }},
    {"profile_file", [](given_simulation& o, const py::handle& v) { o.profile_file = v.cast<std::string>(); }},
    {"session",
     [](given_simulation& o, const py::handle& v) {
       const given_session session = session_options_of(py::reinterpret_borrow<py::dict>(v));
       o.session = session;
       o.own = session.own;
     }},
    {"task_seconds", [](given_simulation& o, const py::handle& v) { o.task_seconds = v.cast<std::vector<double>>(); }},
    {"requests", [](given_simulation& o, const py::handle& v) { o.requests = v.cast<size_t>(); }},
    {"warm_up", [](given_simulation& o, const py::handle& v) { o.warm_up = v.cast<size_t>(); }},
    {"in_flight", [](given_simulation& o, const py::handle& v) { o.arrivals.in_flight = v.cast<size_t>(); }},
    {"per_second",
     [](given_simulation& o, const py::handle& v) {
       o.arrivals.how = arrivals::process::poisson;
       o.arrivals.per_second = v.cast<double>();
     }},
    {"times_s",
     [](given_simulation& o, const py::handle& v) {
       o.arrivals.how = arrivals::process::listed;
       o.arrivals.times_s = v.cast<std::vector<double>>();
     }},
    {"rows", [](given_simulation& o, const py::handle& v) { o.arrivals.rows = v.cast<std::vector<int64_t>>(); }},
    {"deadlines_s",
     [](given_simulation& o, const py::handle& v) { o.arrivals.deadlines_s = v.cast<std::vector<double>>(); }},
    {"losses", [](given_simulation& o, const py::handle& v) { o.losses = losses_of(v); }},
    {"speeds", [](given_simulation& o, const py::handle& v) { o.speeds = speeds_of(v); }},
    {"noise", [](given_simulation& o, const py::handle& v) { o.noise = v.cast<double>(); }},
    {"seed", [](given_simulation& o, const py::handle& v) { o.seed = v.cast<uint64_t>(); }},
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

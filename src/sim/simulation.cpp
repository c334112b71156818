#include "troupe/simulation.hpp"

#include "base/elapsed.hpp"
#include "base/quantile.hpp"
#include "graph/made_up_dims.hpp"
#include "loader/onnx_loader.hpp"
#include "plan/device_facts.hpp"
#include "plan/device_summary.hpp"
#include "sim/arrival_times.hpp"
#include "sim/bounds.hpp"
#include "sim/records.hpp"
#include "sim/task_seconds.hpp"
#include "sim/virtual_stream.hpp"
#include "troupe/built_model.hpp"

namespace troupe::sim {
namespace {

constexpr size_t longest_shown_path = 1000;
constexpr size_t most_requests = 10'000'000;

void check_cluster(const simulation_options& how) {
  if (how.cluster_file.empty() == how.cluster_text.empty())
    fail(errc::invalid_argument, "simulation_options: either cluster_file or cluster_text must be given");
}

void check_options(const simulation_options& how) {
  const arrivals& a = how.arrivals;
  const auto refuse = [](std::string_view what) { fail(errc::invalid_argument, "simulation_options: {}", what); };
  if (how.requests == 0 || how.requests > most_requests)
    refuse("requests must be from 1 to 10,000,000");
  if (a.how == arrivals::process::closed && a.in_flight == 0)
    refuse("arrivals.in_flight must be at least 1");
  if (a.how == arrivals::process::poisson && !(a.per_second > 0 && a.per_second <= 1e9))
    refuse("arrivals.per_second must be above 0");
  if (a.how == arrivals::process::listed &&
      (a.times_s.size() != how.requests || !std::is_sorted(a.times_s.begin(), a.times_s.end()) ||
       !std::all_of(a.times_s.begin(), a.times_s.end(), [](double t) { return t >= 0 && t <= latest_arrival_s; })))
    refuse("arrivals.times_s must be as many as requests, ascending, from 0 to 1e9");
  if ((!a.rows.empty() || !a.deadlines_s.empty()) && a.how != arrivals::process::listed)
    refuse("arrivals.rows and deadlines_s are of listed requests");
  if (!a.rows.empty() && (a.rows.size() != how.requests || !std::all_of(a.rows.begin(), a.rows.end(), [](int64_t n) {
                            return n >= 1 && n <= most_request_rows;
                          })))
    refuse("arrivals.rows must be as many as requests, from 1 to 1,000,000");
  if (!a.deadlines_s.empty() &&
      (a.deadlines_s.size() != how.requests || !std::all_of(a.deadlines_s.begin(), a.deadlines_s.end(),
                                                            [](double s) { return s >= 0 && s <= latest_arrival_s; })))
    refuse("arrivals.deadlines_s must be as many as requests, from 0 to 1e9");
  if (!(how.noise >= 0 && how.noise <= 2))
    refuse("noise must be from 0 to 2");
  for (const simulated_loss& l : how.losses)
    if (!(l.at_ms >= 0 && l.at_ms < 1e12) || (l.back_ms != 0 && !(l.back_ms > l.at_ms && l.back_ms < 1e12)))
      refuse("a loss must have a time that is not negative, and come back after it");
  for (const simulated_speed& s : how.speeds)
    if (!(s.at_ms >= 0 && s.at_ms < 1e12) || !(s.percent > 0 && s.percent <= 1e6))
      refuse("a speed must have a time that is not negative, and be from above 0 to 1,000,000 percent");
  check_cluster(how);
}

cluster cluster_of(const simulation_options& how) {
  const loaded_profiles known =
      load_profiles(how.profile_file.empty() ? profile_path() : std::filesystem::path(how.profile_file));
  if (!known.problem.empty() && !how.profile_file.empty())
    fail(errc::invalid_argument, "simulation_options::profile_file: {}", known.problem);
  return how.cluster_file.empty() ? parse_cluster(how.cluster_text, known.devices)
                                  : read_cluster(how.cluster_file, known.devices);
}

/// Adds zeros for the inputs that are not given.
named_tensors completed(named_tensors given, std::span<const value_info> declared, bindings dims) {
  made_up_values values;
  for (const value_info& input : declared) {
    if (given.contains(input.name))
      continue;
    if (!input.dims)
      fail(errc::invalid_input, "input '{}' has no shape in the model: give it", input.name);
    given.emplace(input.name, values.zeros(input.type, dims_or_ones(*input.dims, dims)));
  }
  return given;
}

/// A model, and what the strategy makes of it.
struct prepared_model {
  model_ptr model;
  prepared_replicas replicas;
  strategy_choice choice;
};

prepared_model prepare(model_ptr m, const devices_of_session& devices, const named_tensors& inputs) {
  const named_device_tensors none;
  const given_inputs given{inputs, none};
  if (m->options.strategy == strategy::automatic) {
    compared_strategies all = compare_strategies(m, devices, &given);
    const costed_strategy& best = best_of(all.found, m->options.choice);
    m = with_strategy(*m, best.shown.strategy, best.shown.policy);
    return {m, prepare_replicas(m, devices, best.replicas, std::move(all.ahead)), best.shown};
  }
  return {m, prepare_replicas(m, devices, replica_sets_for(m->options, devices)), {}};
}

void describe_requests(simulation_report& r, std::span<const request_record> requests) {
  double first = requests.front().came, last = 0;
  std::vector<double> latencies;
  for (const request_record& each : requests) {
    last = std::max(last, each.answered);
    if (each.why.failed()) {
      if (r.failed++ == 0)
        r.first_failure = each.why.message;
      r.late += each.why.code == errc::timeout ? 1 : 0;
    } else {
      latencies.push_back((each.answered - each.came) * 1e3);
    }
  }
  r.requests = requests.size();
  r.makespan_ms = (last - first) * 1e3;
  r.requests_per_s = last > first ? static_cast<double>(latencies.size()) / (last - first) : 0;
  r.p50_ms = quantile(latencies, 0.5);
  r.p90_ms = quantile(latencies, 0.9);
  r.p99_ms = quantile(latencies, 0.99);
  r.max_ms = quantile(latencies, 1);
}

void describe_devices(simulation_report& r, const virtual_world& world) {
  const double whole_s = std::max(r.makespan_ms * 1e-3, 1e-12);
  for (size_t d = 0; d < world.infos.size(); ++d) {
    const device_use& use = world.devices.use(d);
    r.chunks += use.chunks;
    r.devices.push_back({.name = world.infos[d].name,
                         .utilisation = use.work_s / whole_s,
                         .work_ms = use.work_s * 1e3,
                         .copy_ms = use.copy_s * 1e3,
                         .bytes_in = use.bytes_in,
                         .bytes_out = use.bytes_out,
                         .memory_bytes = world.infos[d].memory_bytes,
                         .peak_bytes = world.peak_bytes[d],
                         .chunks = use.chunks});
  }
  for (link_index l = 0; l < world.links.size(); ++l)
    if (world.links.bytes(l) > 0)
      r.links.push_back({world.links.name(l), world.links.bytes(l), world.links.busy(l) / whole_s});
}

simulation_report run(graph source, const named_tensors& given, const simulation_options& how) {
  check_options(how);
  const auto start = std::chrono::steady_clock::now();
  cluster c = cluster_of(how);
  session_options session = how.session;
  session.policy = policy_of(session);
  const model_ptr loaded = make_model(std::move(source), std::move(session), 0);
  const named_tensors inputs = completed(given, loaded->inputs, how.session.dims);
  if (!how.task_seconds.empty())
    set_task_seconds(c.devices, loaded->source, how.task_seconds);
  const devices_of_session devices = devices_for(c.devices, {}, how.session, "cluster");
  prepared_model prepared = prepare(loaded, devices, inputs);
  simulation_report r;
  r.choice = std::move(prepared.choice);
  r.plan_s = milliseconds_since(start) * 1e-3;
  const auto begun = std::chrono::steady_clock::now();
  virtual_world world(c, how.noise, how.seed);
  chunk_log log;
  world.on_chunk = [&](const chunk_record& each) { log.add(each); };
  const std::shared_ptr<const model_rows> rows = prepared.replicas.rows;
  if (!how.arrivals.rows.empty() && rows->symbol().empty())
    fail(errc::unsupported,
         "requests with rows of their own need a strategy, and a model whose rows one dim counts: {}",
         rows->whole_because());
  const std::vector<request_record> requests =
      virtual_stream(world, prepared.model, std::move(prepared.replicas), inputs).play(how);
  r.simulate_s = milliseconds_since(begun) * 1e-3 - world.plan_s;
  r.plan_s += world.plan_s;
  describe_requests(r, requests);
  describe_devices(r, world);
  r.critical_path = log.critical_path(world, longest_shown_path);
  if (const bound_plan_ptr first = log.first_plan()) {
    r.plan_chunks = first->source->chunks.size();
    bindings whole = first->values;
    if (!rows->symbol().empty()) // the first piece may have some rows only
      whole[rows->symbol()] = rows->measure(inputs).rows;
    const schedule_bounds bounds = bounds_of(*first->source, expected_dims(*first->source->program, whole));
    r.path_bound_ms = bounds.path_s * 1e3;
    r.area_bound_ms = bounds.area_s * 1e3;
  }
  if (how.trace)
    r.trace = log.trace();
  return r;
}

} // namespace
} // namespace troupe::sim

namespace troupe {

std::vector<device_summary> cluster_devices(const simulation_options& options) {
  sim::check_cluster(options);
  std::vector<device_summary> all;
  for (const device_info& d : sim::cluster_of(options).devices) {
    all.push_back(summary_of(d));
    all.back().total_bytes = d.memory_bytes; // a cluster says how much plans may use
  }
  return all;
}

std::string to_cluster(const device_facts& facts) {
  return sim::write_cluster(sim::captured(facts.devices));
}

simulation_report simulate(const std::string& model, const named_tensors& inputs, const simulation_options& options) {
  return sim::run(load_model(std::filesystem::path(model)), inputs, options);
}

simulation_report simulate(const built_model& model, const named_tensors& inputs, const simulation_options& options) {
  return sim::run(model.source(), inputs, options);
}

} // namespace troupe

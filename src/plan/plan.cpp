#include "plan/plan.hpp"

#include "graph/bodies.hpp"
#include "ops/onnx/control.hpp"
#include "plan/compile.hpp"
#include "plan/estimate/predict.hpp"
#include "plan/place/placement_problem.hpp"
#include "plan/place/policies.hpp"
#include "plan/plan_key.hpp"
#include "plan/prepared_graph.hpp"
#include "plan/saved_plan.hpp"

#include <algorithm>
#include <limits>

namespace troupe {
namespace {

void plan_bodies(plan& p, const std::vector<device_info>& devices, const plan_options& options) {
  for (node_id n = 0; n < static_cast<node_id>(p.program->nodes.size()); ++n) {
    const node& call = p.program->nodes[n];
    if (!has_body(call))
      continue;
    const control_call control = parse_control(call);
    for (size_t i = 0; i < control.bodies.size(); ++i) {
      const node_body& body = control.bodies[i];
      if (control.kind == control_kind::branch && !control.refusals[i].empty())
        p.remarks.push_back(
            fmt::format("{}: {} cannot be executed: {}", describe(call), body.name, control.refusals[i]));
      try {
        p.bodies.push_back({n, body.name, make_plan(body.program, devices, options_for_body(*body.program, options))});
      } catch (const error& e) {
        fail(e.code(), "{}, body '{}': {}", describe(call), body.name, e.what());
      }
    }
  }
}

double predicted_seconds(const plan& p, const bindings& expected) {
  return predict(p, expected_dims(*p.program, expected)).makespan_s;
}

/// Returns the plan that is predicted to be faster, `spread` or everything on one device: a policy decides by nodes,
/// while chunks, waves and layouts decide what its choice costs.
std::shared_ptr<plan> better_than_single(std::shared_ptr<plan> spread, const graph& prepared,
                                         const std::vector<device_info>& devices, plan_options options) {
  options.policy = placement_policy::single;
  std::shared_ptr<plan> alone = compile(prepared, devices, options);
  if (alone->placement == spread->placement)
    return spread;
  const double spread_s = predicted_seconds(*spread, options.expected);
  const double alone_s = predicted_seconds(*alone, options.expected);
  const std::string figures =
      fmt::format("{:.3g} ms; {:.3g} ms if one device runs all that it can", spread_s * 1e3, alone_s * 1e3);
  if (spread_s <= alone_s) {
    spread->remarks.push_back("predicted: " + figures);
    return spread;
  }
  alone->remarks.push_back("predicted: " + figures + ", which was taken");
  return alone;
}

/// Returns whether each device has memory for its weights.
bool weights_fit(const plan& p) {
  for (device_index d = 0; d < p.devices.size(); ++d)
    if (p.weight_bytes[d] > p.devices[d].memory_bytes)
      return false;
  return true;
}

/// Chooses the plan that is predicted to be fastest: nodes cut for a team of devices, each time along another dim, or
/// one device. If `options` or the file state how, the plan is cut so wherever that can be done.
class split_choice {
public:
  split_choice(const graph& prepared, const std::vector<device_info>& devices, const plan_options& options)
      : prepared_(prepared), devices_(devices), options_(options), stated_(options.split_along),
        team_(team_for(prepared, devices, options)) {
    if (stated_)
      return;
    if (auto team = annotated_team(prepared, devices, options)) {
      team_ = std::move(*team);
      stated_ = along_annotations;
    }
  }

  std::shared_ptr<plan> run() {
    const split_program whole = on_one_device(prepared_, devices_, options_, team_);
    offer(compile(prepared_, devices_, options_, &whole), "on one device");
    if (stated_)
      best_fits_ = false, best_s_ = std::numeric_limits<double>::infinity(); // it is cut wherever that can be done
    for (const int along : stated_ ? std::vector{*stated_} : split_dims())
      if (team_.size() > 1)
        try_cut(along);
    best_->remarks.push_back("predicted: " + figures_);
    return best_;
  }

private:
  void try_cut(int along) {
    std::optional<split_program> cut;
    try {
      cut = split(prepared_, devices_, options_, team_, along);
    } catch (const error& e) {
      if (e.code() == errc::internal)
        throw;
      figures_ += fmt::format("; not split along {}: {}", along, e.what());
    }
    if (!cut || std::ranges::find(tried_, cut->decision) != tried_.end())
      return;
    tried_.push_back(cut->decision);
    if (!stated_ && !keep_long_parts(*cut))
      return;
    offer(compile(prepared_, devices_, options_, &*cut), cut->summary);
  }

  /// Runs whose parts are far shorter than those that the prediction is for go by one device. Returns false if that run
  /// itself has too short ones.
  bool keep_long_parts(split_program& cut) const {
    constexpr int64_t shortest = 4; // a quarter
    for (dim& d : cut.nonnegative)
      try {
        const int64_t expected = d.evaluate(options_.expected);
        if (expected < 0)
          return false;
        d = d * shortest - expected;
      } catch (const error&) { // `expected` does not say it
      }
    return true;
  }

  void offer(std::shared_ptr<plan> p, const std::string& what) {
    const double seconds = predicted_seconds(*p, options_.expected);
    const bool fits = weights_fit(*p);
    figures_ += fmt::format("{}{:.3g} ms {}{}", figures_.empty() ? "" : "; ", seconds * 1e3, what,
                            fits ? "" : ", where weights do not fit the memory");
    if (best_ && std::pair(!fits, seconds) >= std::pair(!best_fits_, best_s_))
      return;
    best_ = std::move(p);
    best_fits_ = fits;
    best_s_ = seconds;
  }

  const graph& prepared_;
  const std::vector<device_info>& devices_;
  const plan_options& options_;
  std::optional<int> stated_; // how nodes are cut whatever it costs: by the caller, or by the file's annotations
  split_team team_;
  std::shared_ptr<plan> best_;
  bool best_fits_ = false;
  double best_s_ = 0;
  std::vector<hash128> tried_;
  std::string figures_; // for people
};

/// Makes the cut of a saved plan again; nullopt if it has none.
std::optional<split_program> saved_split(const graph& prepared, const std::vector<device_info>& devices,
                                         plan_options options) {
  const auto& how = options.saved ? options.saved->split : std::nullopt;
  if (!how)
    return std::nullopt;
  options.policy = placement_policy::split;
  const split_team team = saved_team(*how, devices, options.saved->source);
  auto cut = split(prepared, devices, options, team, how->along);
  if (!cut)
    fail(errc::invalid_plan, "{}: the model cannot be split along dim {} any more", options.saved->source, how->along);
  return cut;
}

} // namespace

std::shared_ptr<const plan> make_plan(const std::shared_ptr<const graph>& program, std::vector<device_info> devices,
                                      const plan_options& options) {
  if (devices.empty())
    fail(errc::invalid_argument, "a plan needs at least one device");
  const graph prepared = prepare(*program);
  const plan_options own = options_without_bodies(prepared, options);
  const policy_row& policy = row_of(options.policy);
  const auto cut = saved_split(prepared, devices, own);
  std::shared_ptr<plan> p = policy.cuts_nodes && !options.saved
                                ? split_choice(prepared, devices, own).run()
                                : compile(prepared, devices, own, cut ? &*cut : nullptr);
  if (policy.or_single && !options.saved && devices.size() > 1)
    p = better_than_single(std::move(p), prepared, devices, own);
  // Both as given, pins for bodies included: the plan is made again from these.
  p->given = program;
  p->options = options;
  plan_bodies(*p, devices, options);
  if (options.saved)
    // The file may have been edited by hand.
    verify(*p);
  p->key = plan_key(hash_of(*program), devices, options);
  return p;
}

} // namespace troupe

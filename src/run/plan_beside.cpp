#include "run/plan_beside.hpp"

#include "cost/paced_profile.hpp"
#include "plan/estimate/other_speeds.hpp"

namespace troupe {
namespace {

/// Returns what tells plans of one model apart: what runs where, in which chunks.
hash128 identity_of(const plan& p) {
  hasher h;
  h.add(std::span<const device_index>(p.placement));
  h.add(std::span<const chunk_id>(p.chunk_of_node));
  return h.digest();
}

std::vector<device_profile> of_plan(const planned_model& planned, const std::vector<device_profile>& by_engine) {
  std::vector<device_profile> profiles;
  for (const size_t d : planned.devices)
    profiles.push_back(by_engine[d]);
  return profiles;
}

prediction predict_with(const planned_model& planned, const bound_plan& bound,
                        const std::vector<device_profile>& by_engine) {
  return predict(with_profiles(*planned.compiled, of_plan(planned, by_engine)), bound.dims);
}

std::string remark(const beside_question& asked) {
  std::string text = "made for speeds that runs have measured:";
  for (size_t d = 0; d < asked.devices.size(); ++d)
    text += fmt::format("{} {} takes {:.2f} times as long as predicted", d > 0 ? "," : "", asked.devices[d].name,
                        asked.paces[asked.used.source->devices[d]]);
  return text;
}

} // namespace

speed_watch::ended_run stated_times(const planned_model& planned, const bound_plan& bound,
                                    const std::vector<device_profile>& stated) {
  const prediction once = predict_with(planned, bound, stated);
  speed_watch::ended_run run{.devices = {}, .stated_s = std::max(once.makespan_s, 1e-9)};
  for (size_t d = 0; d < planned.devices.size(); ++d)
    run.devices.push_back({.device = planned.devices[d], .stated_s = once.busy_s[d]});
  return run;
}

plan_beside make_beside(const beside_question& asked) {
  const planned_model& used = *asked.used.source;
  plan_beside made{.profiles = asked.stated, .planned = {}, .bound = {}, .stated = {}, .figures = {}};
  for (size_t d = 0; d < made.profiles.size(); ++d)
    made.profiles[d] = paced(asked.stated[d], asked.paces[d]);
  std::vector<device_info> devices = asked.devices;
  for (size_t d = 0; d < devices.size(); ++d)
    devices[d].profile = made.profiles[used.devices[d]];
  const auto compiled = std::make_shared<plan>(*make_plan(used.compiled->given, devices, asked.options));
  compiled->remarks.push_back(remark(asked));
  made.planned = describe_plan(compiled, used.devices, used.output_names, used.program_input);
  made.bound = asked.layouts->bind(compiled, 0, asked.used.symbols);
  const auto seconds = [&](const planned_model& planned, const bound_plan& bound) {
    return seconds_a_run(predict_with(planned, bound, made.profiles), devices, asked.in_flight);
  };
  made.stated = stated_times(*made.planned, *made.bound, asked.stated);
  made.figures = {.used = identity_of(*used.compiled),
                  .other = identity_of(*compiled),
                  .used_s = seconds(used, *asked.used.bound),
                  .other_s = seconds(*made.planned, *made.bound),
                  .used_stated_s = stated_times(used, *asked.used.bound, asked.stated).stated_s,
                  .other_stated_s = made.stated.stated_s,
                  .move_s = weight_seconds(*used.compiled, *compiled)};
  return made;
}

} // namespace troupe

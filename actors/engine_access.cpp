#include "actors/engine_access.hpp"

#include "actors/engine_state.hpp"
#include "plan/device_facts.hpp"
#include "troupe/inspect.hpp"

namespace troupe {

engine make_engine(const engine_options& options, const engine_hooks& hooks) {
  return engine_access::make(options, hooks);
}

std::vector<std::string> gpu_messages(const engine& e) {
  return engine_access::devices(e).gpu_messages();
}

std::vector<std::string> why_gpus_are_apart(const engine& e) {
  return engine_access::devices(e).why_gpus_are_apart();
}

std::vector<device_info> device_infos(const engine& e) {
  std::vector<device_info> infos;
  const actors::device_list opened = engine_access::devices(e).devices();
  for (const actors::device_handle& d : *opened)
    infos.push_back(d.info);
  return infos;
}

std::shared_ptr<const device_facts> facts_of(const engine& e) {
  return std::make_shared<const device_facts>(device_facts{device_infos(e)});
}

std::shared_ptr<kernel_choices> kernels_of(const engine& e, const std::string& device) {
  const actors::device_list opened = engine_access::devices(e).devices();
  for (const actors::device_handle& d : *opened)
    if (d.info.name == device)
      return d.kernels;
  return nullptr;
}

void add_devices(const engine& e, const std::vector<device_factory>& makes) {
  engine_access::runtime(e).add_devices(makes, actors::host::threading::own_thread);
}

void lose_devices(const engine& e, const std::function<bool(const device_info&)>& which, const std::string& why) {
  engine_access::runtime(e).lose_devices(which, why);
}

void let_leave(const engine& e, const std::function<bool(const device_info&)>& which, const std::string& why,
               const std::shared_ptr<const void>& need) {
  engine_access::runtime(e).let_leave(which, why, need);
}

remote::host_activity activity_of(const engine& e, const std::string& host) {
  return engine_access::runtime(e).activity_of(host);
}

measured_link calibrate_link(const engine& e, const std::string& host) {
  return engine_access::runtime(e).calibrate_link(host);
}

std::shared_ptr<const plan> plan_of(const session& s, const named_tensors& inputs) {
  return bound_plan_of(s, inputs)->source;
}

bound_plan_ptr bound_plan_of(const session& s, const named_tensors& inputs) {
  auto query = std::make_unique<actors::plan_query>();
  query->inputs = inputs;
  return actors::ask<actors::plan_query_message>(engine_access::coordinator(s, inputs), std::move(query)).get();
}

} // namespace troupe

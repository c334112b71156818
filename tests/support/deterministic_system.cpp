#include "support/deterministic_system.hpp"

#include "support/far_values.hpp"

namespace troupe::test {

using namespace actors;

deterministic_session::deterministic_session(graph source, size_t device_count, const session_options& options,
                                             std::chrono::milliseconds device_timeout, completion_mode completion,
                                             int64_t memory_bytes)
    : logs_(device_count) {
  config_.set("scheduler.policy", caf::atom("testing"));
  system_ = std::make_unique<caf::actor_system>(config_);
  for (size_t d = 0; d < device_count; ++d) {
    const device_info info{.name = "d" + std::to_string(d), .kind = device_kind::null, .memory_bytes = memory_bytes};
    devices_.push_back({info, system_->spawn(scripted_device, &logs_[d]), std::make_shared<device_health>(),
                        std::make_shared<shared_ledger>(memory_bytes)});
  }
  coordinator_ = open_session(std::move(source), options, device_timeout, completion);
}

coordinator_ref deterministic_session::open_session(graph source, const session_options& options,
                                                    std::chrono::milliseconds device_timeout,
                                                    completion_mode completion) {
  std::vector<device_info> infos;
  for (const device_handle& d : devices_)
    infos.push_back(d.info);
  auto plans = std::make_shared<session_plans>(make_model(std::move(source), options, 0), infos);
  coordinator_options with{devices_, std::move(plans), system_->spawn(actors::planner), completion, device_timeout};
  coordinators_.push_back(system_->spawn(actors::coordinator, std::move(with)));
  settle();
  return coordinators_.back();
}

deterministic_session::~deterministic_session() {
  for (const coordinator_ref& session : coordinators_)
    caf::anon_send_exit(session, caf::exit_reason::user_shutdown);
  for (const device_handle& d : devices_)
    caf::anon_send_exit(d.actor, caf::exit_reason::user_shutdown);
  settle();
}

std::future<run_result> deterministic_session::run(named_tensors inputs, const run_options& options) {
  return run_in(coordinator_, std::move(inputs), options);
}

std::future<run_result> deterministic_session::run_in(const coordinator_ref& session, named_tensors inputs,
                                                      const run_options& options) {
  auto pending = std::make_unique<pending_run>(std::move(inputs), options);
  last_ticket_ = pending->request->ticket;
  auto future = pending->result.future();
  caf::anon_send(session, actors::run(std::move(pending)));
  return future;
}

void deterministic_session::settle() {
  auto& scheduler = dynamic_cast<caf::scheduler::test_coordinator&>(system_->scheduler());
  while (scheduler.try_run_once()) {
  }
}

void deterministic_session::advance(std::chrono::milliseconds time) {
  dynamic_cast<caf::scheduler::test_coordinator&>(system_->scheduler()).advance_time(time);
  settle();
}

size_t deterministic_session::chunks_waiting() const {
  size_t count = 0;
  for (const device_log& log : logs_)
    count += log.chunks.size();
  return count;
}

void deterministic_session::complete(size_t device, chunk_result result) {
  device_log& log = logs_.at(device);
  const chunk_work work = std::move(log.chunks.at(0));
  log.chunks.pop_front();
  if (result.ok()) {
    const bound_plan_ptr& bound = std::find_if(log.installs.begin(), log.installs.end(), [&](const install_plan& i) {
                                    return i.bound->id == work.bound_plan;
                                  })->bound;
    fill_with_zeros(work, *bound);
  }
  ++devices_[device].health->progress;
  send({work.execution, work.chunk, std::move(result)});
}

void deterministic_session::complete_all() {
  while (chunks_waiting() > 0)
    for (size_t d = 0; d < logs_.size(); ++d)
      if (!logs_[d].chunks.empty())
        complete(d);
}

void deterministic_session::send(chunk_ended message) {
  for (const coordinator_ref& session : coordinators_) // the others have no such execution
    caf::anon_send(session, message);
  settle();
}

void deterministic_session::answer_fetch(size_t device, fetch_result result) {
  auto& fetches = logs_.at(device).fetches;
  const fetch_tensor asked = std::move(fetches.at(0));
  fetches.pop_front();
  ++devices_[device].health->progress;
  caf::anon_send(coordinator_, tensor_fetched{asked.ticket, asked.input, std::move(result)});
  settle();
}

void deterministic_session::kill(size_t device) {
  caf::anon_send_exit(devices_.at(device).actor, caf::exit_reason::kill);
  settle();
}

} // namespace troupe::test

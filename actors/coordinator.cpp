#include "actors/coordinator.hpp"

#include "actors/awake.hpp"
#include "base/elapsed.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

namespace troupe::actors {
namespace {

/// Returns the index of the device whose actor `actor` is; the count of devices if there is none.
size_t device_of(const caf::actor_addr& actor, const std::vector<device_handle>& devices) {
  const auto found =
      std::find_if(devices.begin(), devices.end(), [&](const device_handle& d) { return d.actor.address() == actor; });
  return static_cast<size_t>(found - devices.begin());
}

/// Takes the one that waits for this answer out of the book.
template <class Waiter>
Waiter take_out(std::unordered_map<uint64_t, Waiter>& book, uint64_t id) {
  const auto found = book.extract(id);
  expects(!found.empty(), "a run or a question was answered twice");
  return std::move(found.mapped());
}

/// Calls the one of several functions that fits its argument best.
template <class... Functions>
struct overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
overloaded(Functions...) -> overloaded<Functions...>;

/// Opens the session's account with a device's ledger.
std::shared_ptr<ledger_account> open_account(const device_handle& device, const caf::actor_addr& session) {
  return device.memory->open([session] {
    if (const auto actor = caf::actor_cast<coordinator_ref>(session))
      caf::anon_send(actor, memory_changed{});
  });
}

std::unique_ptr<recording::recorded_machine> make_machine(coordinator_options& options,
                                                          const caf::actor_addr& session) {
  std::vector<device_info> infos;
  ledger_accounts accounts;
  for (const device_handle& handle : options.devices) {
    infos.push_back(handle.info);
    accounts.push_back(open_account(handle, session));
  }
  return std::make_unique<recording::recorded_machine>(infos, std::move(accounts), options.plans, options.completion,
                                                       options.follows_speeds, std::move(options.notes));
}

} // namespace

coordinator_ref::behavior_type coordinator_state::behavior(pointer self, coordinator_options options) {
  self_ = self;
  options_ = std::move(options);
  for (const device_handle& handle : options_.devices)
    if (handle.actor)
      self->monitor(handle.actor);
  watches_.resize(options_.devices.size());
  needed_.resize(options_.devices.size());
  self->attach_functor([planner = options_.planner] { caf::anon_send_exit(planner, caf::exit_reason::kill); });
  options_.follows_speeds &= follows_speeds(options_.plans->known_model());
  machine_ = make_machine(options_, self->address());
  const entry<coordinator_state> in(*this);
  self->set_down_handler(in([this](const caf::down_msg& down) { lose(down.source); }));
  return {
      in([this](const plan_installed& answer) {
        // By sender: the plan may be retired already.
        const size_t device = device_of(caf::actor_cast<caf::actor_addr>(self_->current_sender()), options_.devices);
        if (device < options_.devices.size())
          tell([&](recording::recorded_machine& m) { m.on(device, answer); });
      }),
      in([this](const chunk_begun& begun) { machine_->on(begun); }),
      in([this](chunk_ended& ended) {
        if (options_.follows_speeds) // reading it costs a tenth of a chunk
          machine_->set_time(now());
        machine_->on(ended);
        carry_out_all();
      }),
      in([this](tensor_fetched& answer) { tell([&](recording::recorded_machine& m) { m.on(answer); }); }),
      in([this](const run& message) { start_run(message.pending); }),
      in([this](const cancel_run& message) {
        tell([&](recording::recorded_machine& m) { m.cancel(message.ticket); });
      }),
      in([this](const planned& made) { tell([&](recording::recorded_machine& m) { m.on(made); }); }),
      in([this](const plan_query_message& message) {
        notice_lost_devices();
        queries_.emplace(++last_query_, message.query);
        tell([&](recording::recorded_machine& m) { m.ask_plan(last_query_, message.query->inputs); });
      }),
      in([this](const session_query_message& message) { message.query->result.answer(machine_->state().stats()); }),
      in([this](const device_joined& joined) { join(*joined.device); }),
      in([this](const device_leaves& leaving) { leave(leaving); }),
      in([this](const close_session&) {
        closing_ = true;
        tell([](recording::recorded_machine& m) { m.tick(); });
      }),
      in([this](const tick&) { on_tick(); }),
      in([this](const memory_changed&) { tell([](recording::recorded_machine& m) { m.on_memory_changed(); }); }),
      in([this](const continue_control& go_on) { tell([&](recording::recorded_machine& m) { m.on(go_on); }); }),
  };
}

coordinator_ref::behavior_type coordinator(coordinator_state::pointer self, coordinator_options options) {
  return self->state.behavior(self, std::move(options));
}

planner_ref::behavior_type planner(planner_ref::pointer self) {
  return {
      [self](const plan_wanted& job) {
        const auto asker = caf::actor_cast<plan_sink>(self->current_sender());
        answer(self, asker, planned{job.job, capture(job.make)});
      },
  };
}

void coordinator_state::end_broken(const failure& why) {
  for (auto& [ticket, run] : runs_)
    run->result.fail(why);
  for (auto& [id, query] : queries_)
    query->result.fail(why);
  end(caf::exit_reason::unhandled_exception);
}

void coordinator_state::end(caf::exit_reason why) {
  // A device's actor would remember who watches it for as long as it lives, and sessions come and go.
  for (const device_handle& d : options_.devices)
    if (d.actor)
      self_->demonitor(d.actor.address());
  self_->quit(why);
}

template <class Event>
void coordinator_state::tell(Event&& event) {
  telling_ = true;
  machine_->set_time(now());
  event(*machine_);
  carry_out_all();
  telling_ = false;
}

void coordinator_state::carry_out_all() {
  const auto carry_out = [this] {
    machine_->carry_out(commands_, [&](command& c) {
      std::visit(overloaded{[&](continue_control& next) { self_->send(self_, next); },
                            [&](plan_wanted& job) { self_->send(options_.planner, std::move(job)); },
                            [](give_memory_back& give) { give(); }, [&](auto& what) { this->carry_out(what); }},
                 c);
    });
  };
  carry_out();
  if (closing_ && machine_->state().idle()) {
    machine_->close();
    carry_out(); // its orders to retire plans
    end(caf::exit_reason::normal);
  }
}

void coordinator_state::carry_out(device_order& order) {
  const device_ref& device = options_.devices[order.device].actor;
  std::visit([&](auto& what) { self_->send(device, std::move(what)); }, order.what);
}

void coordinator_state::carry_out(const abandon_device& lost) {
  device_handle& device = options_.devices[lost.device];
  needed_[lost.device] = nullptr;
  device.health->give_up();
  if (const device_ref ends = std::exchange(device.actor, device_ref()))
    self_->send_exit(ends, caf::exit_reason::kill);
}

void coordinator_state::carry_out(run_answer& answer) {
  const pending_run_ptr run = take_out(runs_, answer.ticket);
  if (answer.why.failed())
    return run->result.fail(answer.why);
  answer.result.stats.total_ms = milliseconds_since(run->request->started);
  run->result.answer(std::move(answer.result));
}

void coordinator_state::carry_out(query_answer& answer) {
  const plan_query_ptr query = take_out(queries_, answer.query);
  if (answer.why.failed())
    query->result.fail(answer.why);
  else
    query->result.answer(std::move(answer.bound));
}

void coordinator_state::join(const device_handle& device) {
  notice_lost_devices(); // it may take the place of one of them
  options_.devices.push_back(device);
  watches_.emplace_back();
  needed_.emplace_back();
  auto account = open_account(device, self_->address());
  tell([&](recording::recorded_machine& m) { m.add_device(device.info, std::move(account)); });
  self_->monitor(device.actor);
}

void coordinator_state::lose(const caf::actor_addr& ended) {
  if (const size_t device = device_of(ended, options_.devices); device < options_.devices.size())
    tell([&](recording::recorded_machine& m) {
      m.lose_device(device, options_.devices[device].health->because("its actor has ended"));
    });
}

void coordinator_state::leave(const device_leaves& leaving) {
  const size_t device = device_of(leaving.device, options_.devices);
  if (device == options_.devices.size() || options_.devices[device].health->lost)
    return;
  needed_[device] = leaving.need;
  tell([&](recording::recorded_machine& m) { m.leave_device(device, leaving.why); });
}

void coordinator_state::start_run(const pending_run_ptr& run) {
  if (run->cancelled)
    return run->result.fail({errc::cancelled, "the run was cancelled"});
  // Before it is planned: no message tells of a device that another session has lost and whose actor hangs.
  notice_lost_devices();
  runs_.emplace(run->request->ticket, run);
  tell([&](recording::recorded_machine& m) { m.start_run(run->request); });
  arm_tick(run->request->deadline);
}

void coordinator_state::on_tick() {
  if (next_tick_ && now() >= *next_tick_)
    next_tick_.reset();
  tell([](recording::recorded_machine& m) { m.tick(); });
  check_silence();
  arm_tick(machine_->state().next_deadline());
}

void coordinator_state::notice_lost_devices() {
  for (size_t d = 0; d < options_.devices.size(); ++d)
    if (const device_health& health = *options_.devices[d].health; health.lost)
      tell([&](recording::recorded_machine& m) { m.lose_device(d, health.because("another session lost it")); });
}

void coordinator_state::check_silence() {
  for (size_t d = 0; d < options_.devices.size() && options_.device_timeout.count() > 0; ++d) {
    // One that another session lost too: its actor may hang, and then no message says that it is gone.
    const device_health& health = *options_.devices[d].health;
    if (watches_[d].is_silent(health, machine_->state().has_work(d), now(), options_.device_timeout))
      tell([&](recording::recorded_machine& m) {
        m.lose_device(d, fmt::format("it did not answer for {} ms", options_.device_timeout.count()));
      });
  }
}

void coordinator_state::arm_tick(std::optional<run_time> at) {
  if (options_.device_timeout.count() > 0 && !machine_->state().idle()) {
    const run_time look = now() + look_interval(options_.device_timeout);
    at = at ? std::min(*at, look) : look;
  }
  if (!at || (next_tick_ && *next_tick_ <= *at))
    return;
  next_tick_ = at;
  self_->delayed_send(self_, std::max<std::chrono::nanoseconds>(*at - now(), std::chrono::nanoseconds(0)), tick{});
}

run_time coordinator_state::now() const {
  return self_->clock().now();
}

} // namespace troupe::actors

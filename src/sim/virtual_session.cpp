#include "sim/virtual_session.hpp"

#include "base/elapsed.hpp"
#include "plan/estimate/other_speeds.hpp"

namespace troupe::sim {
namespace {

/// An account that notes the most that all accounts of a device hold at once.
class counted_account final : public ledger_account {
public:
  counted_account(std::unique_ptr<ledger_account> of, int64_t& used, int64_t& peak)
      : of_(std::move(of)), used_(used), peak_(peak) {}

  bool take(int64_t bytes) override {
    if (!of_->take(bytes))
      return false;
    count(bytes);
    return true;
  }
  void take_anyway(int64_t bytes) override {
    of_->take_anyway(bytes);
    count(bytes);
  }
  void give_back(int64_t bytes) override {
    of_->give_back(bytes);
    used_ -= bytes;
  }
  bool waits() const override { return of_->waits(); }
  void withdraw() override { of_->withdraw(); }
  std::optional<int64_t> missing_elsewhere() const override { return of_->missing_elsewhere(); }

private:
  void count(int64_t bytes) {
    used_ += bytes;
    peak_ = std::max(peak_, used_);
  }

  const std::unique_ptr<ledger_account> of_;
  int64_t& used_;
  int64_t& peak_;
};

/// Returns what a bound plan is with the devices' own speeds, whatever the plan believes of them.
bound_plan_ptr as_stated(const bound_plan_ptr& bound, const std::vector<device_profile>& profiles) {
  const auto is_same = [](const device_info& d, const device_profile& stated) { return d.profile == stated; };
  if (std::ranges::equal(real_devices(*bound->source), profiles, is_same))
    return bound;
  auto copy = std::make_shared<bound_plan>(*bound);
  copy->source = std::make_shared<const plan>(with_profiles(*bound->source, profiles));
  return copy;
}

} // namespace

virtual_world::virtual_world(const cluster& c, double noise, uint64_t seed)
    : devices(events, links, noise, seed), coordinator_s(c.coordinator_s), infos(c.devices),
      routes(add_links(c, links)), used_bytes(2 * c.devices.size()), peak_bytes(2 * c.devices.size()) {
  for (const device_info& d : infos) {
    index_of[{d.name, d.incarnation}] = ledgers.size();
    devices.add(d);
    ledgers.push_back(std::make_shared<shared_ledger>(d.memory_bytes));
  }
}

void virtual_world::lose(size_t device) {
  devices.lose(device);
}

void virtual_world::begin_to_count() {
  begin = events.now();
  devices.begin_to_count();
  links.begin_to_count();
}

size_t virtual_world::bring_back(size_t device) {
  if (infos.size() == used_bytes.size())
    fail(errc::invalid_argument, "simulated devices come back too often");
  device_info back = infos[device];
  ++back.incarnation;
  devices.add(back);
  index_of[{back.name, back.incarnation}] = infos.size();
  ledgers.push_back(std::make_shared<shared_ledger>(back.memory_bytes));
  routes.push_back(routes[device]);
  infos.push_back(std::move(back));
  return infos.size() - 1;
}

virtual_session::virtual_session(virtual_world& world, std::shared_ptr<session_plans> plans) : world_(world) {
  ledger_accounts accounts;
  for (size_t d = 0; d < world.infos.size(); ++d)
    accounts.push_back(account(d));
  machine_ = std::make_unique<session_machine>(world.infos, std::move(accounts), std::move(plans),
                                               completion_mode::device, true);
}

std::shared_ptr<ledger_account> virtual_session::account(size_t device) {
  auto of = world_.ledgers[device]->open(
      [this] { world_.events.after(0, [this] { tell([](session_machine& m) { m.on_memory_changed(); }); }); });
  return std::make_shared<counted_account>(std::move(of), world_.used_bytes[device], world_.peak_bytes[device]);
}

template <class Event>
void virtual_session::tell(Event&& event) {
  machine_->set_time(time_of(world_.events.now()));
  event(*machine_);
  std::vector<command> commands;
  do {
    machine_->take_commands(commands);
    for (command& c : commands)
      std::visit([this](auto& what) { this->carry_out(what); }, c);
  } while (machine_->use_spare_time());
  for (const uint64_t id : std::exchange(retired_, {}))
    plans_.erase(id); // chunks that are under way hold theirs
}

void virtual_session::run(named_tensors inputs, run_done done) {
  const auto request = std::make_shared<run_request>(std::move(inputs), run_options{});
  runs_.emplace(request->ticket, std::move(done));
  because_ = 0;
  tell([&](session_machine& m) { m.start_run(request); });
}

void virtual_session::lose(size_t device, const std::string& why) {
  because_ = 0;
  tell([&](session_machine& m) { m.lose_device(device, why); });
}

void virtual_session::add(size_t device) {
  tell([&](session_machine& m) { m.add_device(world_.infos[device], account(device)); });
}

void virtual_session::carry_out(device_order& order) {
  std::visit([&](auto& what) { this->take(order.device, what); }, order.what);
}

void virtual_session::carry_out(run_answer& answer) {
  const auto done = runs_.extract(answer.ticket);
  expects(!done.empty(), "a simulated run was answered twice");
  done.mapped()(answer);
}

void virtual_session::carry_out(continue_control& next) {
  world_.events.after(0, [this, next] { tell([&](session_machine& m) { m.on(next); }); });
}

void virtual_session::carry_out(plan_wanted& wanted) {
  // After this event, which is being told.
  world_.events.after(0, [this, job = std::move(wanted)] {
    const auto start = std::chrono::steady_clock::now();
    const planned made{job.job, capture(job.make)};
    world_.plan_s += milliseconds_since(start) * 1e-3;
    tell([&](session_machine& m) { m.on(made); });
  });
}

void virtual_session::take(size_t device, install_plan& order) {
  auto& known = plans_[order.bound->id];
  if (!known) {
    std::vector<const device_routes*> routes;
    std::vector<device_profile> profiles;
    for (const device_info& d : real_devices(*order.bound->source)) {
      const size_t at = world_.index_of.at({d.name, d.incarnation});
      routes.push_back(&world_.routes[at]);
      profiles.push_back(world_.infos[at].profile);
    }
    known = std::make_shared<const installed>(installed{order.bound, price(*as_stated(order.bound, profiles), routes)});
  }
  world_.events.after(0, [this, device, answer = plan_installed{order.bound->id, order.self, {}}] {
    tell([&](session_machine& m) { m.on(device, answer); });
  });
}

void virtual_session::take(size_t device, run_chunks& order) {
  for (chunk_work& each : order.works) {
    const std::shared_ptr<const installed> of = plans_.at(each.bound_plan);
    chunk_record record{
        .execution = each.execution, .chunk = each.chunk, .device = device, .because = because_, .bound = of->bound};
    const auto work = std::make_shared<chunk_work>(std::move(each));
    world_.devices.run(device, of->prices[record.chunk], [this, work, of, record](const chunk_times& times) {
      chunk_record r = record;
      r.times = times;
      ended(work, *of, std::move(r));
    });
  }
}

void virtual_session::ended(const std::shared_ptr<chunk_work>& work, const installed& of, chunk_record record) {
  world_.values.fill(*of.bound, *work, world_.infos[record.device]);
  const double answer_s = std::max(0.0, world_.infos[record.device].profile.chunk_s - world_.coordinator_s);
  world_.events.after(answer_s, [this, work, record = std::move(record)]() mutable {
    const seconds told = coordinator_.take(world_.events.now(), world_.coordinator_s);
    world_.events.at(told, [this, work, record = std::move(record)]() mutable {
      record.told = world_.events.now();
      because_ = record.times.number;
      if (world_.on_chunk && record.times.sent >= world_.begin)
        world_.on_chunk(record);
      chunk_ended answer{work->execution, work->chunk, {}};
      answer.result.busy_ns = static_cast<int64_t>(record.times.busy_s * 1e9);
      tell([&](session_machine& m) { m.on(answer); });
    });
  });
}

void virtual_session::take(size_t, fetch_tensor& order) {
  tensor_fetched fetched{
      order.ticket, order.input, {.value = world_.values.zeros(order.value->type(), order.value->dims())}};
  world_.events.after(
      0, [this, fetched = std::move(fetched)]() mutable { tell([&](session_machine& m) { m.on(fetched); }); });
}

} // namespace troupe::sim

// Sessions whose devices, callers and time are dice: what happens to them, in random orders.
#pragma once

#include "recording/recorded_machine.hpp"
#include "run/shared_ledger.hpp"
#include "support/catch.hpp"
#include "support/control_models.hpp"
#include "support/dice.hpp"
#include "support/far_values.hpp"

#include <deque>
#include <set>

namespace troupe::test {

/// Conditions of a trial of a machine.
struct session_trial {
  graph model;
  std::vector<named_tensors> inputs; // one of them for each run
  session_options options;
  bool in_order = false; // whether runs take one after the other, as a decoder's steps do
};

/// The answers of all sessions.
struct answer_book {
  void take(const run_answer& a) {
    ++by_ticket.at(a.ticket);
    right += !a.why.failed();
    CHECK((a.why.failed() || prepares.contains(a.ticket)) == a.result.outputs.empty());
    CHECK(a.why.code != (a.why.failed() ? errc::internal : errc::io));
  }
  void take(const query_answer& a) { ++by_ticket.at(a.query); }

  std::map<uint64_t, int> by_ticket; // how many
  std::set<uint64_t> prepares;       // of them, those for which nothing is run
  size_t right = 0;
};

/// One session or two over the same devices, which answer in their order, when the dice say so, mostly well; callers
/// that start runs and give up; time that passes.
class session_world {
public:
  /// `record_to`: where the first session is recorded; empty: it is not.
  session_world(const session_trial& t, uint32_t seed, std::filesystem::path record_to = {})
      : trial_(t), record_to_(std::move(record_to)), dice_(seed) {
    // A few arena slots: runs wait for memory, and plans spill.
    memory_ = dice_.chance(0.3) ? 1500 : dice_.chance(0.5) ? 6000 : int64_t{1} << 40;
    for (size_t d = 0; d < 3; ++d)
      devices_.push_back({.name = fmt::format("d{}", d), .ledger = std::make_shared<shared_ledger>(memory_)});
    sessions_.resize(dice_.chance(0.5) ? 2 : 1);
    for (size_t s = 0; s < sessions_.size(); ++s)
      open(s);
  }

  /// Lets `count` things happen, then everything that is still to come.
  void play(int count) {
    for (int i = 0; i < count; ++i)
      happen();
    dice_.calm = true;
    for (bool busy = true; busy;) {
      busy = answer_one();
      for (size_t s = 0; s < sessions_.size(); ++s) {
        const bool planned = plan(s), went_on = go_on(s), looked = look(s); // each of them
        busy = busy || planned || went_on || looked;
      }
    }
    for (const session& s : sessions_) {
      CHECK(s.machine->state().idle());
      CHECK_FALSE(s.machine->state().next_deadline());
    }
    for (const auto& [ticket, answers] : answers_.by_ticket)
      CHECK(answers == 1);
    if (std::any_of(devices_.begin(), devices_.end(), [](const device_queue& d) { return !d.lost && !d.leaves; }))
      for (const device_queue& d : devices_)
        CHECK((!d.leaves || d.lost || d.let_go.size() == sessions_.size()));
  }

  size_t runs() const { return answers_.by_ticket.size(); }
  size_t right() const { return answers_.right; }

private:
  struct session {
    std::unique_ptr<recording::recorded_machine> machine;
    std::optional<plan_wanted> wanted;
    std::deque<continue_control> going_on;
    bool told = false; // that memory has changed

    void take(const continue_control& c) { going_on.push_back(c); }
    void take(const plan_wanted& job) {
      CHECK_FALSE(wanted);
      wanted = job;
    }
  };
  struct order {
    size_t session = 0;
    std::variant<install_plan, chunk_work, fetch_tensor> what;
  };
  struct device_queue {
    std::string name;
    std::shared_ptr<shared_ledger> ledger;
    std::deque<order> orders;
    bool lost = false;
    bool leaves = false;
    std::set<size_t> let_go; // by these sessions
  };

  void open(size_t s) {
    std::vector<device_info> infos;
    ledger_accounts accounts;
    for (size_t d = 0; d < devices_.size(); ++d) {
      infos.push_back(info_of(d));
      accounts.push_back(account_of(s, d));
    }
    auto plans = std::make_shared<session_plans>(make_model(trial_.model, trial_.options, 0), infos);
    std::unique_ptr<recording::recorder> notes;
    if (s == 0 && !record_to_.empty()) {
      plans->prepare_ahead();
      notes = std::make_unique<recording::recorder>(
          record_to_, recording::facts_of(*plans, infos, completion_mode::device, false), 0, plans);
    }
    sessions_[s].machine = std::make_unique<recording::recorded_machine>(
        infos, std::move(accounts), plans, completion_mode::device, false, std::move(notes));
  }

  device_info info_of(size_t device) const {
    return {.name = devices_[device].name, .kind = device_kind::null, .memory_bytes = memory_};
  }

  std::shared_ptr<ledger_account> account_of(size_t s, size_t device) {
    return devices_[device].ledger->open([this, s] { sessions_[s].told = true; });
  }

  void happen() {
    now_ += std::chrono::milliseconds(dice_.below(3));
    const size_t s = dice_.below(sessions_.size());
    recording::recorded_machine& machine = *sessions_[s].machine;
    const double what = dice_.any();
    if (what < 0.13)
      start(s);
    else if (what < 0.15)
      fetch(s);
    else if (what < 0.2 && !answers_.by_ticket.empty())
      tell(s, [&] {
        machine.cancel(std::next(answers_.by_ticket.begin(), static_cast<ptrdiff_t>(dice_.below(runs())))->first);
      });
    else if (what < 0.21)
      lose(s, dice_.below(devices_.size()));
    else if (what < 0.214)
      join();
    else if (what < 0.218)
      leave(dice_.below(devices_.size()));
    else if (what < 0.25)
      tell(s, [&] { machine.tick(); });
    else if (what < 0.35)
      go_on(s);
    else if (what < 0.45)
      plan(s);
    else if (what < 0.5)
      look(s);
    else
      answer_one();
  }

  void start(size_t s) {
    run_options options;
    options.timeout = std::chrono::milliseconds(dice_.chance(0.2) ? 5 : 0);
    named_tensors inputs =
        trial_.inputs[trial_.in_order ? started_++ % trial_.inputs.size() : dice_.below(trial_.inputs.size())];
    if (dice_.chance(0.05))
      inputs.clear();
    const auto request = std::make_shared<run_request>(std::move(inputs), options);
    answers_.by_ticket[request->ticket] = 0;
    if ((request->only_prepares = dice_.chance(0.1)))
      answers_.prepares.insert(request->ticket);
    if (dice_.chance(0.1))
      tell(s, [&] { sessions_[s].machine->ask_plan(request->ticket, request->inputs); });
    else
      tell(s, [&] { sessions_[s].machine->start_run(request); });
  }

  /// Asks for host copies of values that are on devices.
  void fetch(size_t s) {
    named_device_tensors values;
    for (const char* name : {"x", "y"})
      values[name] =
          std::make_shared<const far_resident>(dtype::float32, shape{2}, info_of(dice_.below(devices_.size())));
    const auto request =
        std::make_shared<run_request>(named_tensors{}, run_options{.device_inputs = std::move(values)});
    request->only_fetches = true;
    answers_.by_ticket[request->ticket] = 0;
    tell(s, [&] { sessions_[s].machine->start_run(request); });
  }

  void lose(size_t s, size_t device) {
    tell(s, [&] { sessions_[s].machine->lose_device(device, "the test took it"); });
  }

  void leave(size_t device) {
    if (std::exchange(devices_[device].leaves, true) || devices_[device].lost)
      return;
    for (size_t s = 0; s < sessions_.size(); ++s)
      tell(s, [&] { sessions_[s].machine->leave_device(device, "the test wants it to"); });
  }

  /// A new device joins, or one that was lost under its name.
  void join() {
    const size_t device = devices_.size();
    if (device == 7)
      return;
    const auto lost = std::find_if(devices_.begin(), devices_.end(), [](const device_queue& d) { return d.lost; });
    const bool comes_back = lost != devices_.end() && std::ranges::none_of(devices_, [&](const device_queue& d) {
                              return d.name == lost->name && !d.lost;
                            });
    const std::string name = comes_back ? lost->name : fmt::format("d{}", device);
    devices_.push_back({.name = name, .ledger = std::make_shared<shared_ledger>(memory_)});
    for (size_t s = 0; s < sessions_.size(); ++s)
      tell(s, [&] { sessions_[s].machine->add_device(info_of(device), account_of(s, device)); });
  }

  bool go_on(size_t s) {
    auto& going_on = sessions_[s].going_on;
    if (going_on.empty())
      return false;
    const continue_control next = going_on.front();
    going_on.pop_front();
    tell(s, [&] { sessions_[s].machine->on(next); });
    return true;
  }

  /// Lets a session hear that memory has changed; returns whether it had not yet.
  bool look(size_t s) {
    if (!std::exchange(sessions_[s].told, false))
      return false;
    tell(s, [&] { sessions_[s].machine->on_memory_changed(); });
    return true;
  }

  /// Makes the plan that the machine wants; returns whether there was one.
  bool plan(size_t s) {
    if (!sessions_[s].wanted)
      return false;
    const plan_wanted job = *std::exchange(sessions_[s].wanted, std::nullopt);
    planned made{job.job, capture(job.make)};
    if (!dice_.calm && dice_.chance(0.02))
      made.why = {errc::out_of_memory, "the test says so"};
    tell(s, [&] { sessions_[s].machine->on(made); });
    if (!dice_.calm && dice_.chance(0.05))
      tell(s, [&] { sessions_[s].machine->on(made); }); // once more, which says nothing
    return true;
  }

  /// Lets a device answer its oldest order; returns whether there was one.
  bool answer_one() {
    std::vector<size_t> busy;
    for (size_t d = 0; d < devices_.size(); ++d)
      if (!devices_[d].orders.empty())
        busy.push_back(d);
    if (busy.empty())
      return false;
    const size_t device = busy[dice_.below(busy.size())];
    order oldest = std::move(devices_[device].orders.front());
    devices_[device].orders.pop_front();
    if (const auto* plan = std::get_if<install_plan>(&oldest.what))
      answer(oldest.session, device, *plan);
    else if (const auto* wanted = std::get_if<fetch_tensor>(&oldest.what))
      answer(oldest.session, *wanted);
    else
      answer(oldest.session, std::get<chunk_work>(oldest.what));
    return true;
  }

  void answer(size_t s, size_t device, const install_plan& order) {
    plan_installed answer{order.bound->id, order.self,
                          dice_.ending({errc::out_of_memory, errc::unsupported, errc::io})};
    tell(s, [&] { sessions_[s].machine->on(device, answer); });
  }

  void answer(size_t s, const fetch_tensor& order) {
    const failure why = dice_.ending({errc::out_of_memory, errc::device_lost});
    tensor_fetched fetched{order.ticket, order.input, {.code = why.code, .message = why.message}};
    if (!why.failed())
      fetched.result = {.value = zeros(order.value->type(), order.value->dims())};
    tell(s, [&] { sessions_[s].machine->on(fetched); });
  }

  void answer(size_t s, chunk_work& work) {
    const failure why = dice_.ending({errc::out_of_memory, errc::device_failed, errc::device_lost});
    chunk_ended ended{work.execution, work.chunk, {.code = why.code, .message = why.message}};
    if (work.stop->load()) {
      CHECK(stopped_.contains(work.execution)); // devices that cannot see the flag have been told
      ended.result = {.code = errc::cancelled, .message = "dropped"};
    }
    const bound_plan& bound = *bound_.at(work.bound_plan);
    if (ended.result.ok())
      fill_with_zeros(work, bound);
    tell(s, [&] { sessions_[s].machine->on(ended); });
    if (dice_.chance(0.02) && !dice_.calm)
      tell(s, [&] { sessions_[s].machine->on(ended); }); // once more, which says nothing
  }

  template <class Event>
  void tell(size_t s, Event&& event) {
    sessions_[s].machine->set_time(now_);
    event();
    std::vector<command> commands;
    sessions_[s].machine->carry_out(commands, [&](command& c) { std::visit([&](auto& what) { take(s, what); }, c); });
    for (; !losses_.empty();) {
      const auto [other, device] = losses_.front();
      losses_.pop_front();
      lose(other, device);
    }
  }

  void take(size_t s, device_order& order) {
    device_queue& device = devices_[order.device];
    if (device.lost)
      return;
    if (device.let_go.contains(s)) {
      CHECK_FALSE(std::holds_alternative<install_plan>(order.what));
      CHECK_FALSE(std::holds_alternative<run_chunks>(order.what));
    }
    if (auto* plan = std::get_if<install_plan>(&order.what)) {
      bound_[plan->bound->id] = plan->bound;
      device.orders.push_back({s, *plan});
    } else if (const auto* wanted = std::get_if<fetch_tensor>(&order.what)) {
      device.orders.push_back({s, *wanted});
    } else if (auto* chunks = std::get_if<run_chunks>(&order.what)) {
      for (chunk_work& work : chunks->works)
        device.orders.push_back({s, std::move(work)});
    } else if (const auto* stopped = std::get_if<stop_execution>(&order.what)) {
      const auto is_of = [&](const auto& o) {
        const auto* work = std::get_if<chunk_work>(&o.what);
        return work && work->execution == stopped->execution && work->stop->load();
      };
      CHECK(std::any_of(device.orders.begin(), device.orders.end(), is_of)); // else there is nothing to stop
      stopped_.insert(stopped->execution);
    }
  }
  void take(size_t s, const abandon_device& a) {
    devices_[a.device].lost = true;
    devices_[a.device].orders.clear();
    for (size_t other = 0; other < sessions_.size(); ++other)
      if (other != s)
        losses_.emplace_back(other, a.device);
  }
  void take(size_t s, const let_device_go& gone) {
    device_queue& device = devices_[gone.device];
    CHECK((device.leaves && device.let_go.insert(s).second));
    CHECK(std::none_of(device.orders.begin(), device.orders.end(), [&](const order& o) {
      const auto* wanted = std::get_if<fetch_tensor>(&o.what);
      const bool is_for_nobody =
          wanted && answers_.by_ticket.at(wanted->ticket) > 0; // another fetch of the run has failed
      return o.session == s && !is_for_nobody;
    }));
  }
  template <class Command>
  void take(size_t s, const Command& told) {
    if constexpr (requires { answers_.take(told); })
      answers_.take(told);
    else
      sessions_[s].take(told);
  }
  void take(size_t, const give_memory_back& give) { give(); }

  const session_trial& trial_;
  const std::filesystem::path record_to_;
  dice dice_;
  int64_t memory_ = 0; // of each device
  std::vector<device_queue> devices_;
  std::vector<session> sessions_;
  std::deque<std::pair<size_t, size_t>> losses_; // sessions that are to hear of a device that another one abandoned
  std::map<uint64_t, bound_plan_ptr> bound_;
  std::set<execution_id> stopped_;
  answer_book answers_;
  run_time now_{};
  size_t started_ = 0;
};

/// Returns models and their inputs.
inline std::vector<session_trial> session_trials() {
  const session_options alternating{.policy = placement_policy::round_robin, .fuse = false};
  const named_tensors small{{"x", zeros(dtype::float32, {2, 3})}}, large{{"x", zeros(dtype::float32, {40, 3})}};
  const named_tensors row{{"x", zeros(dtype::float32, {4})}};
  std::vector<named_tensors> steps;
  for (int64_t n = 1; n <= 8; ++n)
    steps.push_back({{"x", zeros(dtype::float32, {n, 3})}});
  return {{chain(4, {dim::symbol("n"), 3}), {small, large}, alternating},
          {chain(4, {dim::symbol("n"), 3}), steps, alternating, true},
          {fan_out(3, 2), {row}, alternating},
          {fan_out(2, 2), {row}, {}},
          {growing_loop(), {growing_inputs(3, 1e9F), growing_inputs(0, 1)}, alternating}};
}

} // namespace troupe::test

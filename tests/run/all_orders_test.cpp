// The session machine in every order of what may happen in a small world, not in some: each device answers its orders
// one after the other, plans come when they come; at any moment a device may be lost, leave or fail a chunk, and a run
// may be cancelled, as often as the scope of the search says.
// A world has been in a place before if the same has been reported, in whatever order, and the same is outstanding.
#include "run/session_machine.hpp"
#include "run/shared_ledger.hpp"
#include "support/all_orders.hpp"
#include "support/control_models.hpp"
#include "support/far_values.hpp"
#include "support/small_models.hpp"

#include <deque>

using namespace troupe;
using namespace troupe::test;

namespace {

/// How often something may happen beside answers.
struct troubles {
  size_t losses = 0, cancellations = 0, failures = 0, leavings = 0;
};

struct scope {
  graph model;
  named_tensors inputs;
  size_t devices = 2, runs = 1;
  troubles most;
};

/// One world, from its beginning, in which `steps` says what happens next.
class small_world {
public:
  explicit small_world(const scope& s) : left_(s.most) {
    std::vector<device_info> infos;
    ledger_accounts accounts;
    for (size_t d = 0; d < s.devices; ++d) {
      devices_.push_back({.ledger = std::make_shared<shared_ledger>(memory)});
      infos.push_back({.name = fmt::format("d{}", d), .kind = device_kind::null, .memory_bytes = memory});
      accounts.push_back(devices_[d].ledger->open([this] { told_ = true; }));
    }
    const session_options how{.policy = placement_policy::round_robin, .fuse = false};
    auto plans = std::make_shared<session_plans>(make_model(s.model, how, 0), infos);
    machine_ = std::make_unique<session_machine>(infos, std::move(accounts), std::move(plans), completion_mode::device);
    for (size_t r = 0; r < s.runs; ++r) {
      runs_.push_back({.request = std::make_shared<run_request>(s.inputs, run_options{}), .end = {}});
      tell([&] { machine_->start_run(runs_.back().request); });
    }
  }

  /// What can happen now, in words.
  std::vector<std::string> choices() const {
    std::vector<std::string> all;
    for (size_t d = 0; d < devices_.size(); ++d) {
      const device_queue& device = devices_[d];
      if (!device.orders.empty()) {
        all.push_back(fmt::format("{} answers {}", d, text_of(device.orders.front())));
        if (left_.failures > 0 && std::holds_alternative<chunk_work>(device.orders.front()))
          all.push_back(fmt::format("{} fails {}", d, text_of(device.orders.front())));
      }
      if (left_.losses > 0 && !device.lost && !is_done())
        all.push_back(fmt::format("{} is lost", d));
      if (left_.leavings > 0 && !device.lost && !device.leaves && !is_done())
        all.push_back(fmt::format("{} leaves", d));
    }
    if (wanted_)
      all.emplace_back("a plan comes");
    if (told_)
      all.emplace_back("memory changes");
    if (!going_on_.empty())
      all.emplace_back("control flow goes on");
    for (size_t r = 0; r < runs_.size(); ++r)
      if (left_.cancellations > 0 && runs_[r].end.empty())
        all.push_back(fmt::format("{} is cancelled", r));
    return all;
  }

  void take(const std::string& choice) {
    reported_.insert(choice);
    const auto number = static_cast<size_t>(choice[0] - '0');
    if (choice == "a plan comes")
      plan();
    else if (choice == "memory changes")
      tell([&] { told_ = false, machine_->on_memory_changed(); });
    else if (choice == "control flow goes on") {
      const continue_control next = going_on_.front();
      going_on_.pop_front();
      tell([&] { machine_->on(next); });
    } else if (choice.ends_with(" is cancelled"))
      tell([&] { --left_.cancellations, machine_->cancel(runs_[number].request->ticket); });
    else if (choice.ends_with(" is lost"))
      tell([&] { --left_.losses, machine_->lose_device(number, "the test took it"); });
    else if (choice.ends_with(" leaves"))
      tell([&] {
        --left_.leavings;
        devices_[number].leaves = true;
        machine_->leave_device(number, "the test wants it to");
      });
    else
      answer(number, choice.find(" fails ") != std::string::npos);
  }

  /// What has been reported and is outstanding, executions by the order in which they began.
  std::string place() const {
    std::string text = fmt::format("{} {} {}|", told_, wanted_.has_value(), going_on_.size());
    for (const played_run& r : runs_)
      text += r.end + "|";
    for (const std::string& r : reported_)
      text += r + ";";
    for (const device_queue& d : devices_) {
      text += d.lost ? "|lost" : "|";
      for (const order& o : d.orders)
        text += text_of(o) + ",";
    }
    return text;
  }

  /// At the end of a path.
  void check() const {
    CHECK(machine_->idle());
    CHECK_FALSE(machine_->next_deadline());
    const bool all_gone = std::ranges::all_of(devices_, [](const auto& d) { return d.lost || d.let_go; });
    const bool all_go = std::ranges::all_of(devices_, [](const auto& d) { return d.lost || d.leaves; });
    for (size_t d = 0; d < devices_.size(); ++d) {
      CHECK((devices_[d].lost || !machine_->has_work(d)));
      CHECK((devices_[d].lost || !devices_[d].leaves || devices_[d].let_go || all_go)); // the last one stays
    }
    const auto happened = [&](const char* what) {
      return std::ranges::any_of(reported_, [&](const auto& r) { return r.find(what) != std::string::npos; });
    };
    for (const played_run& r : runs_) {
      INFO(r.end);
      CHECK((r.end == "right" || (r.end == "cancelled" && happened(" is cancelled")) ||
             (r.end == "device_failed" && happened(" fails ")) || (r.end == "device_lost" && all_gone)));
    }
  }

private:
  static constexpr int64_t memory = int64_t{1} << 40;
  using order = std::variant<install_plan, chunk_work>;
  struct device_queue {
    std::shared_ptr<shared_ledger> ledger;
    std::deque<order> orders;
    bool lost = false, leaves = false, let_go = false;
  };
  struct played_run {
    run_request_ptr request;
    std::string end; // empty: it has no answer
  };

  bool is_done() const {
    return std::ranges::none_of(runs_, [](const played_run& r) { return r.end.empty(); });
  }

  std::string text_of(const order& o) const {
    if (const auto* plan = std::get_if<install_plan>(&o))
      return fmt::format("install {}", plans_.at(plan->bound->id));
    const auto& work = std::get<chunk_work>(o);
    return fmt::format("chunk {} of {}{}", work.chunk, executions_.at(work.execution),
                       work.stop->load() ? " stopped" : "");
  }

  void plan() {
    const plan_wanted job = *std::exchange(wanted_, std::nullopt);
    const planned made{job.job, capture(job.make)};
    tell([&] { machine_->on(made); });
  }

  void answer(size_t device, bool fails) {
    order first = std::move(devices_[device].orders.front());
    devices_[device].orders.pop_front();
    if (const auto* plan = std::get_if<install_plan>(&first))
      return tell([&] { machine_->on(device, plan_installed{plan->bound->id, plan->self, {}}); });
    auto& work = std::get<chunk_work>(first);
    chunk_ended ended{work.execution, work.chunk, {}};
    left_.failures -= fails ? 1 : 0;
    if (work.stop->load())
      ended.result = {.code = errc::cancelled, .message = "dropped"};
    else if (fails)
      ended.result = {.code = errc::device_failed, .message = "the test says so"};
    else {
      for (const value_ref& read : work.uploads)
        CHECK(read->filled()); // no value is read before it is written
      fill_with_zeros(work, *bound_.at(work.bound_plan));
    }
    tell([&] { machine_->on(ended); });
  }

  template <class Event>
  void tell(Event&& event) {
    event();
    std::vector<command> commands;
    do {
      machine_->take_commands(commands);
      for (command& c : commands)
        std::visit([&](auto& what) { carry_out(what); }, c);
    } while (machine_->use_spare_time());
  }

  void carry_out(device_order& order) {
    device_queue& device = devices_[order.device];
    if (device.lost)
      return;
    if (auto* plan = std::get_if<install_plan>(&order.what)) {
      bound_[plan->bound->id] = plan->bound;
      plans_.emplace(plan->bound->id, plans_.size());
      device.orders.emplace_back(*plan);
    } else if (auto* chunks = std::get_if<run_chunks>(&order.what)) {
      for (chunk_work& work : chunks->works) {
        executions_.emplace(work.execution, executions_.size());
        device.orders.emplace_back(std::move(work));
      }
    }
  }
  void carry_out(const abandon_device& a) {
    devices_[a.device].lost = true;
    devices_[a.device].orders.clear();
  }
  void carry_out(const run_answer& a) {
    const auto run = std::ranges::find(runs_, a.ticket, [](const played_run& r) { return r.request->ticket; });
    CHECK(run->end.empty()); // each is answered once
    run->end = a.why.failed() ? std::string(to_string(a.why.code)) : "right";
  }
  void carry_out(const plan_wanted& job) { wanted_ = job; }
  void carry_out(const give_memory_back& give) { give(); }
  void carry_out(const let_device_go& gone) { devices_[gone.device].let_go = true; }
  void carry_out(const continue_control& next) { going_on_.push_back(next); }
  void carry_out(const query_answer&) {}

  troubles left_;
  std::vector<device_queue> devices_;
  std::unique_ptr<session_machine> machine_;
  std::vector<played_run> runs_;
  std::map<uint64_t, bound_plan_ptr> bound_;
  std::map<uint64_t, size_t> plans_;          // by bound plan, in the order of their first install
  std::map<execution_id, size_t> executions_; // in the order in which they began
  std::optional<plan_wanted> wanted_;
  std::multiset<std::string> reported_;
  std::deque<continue_control> going_on_;
  bool told_ = false;
};

/// Searches all worlds of a model in which `most` troubles may happen, of whatever kinds.
void search_all(const std::string& name, scope s, size_t most) {
  orders_seen seen;
  for (size_t losses = 0; losses <= most; ++losses)
    for (size_t cancellations = 0; losses + cancellations <= most; ++cancellations)
      for (size_t failures = 0; losses + cancellations + failures <= most; ++failures) {
        s.most = {losses, cancellations, failures, most - losses - cancellations - failures};
        INFO(fmt::format("{}, {} devices, {} runs; {} losses, {} cancellations, {} failures, {} leave", name, s.devices,
                         s.runs, losses, cancellations, failures, s.most.leavings));
        seen.add(search_all_orders<small_world>(s));
      }
  WARN(fmt::format("{}, {} devices, {} runs, {} troubles: {}", name, s.devices, s.runs, most, seen.text()));
}

/// Two branches that meet.
graph diamond() {
  graph_builder b;
  const value_id x = b.input("x", {4});
  b.output(b.op("Add", {b.op("Relu", {x}), b.op("Sigmoid", {x})}));
  return b.g;
}

} // namespace

TEST_CASE("in every order of a small run it is answered once, and right unless it is cancelled", "[run][A13][C11]") {
  const named_tensors row{{"x", zeros(dtype::float32, {4})}};
  for (const size_t devices : {2, 3}) {
    search_all("a chain of 5", {chain(5, {4}), row, devices}, 2);
    search_all("two chains of 2", {fan_out(2, 2), row, devices}, 2);
    search_all("a diamond", {diamond(), row, devices}, 2);
  }
  search_all("a diamond", {diamond(), row, 2, 2}, 1);
  search_all("a loop", {growing_loop(), growing_inputs(2, 1), 2}, 1);
}

TEST_CASE("in every order of two small runs with more trouble, each is answered once", "[run][A13][C11][slow]") {
  const named_tensors row{{"x", zeros(dtype::float32, {4})}};
  search_all("two chains of 2", {fan_out(2, 2), row, 3}, 3);
  search_all("a diamond", {diamond(), row, 2, 2}, 2);
  search_all("a diamond", {diamond(), row, 3, 2}, 1);
  search_all("a loop", {growing_loop(), growing_inputs(2, 1), 2}, 2);
}

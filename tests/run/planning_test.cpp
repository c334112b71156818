// Plans that are made while the session goes on: which runs wait for them, and which do not.
#include "run/session_machine.hpp"
#include "run/shared_ledger.hpp"
#include "support/catch.hpp"
#include "support/small_models.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

/// A session on two devices that answer nothing; plans are made when the test lets them.
class planning_session {
public:
  explicit planning_session(const session_options& options = {}) {
    const std::vector<device_info> devices{info_of(0), info_of(1)};
    auto plans = std::make_shared<session_plans>(make_model(chain(3, {dim::symbol("n")}), options, 0), devices);
    ledger_accounts accounts{account_of(devices[0]), account_of(devices[1])};
    machine_ =
        std::make_unique<session_machine>(devices, std::move(accounts), std::move(plans), completion_mode::device);
  }

  static device_info info_of(size_t device) {
    return {.name = fmt::format("d{}", device), .kind = device_kind::null, .memory_bytes = int64_t{1} << 40};
  }

  static std::shared_ptr<ledger_account> account_of(const device_info& device) {
    return std::make_shared<shared_ledger>(device.memory_bytes)->open([] {});
  }

  /// Starts a run with `n` elements; returns its ticket.
  uint64_t run(int64_t n, std::chrono::milliseconds timeout = std::chrono::milliseconds(0)) {
    const auto request = std::make_shared<run_request>(named_tensors{{"x", tensor(dtype::float32, {n})}},
                                                       run_options{.timeout = timeout});
    tell([&] { machine_->start_run(request); });
    return request->ticket;
  }

  /// Makes the plan that is wanted, or says that it failed; then, while `all`, the one that is wanted next.
  void plan(bool all = true, const failure& why = {}) {
    do {
      REQUIRE(wanted_);
      const plan_wanted job = *std::exchange(wanted_, std::nullopt);
      const planned made{job.job, why.failed() ? why : capture(job.make)};
      tell([&] { machine_->on(made); });
    } while (all && wanted_);
  }

  template <class Event>
  void tell(Event&& event) {
    machine_->set_time(now);
    event();
    std::vector<command> commands;
    do {
      machine_->take_commands(commands);
      for (command& c : commands)
        if (auto* order = std::get_if<device_order>(&c))
          take(*order);
        else if (auto* job = std::get_if<plan_wanted>(&c))
          wanted_ = *job;
        else if (auto* answer = std::get_if<run_answer>(&c))
          ended[answer->ticket] = answer->why;
        else if (auto* found = std::get_if<query_answer>(&c))
          bound[found->query] = found->bound;
    } while (machine_->use_spare_time());
  }

  bool wants_plan() const { return wanted_.has_value(); }
  session_machine& machine() { return *machine_; }

  run_time now{};
  std::map<size_t, size_t> chunks; // sent, by device
  std::vector<install_plan> installs;
  std::map<uint64_t, failure> ended;
  std::map<uint64_t, bound_plan_ptr> bound;

private:
  void take(const device_order& order) {
    if (const auto* sent = std::get_if<run_chunks>(&order.what))
      chunks[order.device] += sent->works.size();
    else if (const auto* plan = std::get_if<install_plan>(&order.what))
      installs.push_back(*plan);
    else if (const auto* retired = std::get_if<retire_plan>(&order.what))
      std::erase_if(installs, [&](const install_plan& i) { return i.bound->id == retired->bound_plan; });
  }

  std::unique_ptr<session_machine> machine_;
  std::optional<plan_wanted> wanted_;
};

} // namespace

TEST_CASE("a run whose plan is there goes on while another's is being made", "[run][C11]") {
  planning_session s;
  s.run(4);
  CHECK(s.chunks.empty());
  s.plan();
  CHECK(s.chunks[0] == 1);
  s.run(5);
  REQUIRE(s.wants_plan());
  s.run(4);
  CHECK(s.chunks[0] == 2);
  s.plan();
  CHECK(s.chunks[0] == 3);
  CHECK(s.machine().stats().bound_plans.hits == 1);
  CHECK(s.machine().stats().bound_plans.misses == 2);
}

TEST_CASE("a decoder's next step is bound and installed while a step runs", "[run][C11][E6]") {
  planning_session s;
  for (const int64_t n : {4, 5}) {
    s.run(n);
    s.plan();
  }
  REQUIRE(s.installs.size() == 2);
  s.run(6);
  s.plan(false);
  CHECK(s.chunks[0] == 3); // the third runs
  REQUIRE(s.wants_plan()); // and the fourth is foreseen
  s.plan(false);
  CHECK_FALSE(s.wants_plan());
  REQUIRE(s.installs.size() == 4);
  CHECK(s.chunks[0] == 3);
  const auto why = GENERATE(errc::internal, errc::out_of_memory, errc::unsupported, errc::io); // internal: none
  const bool refused = why != errc::internal;
  if (refused) { // the device does not take it
    const uint64_t id = s.installs.back().bound->id;
    s.tell([&] { s.machine().on(0, plan_installed{id, s.installs.back().self, {why, "the test says so"}}); });
    CHECK(s.installs.size() == 3);
    CHECK(s.ended.empty());
  }
  s.run(7);
  CHECK(s.chunks[0] == (refused ? 3 : 4)); // at once
  REQUIRE(s.wants_plan());                 // the fifth, or again the fourth
  s.plan(false);
  CHECK(s.chunks[0] == 4);
  s.run(20); // not as foreseen
  s.plan();
  CHECK(s.chunks[0] == 5);
  CHECK(s.ended.empty());
}

TEST_CASE("a step that is foreseen for devices as they were is not installed", "[run][C11][E6]") {
  planning_session s({.policy = placement_policy::round_robin, .fuse = false});
  for (const int64_t n : {4, 5}) {
    s.run(n);
    s.plan();
  }
  s.run(6);
  s.plan(false);
  REQUIRE(s.wants_plan());
  CHECK(s.chunks[0] == 3); // which the first device still has when the second is gone
  s.tell([&] { s.machine().lose_device(1, "the test took it"); });
  s.installs.clear();
  s.plan(false); // of the foreseen step
  CHECK(s.installs.empty());
  CHECK(s.wants_plan()); // the runs start over on the other device
}

TEST_CASE("plans that runs wait for are made before foreseen ones, and a foreseen step's once", "[run][C11][E6]") {
  planning_session s;
  for (const int64_t n : {4, 5}) {
    s.run(n);
    s.plan();
  }
  s.run(6);
  s.plan(false);
  s.run(7); // before the job that foresees it has ended
  CHECK(s.chunks[0] == 3);
  s.plan(false);
  CHECK(s.chunks[0] == 4);
  CHECK(s.installs.size() == 4);
  CHECK(s.machine().stats().bound_plans.misses == 3);
}

TEST_CASE("runs that want the same plan have it made once", "[run][C11][E6]") {
  planning_session s;
  s.run(4);
  s.run(4);
  s.plan(false); // the program
  s.plan(false); // the plan
  s.plan(false); // the binding
  CHECK_FALSE(s.wants_plan());
  CHECK(s.chunks[0] == 2);
  CHECK(s.machine().stats().plans.misses == 1);
  CHECK(s.machine().stats().bound_plans.misses == 1);
}

TEST_CASE("cancellation and deadlines are heard while a plan is made, and the plan is kept", "[run][C11][A13]") {
  planning_session s;
  const uint64_t cancelled = s.run(4), late = s.run(4, std::chrono::milliseconds(5));
  s.tell([&] { s.machine().cancel(cancelled); });
  CHECK(s.ended.at(cancelled).code == errc::cancelled);
  CHECK(s.machine().next_deadline() == s.now + std::chrono::milliseconds(5));
  s.now += std::chrono::milliseconds(5);
  s.tell([&] { s.machine().tick(); });
  CHECK(s.ended.at(late).code == errc::timeout);
  CHECK(s.machine().idle());
  s.plan(false);
  CHECK_FALSE(s.wants_plan()); // no run wants the plan that would come after it
  CHECK(s.chunks.empty());
  s.run(4);
  s.plan(false); // the program is there: the plan
  s.plan(false); // the binding
  CHECK(s.chunks[0] == 1);
  CHECK_FALSE(s.machine().idle());
}

TEST_CASE("a plan that cannot be made ends the runs that want it, and no others", "[run][C11][A13]") {
  planning_session s;
  const uint64_t fails = s.run(4), goes_on = s.run(5);
  s.plan(false, {errc::out_of_memory, "the test says so"});
  CHECK(s.ended.at(fails).message == "the test says so");
  REQUIRE(s.wants_plan());
  s.plan();
  CHECK_FALSE(s.ended.contains(goes_on));
  CHECK(s.chunks[0] == 1);
}

TEST_CASE("a run whose plan was made for a device that is gone meanwhile is planned again", "[run][A13][E6]") {
  planning_session s;
  const uint64_t ticket = s.run(4);
  s.plan(false); // the program
  s.tell([&] { s.machine().lose_device(0, "the test took it"); });
  s.plan();
  CHECK(s.chunks[1] == 1);
  const uint64_t lost = s.run(5);
  s.tell([&] { s.machine().lose_device(1, "the test took it"); });
  s.plan();
  CHECK(s.ended.at(lost).code == errc::device_lost);
  CHECK(s.ended.at(ticket).code == errc::device_lost);
}

TEST_CASE("a question for a plan is answered by the plan that runs use", "[run][E6]") {
  planning_session s;
  s.tell([&] { s.machine().ask_plan(7, {{"x", tensor(dtype::float32, {4})}}); });
  s.plan();
  REQUIRE(s.bound.at(7));
  s.run(4);
  CHECK(s.chunks[0] == 1);
}

TEST_CASE("a device that joins is used by runs that begin after that", "[run][E6]") {
  planning_session s({.policy = placement_policy::round_robin, .fuse = false});
  s.run(4);
  s.plan();
  s.tell([&] { s.machine().lose_device(0, "the test took it"); });
  s.plan();
  const device_info joined = planning_session::info_of(2);
  s.tell([&] { s.machine().add_device(joined, planning_session::account_of(joined)); });
  s.tell([&] { s.machine().lose_device(1, "the test took it"); });
  s.plan();
  CHECK(s.chunks[2] == 1);
}

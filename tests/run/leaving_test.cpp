// Devices that leave in order, as a session machine sees them.
#include "run/session_machine.hpp"
#include "run/shared_ledger.hpp"
#include "support/catch.hpp"
#include "support/far_values.hpp"
#include "support/small_models.hpp"

#include <deque>
#include <set>

using namespace troupe;
using namespace troupe::test;

namespace {

/// A session on made-up devices, which answer when the test lets them.
class patient_session {
public:
  explicit patient_session(std::vector<std::string> names,
                           const session_options& options = {.policy = placement_policy::round_robin, .fuse = false}) {
    for (std::string& name : names)
      devices_.push_back({.name = std::move(name), .kind = device_kind::null, .memory_bytes = int64_t{1} << 40});
    ledger_accounts accounts;
    for (const device_info& d : devices_)
      accounts.push_back(account_of(d));
    auto plans = std::make_shared<session_plans>(make_model(chain(4), options, 0), devices_);
    machine_ =
        std::make_unique<session_machine>(devices_, std::move(accounts), std::move(plans), completion_mode::device);
  }

  uint64_t start(named_tensors inputs, run_options options = {}) {
    const auto request = std::make_shared<run_request>(std::move(inputs), std::move(options));
    tell([&] { machine_->start_run(request); });
    return request->ticket;
  }
  void leave(size_t device) {
    tell([&] { machine_->leave_device(device, "its owner ends it"); });
  }
  void lose(size_t device) {
    tell([&] { machine_->lose_device(device, "it was too slow"); });
  }
  void join(const std::string& name) {
    devices_.push_back({.name = name, .kind = device_kind::null, .memory_bytes = int64_t{1} << 40});
    tell([&] { machine_->add_device(devices_.back(), account_of(devices_.back())); });
  }

  /// Answers the oldest order; returns whether there was one.
  bool answer_one() {
    if (orders_.empty())
      return false;
    const std::function<void()> oldest = std::move(orders_.front());
    orders_.pop_front();
    oldest();
    return true;
  }
  run_answer run_to_end(uint64_t ticket) {
    while (answer_one()) {
    }
    REQUIRE(ended.contains(ticket));
    return std::move(ended.at(ticket));
  }
  run_answer run(named_tensors inputs, run_options options = {}) {
    return run_to_end(start(std::move(inputs), std::move(options)));
  }

  std::map<uint64_t, run_answer> ended;
  std::set<size_t> let_go;
  std::map<size_t, std::set<uint64_t>> installed; // by device
  std::vector<std::string> fetched;               // inputs

private:
  static std::shared_ptr<ledger_account> account_of(const device_info& device) {
    return std::make_shared<shared_ledger>(device.memory_bytes)->open([] {});
  }

  void tell(const std::function<void()>& event) {
    event();
    std::vector<command> commands;
    machine_->take_commands(commands);
    for (command& c : commands)
      if (auto* order = std::get_if<device_order>(&c))
        take(order->device, *order);
      else if (auto* job = std::get_if<plan_wanted>(&c))
        tell([&] { machine_->on(planned{job->job, capture(job->make)}); });
      else if (auto* answer = std::get_if<run_answer>(&c))
        ended.emplace(answer->ticket, std::move(*answer));
      else if (const auto* gone = std::get_if<let_device_go>(&c))
        CHECK(let_go.insert(gone->device).second);
  }

  void take(size_t device, device_order& order) {
    if (const auto* old = std::get_if<retire_plan>(&order.what)) {
      CHECK(installed[device].erase(old->bound_plan) == 1);
    } else if (auto* plan = std::get_if<install_plan>(&order.what)) {
      CHECK_FALSE(let_go.contains(device));
      installed[device].insert(plan->bound->id);
      bound_[plan->bound->id] = plan->bound;
      orders_.emplace_back([this, device, p = *plan] {
        tell([&] { machine_->on(device, {p.bound->id, p.self, {}}); });
      });
    } else if (auto* chunks = std::get_if<run_chunks>(&order.what)) {
      CHECK_FALSE(let_go.contains(device));
      for (chunk_work& work : chunks->works)
        orders_.emplace_back([this, device, w = std::move(work)] { answer(devices_[device], w); });
    } else if (auto* fetch = std::get_if<fetch_tensor>(&order.what)) {
      fetched.push_back(fetch->input);
      orders_.emplace_back([this, f = *fetch] {
        tensor_fetched answer{f.ticket, f.input, {.value = zeros(f.value->type(), f.value->dims())}};
        tell([&] { machine_->on(answer); });
      });
    }
  }

  void answer(const device_info& device, const chunk_work& work) {
    const bound_plan& bound = *bound_.at(work.bound_plan);
    for (size_t i = 0; i < work.downloads.size(); ++i) {
      const value_id v = bound.source->chunks[work.chunk].downloads[i];
      const dtype type = bound.source->program->values[v].type;
      moved_value& value = *work.downloads[i];
      value.fill(value.goes_to_host() ? zeros(type, bound.dims[v]) : tensor{},
                 value.stays() ? std::make_shared<const far_resident>(type, bound.dims[v], device) : nullptr);
    }
    chunk_ended ended{work.execution, work.chunk, {}};
    tell([&] { machine_->on(ended); });
  }

  std::vector<device_info> devices_;
  std::unique_ptr<session_machine> machine_;
  std::deque<std::function<void()>> orders_;
  std::map<uint64_t, bound_plan_ptr> bound_;
};

const named_tensors six{{"x", floats({2, 3}, {1, 2, 3, 4, 5, 6})}};
using names = std::vector<std::string>;
using indices = std::set<size_t>;

names devices_of(const run_answer& a) {
  names all;
  for (const auto& [name, ms] : a.result.stats.busy_ms)
    all.push_back(name);
  return all;
}

} // namespace

TEST_CASE("a run in flight on a device that leaves ends there, and runs that begin go elsewhere", "[run][D5]") {
  patient_session s({"a", "b"});
  const uint64_t first = s.start(six);
  s.answer_one(); // an install
  s.leave(1);
  CHECK(s.let_go.empty());
  const uint64_t second = s.start(six);
  const run_answer here = s.run_to_end(second), both = std::move(s.ended.at(first));
  REQUIRE_FALSE(both.why.failed());
  CHECK(devices_of(both) == names{"a", "b"});
  CHECK(both.result.stats.lost_devices.empty());
  REQUIRE_FALSE(here.why.failed());
  CHECK(devices_of(here) == names{"a"});
  CHECK(s.let_go == indices{1});
  CHECK(s.installed[1].empty());
  CHECK(s.installed[0].size() == 1);
}

TEST_CASE("an idle session lets a device that leaves go at once", "[run][D5]") {
  patient_session s({"a", "b"});
  s.run(six);
  REQUIRE_FALSE(s.installed[1].empty());
  s.leave(1);
  CHECK(s.let_go == indices{1});
  CHECK(s.installed[1].empty());
  s.leave(1);
  s.lose(1); // now its host is gone
  CHECK(devices_of(s.run(six)) == names{"a"});
}

TEST_CASE("a value on a device that leaves is taken along by the next run that reads it", "[run][D5]") {
  patient_session s({"a", "b"}, {.pins = {{"*", "b"}}, .fuse = false});
  const std::string output = s.run(six).result.outputs.begin()->first;
  const device_tensor there = s.run(six, {.keep = {output}}).result.kept.at(output);
  REQUIRE(there->device() == "b");
  s.leave(1);
  CHECK(s.let_go == indices{1}); // a value that a caller holds there does not keep the device
  const run_answer next = s.run({}, {.device_inputs = {{"x", there}}, .keep = {output}});
  REQUIRE_FALSE(next.why.failed());
  CHECK(s.fetched == names{"x"});
  CHECK(next.result.kept.at(output)->device() == "a");
  s.lose(1);
  const run_answer late = s.run({}, {.device_inputs = {{"x", there}}});
  CHECK(late.why.code == errc::device_lost);
  CHECK_THAT(late.why.message, Catch::Contains("'b'") && Catch::Contains("it was too slow"));
}

TEST_CASE("devices that leave are used as long as no other is there", "[run][D5]") {
  patient_session s({"a", "b"});
  s.leave(0);
  CHECK(s.let_go == indices{0});
  s.leave(1);
  CHECK(s.let_go == indices{0});
  CHECK(devices_of(s.run(six)) == names{"b"});
  s.join("c");
  CHECK(s.let_go == indices{0, 1});
  CHECK(devices_of(s.run(six)) == names{"c"});
  s.lose(2);
  CHECK_THAT(s.run(six).why.message,
             Catch::Contains("device 'a' leaves: its owner ends it") && Catch::Contains("device 'c' is lost"));
}

TEST_CASE("a run on a device that leaves too soon is done again elsewhere", "[run][D5]") {
  patient_session s({"a", "b"});
  const uint64_t run = s.start(six);
  s.leave(1);
  s.lose(1);
  const run_answer again = s.run_to_end(run);
  REQUIRE_FALSE(again.why.failed());
  CHECK(devices_of(again) == names{"a"});
  CHECK(again.result.stats.lost_devices == names{"b"});
  CHECK(s.let_go.empty());
}

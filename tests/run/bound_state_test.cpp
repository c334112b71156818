// A bound session without actors: the values that it carries from step to step, over a session machine and devices that
// are lost at every point.
#include "run/bound_state.hpp"
#include "run/session_machine.hpp"
#include "run/shared_ledger.hpp"
#include "support/catch.hpp"
#include "support/reference_device.hpp"
#include "support/small_models.hpp"
#include "support/thrown.hpp"

#include <deque>

using namespace troupe;
using namespace troupe::test;

namespace {

tensor number(float value) {
  return tensor::of<float>({1}, std::array{value});
}

float number_in(const tensor& t) {
  return t.values<float>()[0];
}

device_tensor there(float value) {
  return make_host_resident(number(value), "host");
}

carried_bundle made(float value) {
  return std::make_shared<const std::vector<carried_value>>(
      std::initializer_list{carried_value(there(value)), carried_value(there(-value))});
}

struct far_resident final : resident {
  far_resident() : resident(dtype::float32, {1}, "far") {}
};

const std::vector<output_binding> pairs{{"next1", "state1"}, {"next2", "state2"}};
const std::vector<carried_pair> places{{0, 1}, {1, 2}};

/// Conditions of a trial of a decoder. Events, which are all that a device or the planner does, are counted from 0.
struct trial {
  uint64_t interval = 0;
  size_t lag = 0;                  // events that a copy waits for its device
  std::map<size_t, size_t> losses; // event → device
};

/// A bound session over three devices, whose values are on two of them.
class decoder {
public:
  explicit decoder(trial t) : trial_(std::move(t)), state_(pairs, places, trial_.interval, 0) {
    std::vector<device_info> infos;
    ledger_accounts accounts;
    for (const char* name : {"a", "b", "c"}) {
      devices_.push_back({std::make_unique<reference_device>(name), {}, false});
      infos.push_back(devices_.back().device->info());
      accounts.push_back(std::make_shared<shared_ledger>(infos.back().memory_bytes)->open([] {}));
    }
    const session_options by_node{.policy = placement_policy::round_robin, .fuse = false};
    auto plans = std::make_shared<session_plans>(make_model(two_states(), by_node, 0), infos);
    machine_ = std::make_unique<session_machine>(infos, std::move(accounts), plans, completion_mode::device);
  }

  /// Takes this number of steps, repeating those that are lost; the input of step n is n.
  void play(uint64_t steps) {
    while (state_.step() < steps) {
      REQUIRE(events_ < 10'000);
      step();
    }
  }

  float y() const { return y_; }
  size_t events() const { return events_; }
  /// The steps that had been taken when the state went back, and how many were left.
  std::vector<std::pair<uint64_t, uint64_t>> rollbacks;

private:
  struct device_queue {
    std::unique_ptr<reference_device> device;
    std::deque<std::pair<size_t, device_order>> orders; // with the event before which each waits
    bool lost = false;
  };

  void step() {
    named_tensors inputs{{"x", number(static_cast<float>(state_.step() + 1))}};
    if (state_.step() == 0 && rollbacks.empty())
      inputs.insert({{"state1", number(0)}, {"state2", number(0)}});
    run_options options;
    const bool begins = state_.begins_with(inputs, options);
    const named_device_tensors initial{{"state1", there(0)}, {"state2", there(0)}};
    carried_values carried = state_.carry(inputs, options);
    const auto request = std::make_shared<run_request>(std::move(inputs), std::move(options), std::move(carried));
    const run_answer answer = await(request);
    if (answer.why.failed()) {
      CHECK(answer.why.code == errc::device_lost);
      return go_back();
    }
    CHECK(answer.result.kept.empty());
    begins ? state_.begin(request->carried.made, initial) : state_.advance(request->carried.made);
    y_ = number_in(answer.result.outputs.at("y"));
    start_copy();
  }

  void go_back() {
    const uint64_t taken = state_.step();
    REQUIRE(state_.go_back());
    copy_ = 0;
    rollbacks.emplace_back(taken, state_.step());
  }

  void start_copy() {
    named_device_tensors due = state_.begin_copy();
    if (due.empty())
      return;
    const auto request = std::make_shared<run_request>(named_tensors{}, run_options{.device_inputs = std::move(due)});
    request->only_fetches = true;
    copy_ = request->ticket;
    tell([&] { machine_->start_run(request); });
  }

  run_answer await(const run_request_ptr& request) {
    tell([&] { machine_->start_run(request); });
    while (!answers_.contains(request->ticket))
      happen();
    return std::move(answers_.at(request->ticket));
  }

  /// Lets the next thing happen: a loss, a plan, or the oldest order of the first device that may carry one out.
  void happen() {
    const size_t event = events_++;
    REQUIRE(event < 10'000);
    if (const auto loss = trial_.losses.find(event); loss != trial_.losses.end())
      tell([&] { machine_->lose_device(loss->second, "the test took it"); });
    if (job_) {
      const plan_wanted job = *std::exchange(job_, std::nullopt);
      return tell([&] { machine_->on(planned{job.job, capture(job.make)}); });
    }
    for (size_t d = 0; d < devices_.size(); ++d) {
      auto& orders = devices_[d].orders;
      const auto due = std::find_if(orders.begin(), orders.end(), [&](const auto& o) { return o.first <= event; });
      if (due == orders.end())
        continue;
      device_order order = std::move(due->second);
      orders.erase(due);
      return carry_out(d, order);
    }
  }

  void carry_out(size_t d, device_order& order) {
    reference_device& device = *devices_[d].device;
    if (const auto* install = std::get_if<install_plan>(&order.what)) {
      device.install(install->bound, install->self);
      tell([&] { machine_->on(d, {install->bound->id, install->self, {}}); });
    } else if (auto* chunks = std::get_if<run_chunks>(&order.what)) {
      for (chunk_work& work : chunks->works) {
        chunk_ended ended{work.execution, work.chunk, {.code = errc::cancelled, .message = "dropped"}};
        if (!work.stop->load())
          device.submit(std::move(work), [&](chunk_result result) { ended.result = std::move(result); });
        tell([&] { machine_->on(ended); });
      }
    } else if (const auto* fetch = std::get_if<fetch_tensor>(&order.what)) {
      device.fetch(fetch->value, [&](fetch_result result) {
        tensor_fetched fetched{fetch->ticket, fetch->input, std::move(result)};
        tell([&] { machine_->on(fetched); });
      });
    }
  }

  template <class Event>
  void tell(Event&& event) {
    event();
    std::vector<command> commands;
    machine_->take_commands(commands);
    for (command& c : commands)
      if (auto* order = std::get_if<device_order>(&c)) {
        const bool waits = std::holds_alternative<fetch_tensor>(order->what);
        if (!devices_[order->device].lost)
          devices_[order->device].orders.emplace_back(events_ + (waits ? trial_.lag : 0), std::move(*order));
      } else if (auto* job = std::get_if<plan_wanted>(&c)) {
        job_ = std::move(*job);
      } else if (const auto* lost = std::get_if<abandon_device>(&c)) {
        devices_[lost->device].lost = true;
        devices_[lost->device].orders.clear();
      } else if (auto* answer = std::get_if<run_answer>(&c)) {
        take(std::move(*answer));
      }
  }

  void take(run_answer answer) {
    if (answer.ticket == copy_)
      answer.why.failed() ? state_.drop_copy() : state_.end_copy(answer.result.outputs);
    CHECK(answers_.emplace(answer.ticket, std::move(answer)).second); // once
  }

  const trial trial_;
  bound_state state_;
  std::vector<device_queue> devices_;
  std::unique_ptr<session_machine> machine_;
  std::optional<plan_wanted> job_;
  std::map<uint64_t, run_answer> answers_; // by ticket
  uint64_t copy_ = 0;                      // the ticket of the one on its way
  size_t events_ = 0;
  float y_ = 0;
};

constexpr uint64_t all_steps = 7;

/// Returns y of the last step.
float undisturbed() {
  float one = 0, two = 0;
  for (uint64_t n = 1; n <= all_steps; ++n)
    two += one += static_cast<float>(n);
  return -two;
}

} // namespace

TEST_CASE("a decoder that loses a device at any point says in the end what it says undisturbed", "[run][B7][C11]") {
  const uint64_t interval = GENERATE(1, 2, 3);
  const size_t lag = GENERATE(0, 4, 100'000); // copies come at once, late, never
  decoder calm({interval, lag, {}});
  calm.play(all_steps);
  REQUIRE(calm.y() == undisturbed());
  CHECK(calm.rollbacks.empty());
  size_t rollbacks = 0;
  for (size_t event = 0; event < calm.events(); ++event)
    for (const size_t device : {0, 1}) {
      INFO("device " << device << " is lost before event " << event);
      decoder d({interval, lag, {{event, device}}});
      d.play(all_steps);
      CHECK(d.y() == undisturbed());
      CHECK(d.rollbacks.size() <= 1);
      rollbacks += d.rollbacks.size();
      for (const auto& [taken, left] : d.rollbacks) {
        CHECK(left % interval == 0);
        CHECK((lag > 4 ? left == 0 : taken - left < 2 * interval + lag / 2)); // a step is two events and more
      }
    }
  CHECK(rollbacks > calm.events() / 4);
}

TEST_CASE("a decoder that loses two devices one after the other goes on with the third", "[run][B7][C11]") {
  decoder calm({2, 4, {}});
  calm.play(all_steps);
  size_t most = 0;
  for (size_t event = 0; event < calm.events(); ++event)
    for (const size_t later : {1, 2, 5, 9, 20}) {
      INFO("devices are lost before events " << event << " and " << event + later);
      decoder d({2, 4, {{event, 0}, {event + later, 1}}});
      d.play(all_steps);
      CHECK(d.y() == undisturbed());
      most = std::max(most, d.rollbacks.size());
    }
  CHECK(most == 2);
}

TEST_CASE("copies are due after a number of steps, one at a time", "[run][B7]") {
  bound_state s(pairs, places, 3, 0);
  CHECK_FALSE(s.go_back());
  s.begin(made(1), {{"state1", there(10)}, {"state2", there(20)}});
  s.advance(made(2));
  CHECK(s.begin_copy().empty());
  s.advance(made(3));
  const named_device_tensors third = s.begin_copy();
  REQUIRE(third.size() == 2);
  CHECK(number_in(third.at("state2")->host()) == -3);
  for (int step = 4; step <= 7; ++step) {
    s.advance(made(static_cast<float>(step)));
    CHECK(s.begin_copy().empty()); // one is on its way
  }
  s.end_copy({{"state1", number(3)}, {"state2", number(-3)}});
  CHECK(s.begin_copy().size() == 2); // of step 7, late
  s.drop_copy();
  s.advance(made(8));
  CHECK(s.begin_copy().empty());
  CHECK(s.go_back());
  CHECK(s.step() == 3);
  CHECK(number_in(s.value("next2")->host()) == -3);
  s.begin(made(1), {{"state1", there(10)}, {"state2", there(20)}});
  CHECK(s.go_back());
  CHECK(s.step() == 0);
  CHECK(number_in(s.value("next1")->host()) == 10);
  CHECK(number_in(s.value("next2")->host()) == 20);
}

TEST_CASE("a copy of steps that are repeated, or of another beginning, counts for nothing", "[run][B7]") {
  bound_state s(pairs, places, 1, 0);
  const named_device_tensors initial{{"state1", there(0)}, {"state2", there(0)}};
  s.begin(made(1), initial);
  CHECK_FALSE(s.begin_copy().empty());
  const bool goes_back = GENERATE(false, true);
  goes_back ? static_cast<void>(s.go_back()) : static_cast<void>(s.begin(made(5), initial));
  CHECK_FALSE(s.is_copying());
  CHECK(thrown_by([&] { s.end_copy({}); }).code() == errc::internal);
  CHECK(s.go_back());
  CHECK(s.step() == 0);
}

TEST_CASE("initial values on a device are copied first, and are not a checkpoint before", "[run][B7]") {
  bound_state s(pairs, places, 2, 0);
  const device_tensor far = std::make_shared<const far_resident>();
  s.begin(made(1), {{"state1", far}, {"state2", there(20)}});
  CHECK_FALSE(s.go_back());
  const named_device_tensors first = s.begin_copy();
  REQUIRE(first.size() == 2);
  CHECK(first.at("state1") == far);
  s.advance(made(2));
  CHECK(s.begin_copy().empty()); // due, but the first is on its way
  s.end_copy({{"state1", number(10)}, {"state2", number(20)}});
  CHECK(s.go_back());
  CHECK(s.step() == 0);
  CHECK(number_in(s.value("next1")->host()) == 10);
}

TEST_CASE("without checkpoints nothing is copied or kept", "[run][B7]") {
  bound_state s(pairs, places, 0, 0);
  s.begin(made(1), {});
  for (int step = 2; step < 9; ++step) {
    s.advance(made(static_cast<float>(step)));
    CHECK(s.begin_copy().empty());
  }
  CHECK_FALSE(s.go_back());
  CHECK(s.step() == 8);
}

TEST_CASE("copies for steps that are kept are due when these are full, and forget them", "[run][B7]") {
  bound_state s(pairs, places, 0, 20);
  const auto kept = [] {
    kept_step step;
    step.inputs["x"] = tensor(dtype::float32, {2});
    return step;
  };
  s.begin(made(1), {{"state1", there(10)}, {"state2", there(20)}}, kept());
  CHECK(s.can_repeat());
  s.advance(made(2), kept());
  CHECK(s.begin_copy().empty());
  s.advance(made(3), kept());
  CHECK(s.begin_copy().size() == 2);
  s.advance(made(4), kept());
  s.end_copy({{"state1", number(3)}, {"state2", number(-3)}});
  CHECK(s.go_back());
  CHECK(s.step() == 3);
  CHECK(s.can_repeat());
  CHECK(s.log().at(4).inputs.size() == 1);
  CHECK_FALSE(s.log().reaches(3));
  s.forget_later_steps();
  CHECK(s.can_repeat()); // there is nothing to repeat
  s.begin(made(1), {}, kept());
  CHECK_FALSE(s.can_repeat());
  CHECK(s.begin_copy().size() == 2); // the first copy is due after this step
}

// The session machine without actors: random orders of what can happen, each run answered exactly once.
#include "run/session_machine.hpp"
#include "support/catch.hpp"
#include "support/control_models.hpp"

#include <cstring>
#include <deque>
#include <random>

using namespace troupe;
using namespace troupe::test;

namespace {

/// What a machine is tried with.
struct trial {
  graph model;
  std::vector<named_tensors> inputs; // one of them for each run
  session_options options;
};

tensor zeros(dtype type, const shape& dims) {
  tensor t(type, dims);
  std::memset(t.mutable_data(), 0, static_cast<size_t>(t.bytes()));
  return t;
}

/// Devices that answer in their order, when the dice say so, mostly well; callers that start runs and give up; time that passes.
class world {
public:
  world(const trial& t, uint32_t seed) : trial_(t), random_(seed), queues_(3), lost_(3, false) {
    // A few arena slots: runs wait for memory, and plans spill.
    memory_ = chance(0.3) ? 1500 : chance(0.5) ? 6000 : int64_t{1} << 40;
    std::vector<device_info> infos;
    for (size_t d = 0; d < queues_.size(); ++d)
      infos.push_back(info_of(d));
    auto plans = std::make_shared<session_plans>(make_model(t.model, t.options, 0), infos);
    machine_ = std::make_unique<session_machine>(infos, std::move(plans), completion_mode::device);
  }

  /// Lets `count` things happen, then everything that is still to come.
  void play(int count) {
    for (int i = 0; i < count; ++i)
      happen();
    calm_ = true;
    for (;;) {
      const bool answered = answer_one(), made = plan();
      if (!answered && !made && going_on_.empty())
        break;
      go_on();
    }
    CHECK(machine_->idle());
    CHECK_FALSE(machine_->next_deadline());
    for (const auto& [ticket, answers] : answers_)
      CHECK(answers == 1);
  }

  size_t runs() const { return answers_.size(); }
  size_t right() const { return right_; }

private:
  bool chance(double p) { return std::uniform_real_distribution<>()(random_) < p; }
  size_t below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }

  void happen() {
    now_ += std::chrono::milliseconds(below(3));
    const double what = std::uniform_real_distribution<>()(random_);
    if (what < 0.15)
      start();
    else if (what < 0.2 && !answers_.empty())
      tell([&] {
        machine_->cancel(std::next(answers_.begin(), static_cast<ptrdiff_t>(below(answers_.size())))->first);
      });
    else if (what < 0.21)
      lose(below(lost_.size()));
    else if (what < 0.25)
      tell([&] { machine_->tick(); });
    else if (what < 0.35)
      go_on();
    else if (what < 0.45)
      plan();
    else if (what < 0.452)
      join();
    else
      answer_one();
  }

  void start() {
    run_options options;
    options.timeout = std::chrono::milliseconds(chance(0.2) ? 5 : 0);
    named_tensors inputs = trial_.inputs[below(trial_.inputs.size())];
    if (chance(0.05))
      inputs.clear();
    const auto request = std::make_shared<run_request>(std::move(inputs), options);
    answers_[request->ticket] = 0;
    if (chance(0.1))
      tell([&] { machine_->ask_plan(request->ticket, request->inputs); });
    else
      tell([&] { machine_->start_run(request); });
  }

  void lose(size_t device) {
    if (!lost_[device])
      tell([&] { machine_->lose_device(device, "the test took it"); });
  }

  void go_on() {
    if (going_on_.empty())
      return;
    const continue_control next = going_on_.front();
    going_on_.pop_front();
    tell([&] { machine_->on(next); });
  }

  /// Makes what the machine wants planned; returns whether there was anything.
  bool plan() {
    if (!wanted_)
      return false;
    const plan_wanted job = *std::exchange(wanted_, std::nullopt);
    planned made{job.job, capture(job.make)};
    if (!calm_ && chance(0.02))
      made.why = {errc::out_of_memory, "the test says so"};
    tell([&] { machine_->on(made); });
    if (!calm_ && chance(0.05))
      tell([&] { machine_->on(made); }); // once more, which says nothing
    return true;
  }

  void join() {
    if (queues_.size() == 5)
      return;
    tell([&] { machine_->add_device(info_of(queues_.size())); });
    queues_.emplace_back();
    lost_.push_back(false);
  }

  device_info info_of(size_t device) const {
    return {.name = fmt::format("d{}", device), .kind = device_kind::null, .memory_bytes = memory_};
  }

  /// Lets a device answer its oldest order; returns whether there was one.
  bool answer_one() {
    std::vector<size_t> busy;
    for (size_t d = 0; d < queues_.size(); ++d)
      if (!queues_[d].empty())
        busy.push_back(d);
    if (busy.empty())
      return false;
    const size_t device = busy[below(busy.size())];
    auto order = std::move(queues_[device].front());
    queues_[device].pop_front();
    if (const auto* plan = std::get_if<install_plan>(&order))
      answer(device, *plan);
    else
      answer(std::get<chunk_work>(order));
    return true;
  }

  /// Returns how an order ends: almost always well, in the end always.
  failure ending(std::initializer_list<errc> bad) {
    if (calm_ || !chance(0.04))
      return {};
    return {std::data(bad)[below(bad.size())], "the test says so"};
  }

  void answer(size_t device, const install_plan& order) {
    plan_installed answer{order.bound->id, order.self, ending({errc::out_of_memory, errc::unsupported, errc::io})};
    tell([&] { machine_->on(device, answer); });
  }

  void answer(chunk_work& work) {
    const failure why = ending({errc::out_of_memory, errc::device_failed, errc::device_lost});
    chunk_ended ended{work.execution, work.chunk, {.code = why.code, .message = why.message}};
    if (work.stop->load())
      ended.result = {.code = errc::cancelled, .message = "dropped"};
    const bound_plan& bound = *bound_.at(work.bound_plan);
    if (ended.result.ok())
      for (value_id v : bound.source->chunks[work.chunk].downloads)
        ended.result.downloads.push_back(zeros(bound.source->program->values[v].type, bound.dims[v]));
    tell([&] { machine_->on(ended); });
    if (chance(0.02) && !calm_)
      tell([&] { machine_->on(ended); }); // once more, which says nothing
  }

  template <class Event>
  void tell(Event&& event) {
    machine_->set_time(now_);
    event();
    std::vector<command> commands;
    machine_->take_commands(commands);
    for (command& c : commands)
      std::visit([&](auto& what) { take(what); }, c);
  }

  void take(device_order& order) {
    if (lost_[order.device])
      return;
    auto& queue = queues_[order.device];
    if (auto* plan = std::get_if<install_plan>(&order.what)) {
      bound_[plan->bound->id] = plan->bound;
      queue.emplace_back(*plan);
    } else if (auto* chunks = std::get_if<run_chunks>(&order.what)) {
      for (chunk_work& work : chunks->works)
        queue.emplace_back(std::move(work));
    }
  }
  void take(const abandon_device& a) {
    lost_[a.device] = true;
    queues_[a.device].clear();
  }
  void take(const run_answer& a) {
    ++answers_.at(a.ticket);
    right_ += !a.why.failed();
    CHECK(a.why.failed() == a.result.outputs.empty());
    CHECK(a.why.code != (a.why.failed() ? errc::internal : errc::io));
  }
  void take(const continue_control& c) { going_on_.push_back(c); }
  void take(const plan_wanted& job) {
    CHECK_FALSE(wanted_);
    wanted_ = job;
  }
  void take(const query_answer& a) { ++answers_.at(a.query); }

  const trial& trial_;
  std::minstd_rand random_;
  std::unique_ptr<session_machine> machine_;
  std::vector<std::deque<std::variant<install_plan, chunk_work>>> queues_; // by device
  std::vector<bool> lost_;
  std::deque<continue_control> going_on_;
  std::optional<plan_wanted> wanted_;
  int64_t memory_ = 0; // of each device
  std::map<uint64_t, bound_plan_ptr> bound_;
  std::map<uint64_t, int> answers_; // by ticket
  run_time now_{};
  size_t right_ = 0;
  bool calm_ = false; // nothing goes wrong any more
};

std::vector<trial> trials() {
  const session_options alternating{.policy = placement_policy::round_robin, .fuse = false};
  const named_tensors small{{"x", zeros(dtype::float32, {2, 3})}}, large{{"x", zeros(dtype::float32, {40, 3})}};
  const named_tensors row{{"x", zeros(dtype::float32, {4})}};
  return {{chain(4, {dim::symbol("n"), 3}), {small, large}, alternating},
          {fan_out(3, 2), {row}, alternating},
          {fan_out(2, 2), {row}, {}},
          {growing_loop(), {growing_inputs(3, 1e9F), growing_inputs(0, 1)}, alternating}};
}

} // namespace

TEST_CASE("whatever happens in whatever order, each run is answered exactly once", "[run][A13][C11]") {
  const std::vector<trial> all = trials();
  size_t runs = 0, right = 0;
  for (uint32_t seed = 0; seed < 10'000; ++seed) {
    INFO("seed " << seed);
    world w(all[seed % all.size()], seed);
    w.play(60);
    runs += w.runs();
    right += w.right();
  }
  WARN(runs << " runs in 10,000 orders, " << right << " right");
  CHECK(right > runs / 3);
}

// What callers do, and what they must get.
#include "support/control_models.hpp"
#include "support/summing_models.hpp"
#include "universe/world.hpp"

#include <fmt/ranges.h>

#include <thread>

namespace troupe::universe {

using namespace std::chrono_literals;
using namespace troupe::test;

namespace {

/// A chain over rows `x`, times a `scale` that requests share if theirs are equal.
graph scaled_rows(size_t length) {
  graph_builder b;
  b.g = chain(length, {dim::symbol("n"), 3});
  const value_id rows = std::exchange(b.g.outputs, {}).front();
  b.output(b.op("Mul", {rows, b.input("scale", {3})}));
  return b.g;
}

/// One operation of a caller.
class caller {
public:
  caller(world& w, engine& with, size_t number, bool is_misled)
      : world_(w), engine_(with), random_(w.rules().seed * 100 + number), name_(fmt::format("caller {}", number)),
        is_misled_(is_misled) {}

  void play() {
    for (size_t i = 0; i < world_.rules().operations; ++i) {
      act();
      std::this_thread::sleep_for(std::chrono::milliseconds(below(world_.rules().is_busy ? 30 : 300)));
    }
  }

private:
  void act() {
    static constexpr std::array<std::pair<const char*, void (caller::*)()>, 7> acts{
        {{"plain run", &caller::run_plainly},
         {"cancelled run", &caller::run_and_cancel},
         {"bound steps", &caller::take_steps},
         {"stream", &caller::submit_rows},
         {"control flow", &caller::run_loop},
         {"value on a device", &caller::keep_value},
         {"engine that closes", &caller::open_and_close}}};
    const auto& [what, act] = acts[test::below(random_, acts.size())];
    world_.tale().tell("{}: {}", name_, what);
    world_.tale().count(what);
    const failure why = capture([&] { (this->*act)(); });
    if (why.failed())
      judge(what, why);
  }

  size_t below(size_t limit) { return test::below(random_, limit); }
  bool perhaps() { return below(2) == 0; }

  /// What a caller has asked for.
  struct wishes {
    bool limited = false, cancelled = false, on_device = false, bare_state = false;
  };

  void judge(const char* what, const failure& why) {
    const excuses& excused = world_.excused();
    world_.tale().tell("{}: {} ends with {}: {}", name_, what, to_string(why.code), why.message);
    world_.tale().count(fmt::format("{} ends with {}", what, to_string(why.code)));
    if (is_misled_ && why.code != errc::internal)
      return;
    const bool names_device = why.message.find("device '") != std::string::npos;
    const bool is_fair = [&] {
      switch (why.code) {
        case errc::timeout: return wish_.limited;
        case errc::cancelled: return wish_.cancelled;
        case errc::device_failed: return excused.failing_devices && names_device;
        case errc::device_lost:
          return (wish_.on_device || wish_.bare_state) && (excused.lost_devices || excused.failing_devices);
        case errc::io: return excused.parted_workers;
        case errc::out_of_memory: return world_.rules().memory > 0;
        default: return false;
      }
    }();
    if (!is_fair)
      world_.tale().accuse("{}: {} must not end with {}: {}", name_, what, to_string(why.code), why.message);
  }

  void expect(bool right, const char* what) {
    if (!right && !is_misled_)
      world_.tale().accuse("{}: a wrong result of {}", name_, what);
  }

  session_options options() {
    static constexpr std::array policies{placement_policy::round_robin, placement_policy::round_robin,
                                         placement_policy::heft,        placement_policy::dmda,
                                         placement_policy::weighted,    placement_policy::pipeline,
                                         placement_policy::single,      placement_policy::split};
    session_options how{.policy = policies[below(policies.size())], .fuse = perhaps()};
    if (how.policy == placement_policy::split)
      how.split_along = -1;
    return how;
  }

  run_options limits() {
    run_options how;
    wish_ = {};
    if (below(4) == 0) {
      how.timeout = std::chrono::milliseconds(1 + below(below(2) ? 20 : 3000));
      wish_.limited = true;
    }
    return how;
  }

  graph model_with_weights() {
    graph m = random_model(random_);
    if (below(3) > 0)
      return m;
    // Weights that are pulled in pieces: equal ones in several sessions.
    graph_builder b;
    const int64_t wide = 2048;
    const auto weight = [&](const char* name, shape dims) { return b.constant(name, filled_by(dims, below(3))); };
    const value_id x = b.input("x", {16, 16}), y = b.input("y", {16, 16});
    const value_id middle = b.op("MatMul", {b.op("Add", {x, y}), weight("up", {16, wide})});
    b.output(b.op("Sigmoid", {b.op("MatMul", {b.op("Sigmoid", {middle}), weight("down", {wide, 16})})}));
    return b.g;
  }

  static tensor filled_by(const shape& dims, uint64_t number) {
    tensor t(dtype::float32, dims);
    random_source r(number);
    std::generate_n(t.mutable_data<float>(), t.size(),
                    [&] { return std::uniform_real_distribution<float>(-0.1F, 0.1F)(r); });
    return t;
  }

  void run_plainly() {
    const graph model = model_with_weights();
    const session_options how = options();
    const session s = engine_.load(model, how);
    for (size_t runs = 1 + below(4); runs > 0; --runs) {
      const named_tensors inputs = random_inputs(random_);
      const run_result r = s.run(inputs, limits());
      expect(test::equal(r.outputs, evaluate_directly(model, inputs), how.policy == placement_policy::split ? 1e-5 : 0),
             "a plain run");
      world_.tale().count(r.stats.lost_devices.empty() ? "right" : "right after a loss");
    }
  }

  void run_and_cancel() {
    const graph model = model_with_weights();
    const session s = engine_.load(model, options());
    const named_tensors inputs = random_inputs(random_);
    const named_tensors right = evaluate_directly(model, inputs);
    std::stop_source stop;
    run_options how = limits();
    wish_.cancelled = true;
    std::vector<std::future<run_result>> coming;
    for (size_t i = 1 + below(4); i > 0; --i) {
      how.cancel = perhaps() ? stop.get_token() : std::stop_token(); // who leaves may have kept others waiting
      coming.push_back(s.run_async(inputs, how));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(below(perhaps() ? 1000 : 100'000)));
    stop.request_stop();
    for (auto& one : coming) {
      const failure why =
          capture([&] { expect(test::equal(one.get().outputs, right, 1e-5), "a run before its cancellation"); });
      if (why.failed())
        judge("cancelled run", why);
    }
  }

  void take_steps() {
    const size_t count = 1 + below(4);
    const shape dims{1 + static_cast<int64_t>(below(2) * 30'000)}; // short values are sent, long ones pulled
    const session s =
        engine_.load(summing_states(count, dims), {.policy = placement_policy::round_robin, .fuse = false});
    std::vector<output_binding> pairs;
    for (size_t i = 0; i < count; ++i)
      pairs.push_back({fmt::format("next{}", i), fmt::format("state{}", i)});
    const bind_options how{
        .checkpoint = below(4), .heal = below(4) > 0, .heal_bytes = perhaps() ? int64_t{64} << 20 : 2000};
    bound_session bound = s.bind(pairs, how);
    const uint64_t steps = 2 + below(20);
    size_t repeats = 0;
    while (bound.step() < steps) {
      const uint64_t n = bound.step() + 1;
      named_tensors inputs{{"x", filled(dims, static_cast<float>(n))}};
      for (size_t i = 0; n == 1 && i < count; ++i)
        inputs[pairs[i].input] = filled(dims, 0);
      run_options limit = limits();
      wish_.bare_state = !how.heal || how.heal_bytes < 1 << 20;
      try {
        const run_result r = bound.run(inputs, limit);
        const auto sum = static_cast<float>(n * (n + 1) / 2);
        expect(same(r.outputs.at("y"), filled(dims, sum * static_cast<float>(count))), "a bound step");
        if (r.stats.repeated_steps > 0)
          world_.tale().count("healed");
      } catch (const state_rolled_back& back) {
        world_.tale().count("rolled back");
        judge("bound steps", {back.code(), back.what()});
        if (back.repeat_from() > n || bound.step() + 1 != back.repeat_from())
          world_.tale().accuse("{}: told to repeat from step {}, after {} steps", name_, back.repeat_from(),
                               bound.step());
        if (++repeats > 20)
          return;
        continue;
      } catch (const error& e) {
        if (e.code() != errc::timeout)
          throw;
        judge("bound steps", {e.code(), e.what()});
        if (++repeats > 20)
          return;
      }
      if (below(4) == 0)
        std::this_thread::sleep_for(std::chrono::milliseconds(below(200)));
    }
    const auto sum = static_cast<float>(steps * (steps + 1) / 2);
    expect(same(bound.fetch("next0"), filled(dims, sum)), "a bound value");
  }

  void accuse_queue(const session& s) {
    const stream_stats stats = s.queue_stats();
    std::string replicas;
    for (const replica_stats& r : stats.replicas)
      replicas += fmt::format("; {}: {}, {} pieces, {} ms", fmt::join(r.devices, " "), r.living ? "living" : r.why_not,
                              r.pieces, r.busy_ms);
    world_.tale().accuse("{}: a request is not answered; {} answered, {} wait, {} pieces in flight{}", name_,
                         stats.answered, stats.waiting, stats.in_flight, replicas);
  }

  void submit_rows() {
    static constexpr std::array strategies{strategy::data_parallel, strategy::work_stealing, strategy::pipeline,
                                           strategy::standard, strategy::automatic};
    const graph model = scaled_rows(2 + below(4));
    session_options how{.policy = placement_policy::round_robin, .strategy = strategies[below(strategies.size())]};
    if (how.strategy == strategy::automatic || how.strategy == strategy::standard)
      how.policy = placement_policy::single;
    if (how.strategy == strategy::pipeline)
      how.policy = placement_policy::pipeline;
    how.stream.micro_batch = perhaps() ? static_cast<int64_t>(1 + below(4)) : 0;
    how.stream.max_batch = perhaps() ? static_cast<int64_t>(1 + below(16)) : 0;
    how.stream.ordered = perhaps();
    if (how.stream.max_batch > 0)
      how.stream.max_delay = std::chrono::microseconds(below(20'000));
    world_.tale().tell("{}: strategy {}, micro-batch {}, at most {} rows, {}", name_, static_cast<int>(how.strategy),
                       how.stream.micro_batch, how.stream.max_batch, how.stream.ordered ? "ordered" : "as they come");
    const session s = engine_.load(model, how);
    struct submitted {
      named_tensors inputs;
      std::future<run_result> answer;
      wishes wish;
    };
    std::vector<submitted> coming;
    for (size_t i = 1 + below(8); i > 0; --i) {
      named_tensors inputs{{"x", random_tensor({static_cast<int64_t>(1 + below(12)), 3}, static_cast<uint32_t>(i))},
                           {"scale", filled({3}, static_cast<float>(1 + below(2)))}};
      auto answer = s.submit(inputs, limits());
      coming.push_back({std::move(inputs), std::move(answer), wish_});
    }
    std::shared_future<void> refused;
    if (below(3) == 0)
      refused = submit_wrongly(s, coming.front().inputs);
    for (auto& [inputs, answer, wish] : coming) {
      wish_ = wish;
      if (answer.wait_for(120s) != std::future_status::ready)
        return accuse_queue(s);
      const failure why =
          capture([&] { expect(test::equal(answer.get().outputs, evaluate_directly(model, inputs), 0), "a request"); });
      if (why.failed())
        judge("stream", why);
    }
    if (refused.valid() && refused.wait_for(120s) != std::future_status::ready)
      world_.tale().accuse("{}: a wrong request is not answered", name_);
  }

  /// Submits a request that the queue alone can refuse, since a callback does not wait for a place. Returns the end of
  /// its answer.
  std::shared_future<void> submit_wrongly(const session& s, const named_tensors& inputs) {
    const auto ended = std::make_shared<std::promise<void>>();
    const auto refuse = [this, ended](const run_outcome& o) {
      if (!o.failure || (o.failure->code() != errc::invalid_argument && o.failure->code() != errc::out_of_memory))
        world_.tale().accuse("{}: a wrong request has the answer {}", name_, o.failure ? o.failure->what() : "right");
      ended->set_value();
    };
    world_.tale().count("wrong request");
    s.submit(inputs, {}, [=](const run_outcome&) { s.submit(inputs, {.timeout = -1ms}, refuse); });
    return ended->get_future().share();
  }

  void run_loop() {
    const session s = engine_.load(growing_loop(), {.policy = placement_policy::round_robin, .fuse = false});
    const auto n = static_cast<int64_t>(below(6));
    const run_result r = s.run(growing_inputs(n, 1e9F), limits());
    float x = 1;
    for (int64_t i = 0; i < n; ++i)
      x = 2 * x + 1;
    expect(r.outputs.at("loop.0").values<float>()[0] == x, "a loop");
  }

  void keep_value() {
    wish_ = {.on_device = true};
    const std::vector<device_summary> devices = engine_.devices();
    const std::string device = devices[below(devices.size())].name;
    const tensor x =
        random_tensor({16, static_cast<int64_t>(perhaps() ? 16 : 4096)}, static_cast<uint32_t>(below(1000)));
    const device_tensor there = engine_.put(x, device);
    if (perhaps())
      std::this_thread::sleep_for(std::chrono::milliseconds(below(500)));
    expect(std::ranges::equal(engine_.fetch(there).values<float>(), x.values<float>()), "a value on a device");
    graph_builder b;
    b.output(b.op("Neg", {b.input("x", to_symbolic(x.dims()))}, {}, "y"));
    const session s = engine_.load(b.g, options());
    run_options how{.device_inputs = {{"x", there}}};
    const run_result r = s.run({}, how);
    expect(std::ranges::equal(r.outputs.at("y").values<float>(), x.values<float>(), {}, std::negate<>()),
           "a run with a value on a device");
  }

  /// Callers who wait in a bound step and for a queue's counters when the engine closes: it ends their waits.
  void wait_for_ever(engine& guest, std::vector<std::thread>& waiting) {
    const auto until_closed = [this](auto ask) {
      const failure why = capture([&] {
        while (true)
          ask();
      });
      if (why.code != errc::cancelled)
        judge("wait until the engine closes", why);
    };
    const session s = guest.load(summing_states(1, {1}), {.fuse = false});
    waiting.emplace_back([until_closed, bound = s.bind({{"next0", "state0"}}, {})]() mutable {
      named_tensors inputs{{"x", filled({1}, 1)}, {"state0", filled({1}, 0)}};
      until_closed([&] {
        bound.run(inputs, {});
        inputs.erase("state0");
      });
    });
    const session queue = guest.load(chain(2, {dim::symbol("n"), 3}), {.strategy = strategy::work_stealing});
    waiting.emplace_back([until_closed, queue] {
      until_closed([&] {
        queue.submit({{"x", random_tensor({2, 3}, 1)}}).get();
        queue.queue_stats();
      });
    });
  }

  /// An engine, sessions and runs in flight that end before each other.
  void open_and_close() {
    std::optional<engine> guest;
    const failure why = capture([&] { guest.emplace(world_.open_guest(name_ + "'s")); });
    if (why.failed()) { // a worker that is not there when an engine opens is an error
      world_.tale().count(fmt::format("engine not opened: {}", to_string(why.code)));
      if (why.code != errc::io && why.code != errc::timeout && why.code != errc::device_lost)
        world_.tale().accuse("{}: an engine must not fail to open with {}", name_, why.message);
      return;
    }
    const graph model = model_with_weights();
    const named_tensors inputs = random_inputs(random_);
    const named_tensors right = evaluate_directly(model, inputs);
    std::vector<std::future<run_result>> coming;
    std::vector<std::thread> waiting;
    if (perhaps())
      wait_for_ever(*guest, waiting);
    {
      const session s = guest->load(model, options());
      for (size_t i = 1 + below(4); i > 0; --i)
        coming.push_back(perhaps() ? s.run_async(inputs, limits()) : s.submit(inputs, limits()));
      std::this_thread::sleep_for(std::chrono::microseconds(below(perhaps() ? 1000 : 100'000)));
    }
    if (perhaps())
      std::this_thread::sleep_for(std::chrono::microseconds(below(100'000)));
    guest.reset();
    for (std::thread& each : waiting)
      each.join(); // else all threads of the universe wait
    wish_ = {.limited = true, .cancelled = true};
    for (auto& one : coming) {
      if (one.wait_for(60s) != std::future_status::ready) // an actor system that is abandoned may answer late
        world_.tale().accuse("{}: a run has no answer although its engine is gone", name_);
      const failure end = capture([&] { expect(test::equal(one.get().outputs, right, 1e-5), "a guest's run"); });
      if (end.failed())
        judge("engine that closes", end);
    }
  }

  world& world_;
  engine& engine_;
  random_source random_;
  const std::string name_;
  const bool is_misled_;
  wishes wish_;
};

} // namespace

void call_models(world& w, engine& with, size_t number, bool is_misled) {
  caller(w, with, number, is_misled).play();
}

} // namespace troupe::universe

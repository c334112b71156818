// The next step of a bound session, made while one is in flight: that it is the step that is asked for, or none.
#include "run/session_machine.hpp"
#include "run/shared_ledger.hpp"
#include "support/catch.hpp"
#include "support/far_values.hpp"
#include "support/small_models.hpp"

#include <fmt/format.h>

#include <random>

using namespace troupe;
using namespace troupe::test;

namespace {

const device_info far{.name = "far", .kind = device_kind::null, .memory_bytes = int64_t{1} << 40};

/// Two states to which x is appended, and y = −x: like a decoder's caches and its logits.
graph growing_states() {
  graph_builder b;
  const value_id x = b.input("x", {dim(1)});
  const auto grown = [&](const std::string& state, const std::string& next) {
    return b.op("Concat", {b.input(state, {dim::symbol("in " + state)}), x}, attrs_of({{"axis", int64_t{0}}}), next);
  };
  const value_id first = grown("first", "next first"), second = grown("second", "next second");
  b.g.outputs = {first, second, b.op("Neg", {x}, {}, "y")};
  return b.g;
}

device_tensor on_device(int64_t n, const device_info& d) {
  return std::make_shared<const far_resident>(dtype::float32, shape{n}, d);
}

carried_bundle two_values(const device_tensor& first, const device_tensor& second) {
  return std::make_shared<const std::vector<carried_value>>(
      std::vector<carried_value>{carried_value(first), carried_value(second)});
}

carried_bundle on_device(int64_t first, int64_t second, const device_info& d) {
  return two_values(on_device(first, d), on_device(second, d));
}

/// A bound session whose made-up devices run each step in one chunk.
struct steps {
  explicit steps(graph model) {
    const auto plans = std::make_shared<session_plans>(make_model(std::move(model), {.fuse = false}, 0), devices);
    machine = std::make_unique<session_machine>(devices, ledger_accounts{ledger->open([] {})}, plans,
                                                completion_mode::device);
  }

  void start(named_tensors inputs, run_options options = {}) {
    answer.reset();
    work.reset();
    request = std::make_shared<run_request>(std::move(inputs), std::move(options),
                                            carried_values{.pairs = pairs, .given = carried});
    machine->start_run(request);
    work_off();
  }
  /// Ends the chunk that a device has. If it ends well, the device first says which values it leaves in its memory, if
  /// it ever does.
  void end(const failure& how = {}) {
    REQUIRE(work);
    chunk_work mine = std::move(*std::exchange(work, std::nullopt));
    const device_info& on = devices.at(device);
    chunk_begun begun{mine.execution, mine.chunk, {}};
    for (uint32_t i = 0; i < mine.downloads.size() && !how.failed(); ++i)
      if (const value_ref& made = mine.downloads[i]; made->stays()) {
        const std::string name = names(mine, &chunk::downloads).at(i);
        made->fill({}, on_device(name == "y" ? 1 : read(mine, name.substr(5))->dims()[0] + growth, on));
        begun.made.push_back(i);
      } else {
        made->fill(zeros(dtype::float32, {1}));
      }
    if (says_begun && !how.failed())
      machine->on(begun);
    plan(); // if that is late
    work_off();
    chunk_ended ended{mine.execution, mine.chunk, {.code = how.code, .message = how.message}};
    mine.downloads.clear();
    machine->on(ended);
    work_off();
    if (answer && !answer->why.failed())
      carried = request->carried.made;
  }
  /// The names of the values that a chunk reads, or makes.
  std::vector<std::string> names(const chunk_work& w, std::vector<value_id> chunk::*which) const {
    const troupe::plan& p = *bound.at(w.bound_plan)->source;
    std::vector<std::string> all;
    for (const value_id v : p.chunks[w.chunk].*which)
      all.push_back(p.program->values[v].name);
    return all;
  }
  /// The value that a chunk reads by that name.
  value_ref read(const chunk_work& w, const std::string& name) const {
    const std::vector<std::string> all = names(w, &chunk::uploads);
    return w.uploads.at(static_cast<size_t>(std::ranges::find(all, name) - all.begin()));
  }
  void step() {
    start({{"x", zeros(dtype::float32, {1})}});
    end();
    REQUIRE(answer);
    CHECK_FALSE(answer->why.failed());
  }
  /// As many as it takes to foresee the next one.
  void go() {
    for (int i = 0; i < 4; ++i)
      step();
  }
  /// Begins a step; returns whether it was made before another session's was, which has come since.
  bool was_made_before(execution_id other) {
    start({{"x", zeros(dtype::float32, {1})}});
    REQUIRE(work);
    return work->execution < other;
  }
  void add_device() {
    device_info more = far;
    more.name = "far" + std::to_string(devices.size());
    devices.push_back(more);
    machine->add_device(more, std::make_shared<shared_ledger>(far.memory_bytes)->open([] {}));
    work_off();
  }

  void work_off() {
    std::vector<command> commands;
    do {
      machine->take_commands(commands);
      for (command& c : commands)
        if (auto* order = std::get_if<device_order>(&c))
          carry_out(*order);
        else if (auto* job = std::get_if<plan_wanted>(&c))
          wanted = *job;
        else if (auto* ended = std::get_if<run_answer>(&c))
          answer = std::move(*ended);
      if (!plans_late || !work) // nothing else could go on
        plan();
    } while (machine->use_spare_time() || !commands.empty());
  }
  void plan() {
    if (const auto job = std::exchange(wanted, std::nullopt))
      machine->on(planned{job->job, capture(job->make)});
  }
  void carry_out(device_order& order) {
    if (const auto* install = std::get_if<install_plan>(&order.what)) {
      bound[install->bound->id] = install->bound;
      machine->on(order.device, {install->bound->id, install->self, {}});
    } else if (auto* chunks = std::get_if<run_chunks>(&order.what)) {
      work = std::move(chunks->works.at(0));
      device = order.device;
    } else if (const auto* fetch = std::get_if<fetch_tensor>(&order.what)) {
      tensor_fetched fetched{fetch->ticket, fetch->input, {.value = zeros(dtype::float32, fetch->value->dims())}};
      machine->on(fetched);
    }
  }

  std::vector<device_info> devices{far};
  const std::shared_ptr<shared_ledger> ledger = std::make_shared<shared_ledger>(far.memory_bytes);
  const std::shared_ptr<const std::vector<carried_pair>> pairs =
      std::make_shared<const std::vector<carried_pair>>(std::vector<carried_pair>{{0, 1}, {1, 2}});
  carried_bundle carried = on_device(3, 7, far);
  std::map<uint64_t, bound_plan_ptr> bound; // the installed ones
  int64_t growth = 1;                       // of the states, by step
  bool says_begun = true;                   // the device, what it leaves in its memory
  bool plans_late = false;                  // the next step's comes when the device has said that
  std::unique_ptr<session_machine> machine;
  run_request_ptr request;
  std::optional<chunk_work> work;
  size_t device = 0; // that has it
  std::optional<plan_wanted> wanted;
  std::optional<run_answer> answer;
};

/// Returns the number of an execution that is made now.
execution_id execution_of_another_session() {
  steps other(growing_states());
  other.start({{"x", zeros(dtype::float32, {1})}});
  return other.work.value().execution;
}

} // namespace

TEST_CASE("a step that is foreseen is made while the one before is in flight", "[run][B7][E6]") {
  steps s(growing_states());
  s.plans_late = GENERATE(false, true);
  s.go();
  const carried_bundle states = s.carried;
  const session_stats before = s.machine->stats();
  CHECK(s.was_made_before(execution_of_another_session()));
  REQUIRE(s.work->uploads.size() == 3);
  CHECK(s.read(*s.work, "first") == (*states)[0].value());
  CHECK(s.read(*s.work, "second") == (*states)[1].value());
  CHECK(s.read(*s.work, "x")->host().dims() == shape{1});
  s.end();
  REQUIRE(s.answer);
  CHECK((*s.carried)[0].handle()->dims() == shape{8});
  CHECK((*s.carried)[1].handle()->dims() == shape{12});
  CHECK(s.answer->result.stats.plan_cached);
  CHECK(s.machine->idle());
  const session_stats after = s.machine->stats();
  CHECK(after.runs == before.runs + 1);
  CHECK(after.plans.hits == before.plans.hits + 1);
  CHECK(after.bound_plans.hits == before.bound_plans.hits + 1);
  CHECK(s.was_made_before(execution_of_another_session())); // and so on
}

TEST_CASE("a step that was made ahead runs on a slot that is free", "[run][B7][E6]") {
  steps s(growing_states());
  s.go();
  s.start({{"x", zeros(dtype::float32, {1})}});
  REQUIRE(s.work);
  const chunk_work other = std::move(*s.work); // stays in flight
  s.go();
  CHECK(s.was_made_before(execution_of_another_session()));
  REQUIRE(s.bound.at(s.work->bound_plan)->layout == s.bound.at(other.bound_plan)->layout);
  CHECK(s.work->slot != other.slot);
}

TEST_CASE("what was made ahead is not run if another step is asked for", "[run][B7][E6]") {
  steps s(growing_states());
  s.go();
  const execution_id other = execution_of_another_session();
  run_options options;
  named_tensors inputs{{"x", zeros(dtype::float32, {1})}};
  SECTION("one that is traced") {
    options.trace = true;
  }
  SECTION("one that keeps an output by name") {
    options.keep = {"y"};
  }
  SECTION("one of equal values that are others") {
    s.carried = on_device(7, 11, far);
  }
  SECTION("one whose state the caller gives") {
    s.carried = std::make_shared<const std::vector<carried_value>>(std::vector<carried_value>(2));
    inputs["first"] = zeros(dtype::float32, {7});
    inputs["second"] = zeros(dtype::float32, {11});
  }
  s.start(inputs, options);
  REQUIRE(s.work);
  CHECK(s.work->execution > other);
}

TEST_CASE("a step that cannot be run says so, whether or not one was made ahead", "[run][B7][E3]") {
  steps s(growing_states());
  s.go();
  named_tensors inputs;
  std::string expected;
  SECTION("no input") {
    expected = "input 'x' is missing";
  }
  SECTION("another shape") {
    inputs = {{"x", zeros(dtype::float32, {2})}};
    expected = "input 'x' has shape";
  }
  SECTION("another type") {
    inputs = {{"x", zeros(dtype::int32, {1})}};
    expected = "input 'x' is int32";
  }
  SECTION("one too many") {
    inputs = {{"x", zeros(dtype::float32, {1})}, {"z", zeros(dtype::float32, {1})}};
    expected = "the model has no input 'z'";
  }
  SECTION("its state is gone") {
    inputs = {{"x", zeros(dtype::float32, {1})}};
    s.machine->lose_device(0, "it was pulled out");
    expected = "device";
  }
  s.start(inputs);
  REQUIRE(s.answer);
  CHECK_FALSE(s.work);
  CHECK(s.answer->why.message.find(expected) != std::string::npos);
  CHECK(s.machine->idle());
}

TEST_CASE("a device that joins gets new plans: a step that was made ahead is of the old ones", "[run][B7][C4]") {
  steps s(growing_states());
  s.go();
  const execution_id other = execution_of_another_session();
  s.add_device();
  CHECK_FALSE(s.was_made_before(other));
}

TEST_CASE("what is on another device, or has other dims, is not what a step was made for", "[run][B7][E6]") {
  session_plans plans(make_model(growing_states(), {.fuse = false}, 0), {far});
  const named_tensors inputs{{"x", zeros(dtype::float32, {1})}};
  const named_device_tensors none;
  const auto pairs = std::make_shared<const std::vector<carried_pair>>(std::vector<carried_pair>{{0, 1}, {1, 2}});
  const carried_values carried{.pairs = pairs, .given = on_device(3, 7, far)};
  std::variant<prepared_run, plan_job> found = plans.prepare({inputs, none, &carried});
  for (; std::holds_alternative<plan_job>(found); found = plans.prepare({inputs, none, &carried})) {
    std::get<plan_job>(found).make();
    std::get<plan_job>(found).keep();
  }
  const auto ahead = run_ahead::make(std::get<prepared_run>(found), pairs, completion_mode::device, 1);
  REQUIRE(ahead);
  device_info elsewhere = far;
  elsewhere.name = "elsewhere";
  const carried_values away{.pairs = pairs, .given = on_device(3, 7, elsewhere)};
  CHECK_FALSE(ahead->expect(away.given));
  CHECK_FALSE(ahead->is(run_request(inputs, {}, away)));
  CHECK_FALSE(ahead->expect(on_device(3, 8, far)));
  CHECK(ahead->expect(carried.given));
  CHECK(ahead->is(run_request(inputs, {}, carried)));
}

TEST_CASE("a step that is made ahead keeps no values", "[run][B7][E6]") {
  steps s(growing_states());
  s.go();
  const std::weak_ptr<const resident> state = (*s.carried)[0].handle();
  s.request = nullptr;
  s.carried = nullptr;
  s.answer.reset();
  CHECK(state.expired());
}

namespace {

/// Returns how each step of a session ends, with random events in between; `says_begun`: whether anything can be made
/// ahead.
std::vector<std::string> outcomes(uint32_t seed, bool says_begun) {
  std::minstd_rand random(seed);
  const auto chance = [&](uint32_t one_in) { return random() % one_in == 0; };
  steps s(growing_states());
  s.says_begun = says_begun;
  std::vector<std::string> ends;
  for (int i = 0; i < 40; ++i) {
    s.plans_late = chance(2);
    if (chance(16) && s.devices.size() < 4)
      s.add_device();
    if (chance(32))
      s.machine->lose_device(random() % s.devices.size(), "the test took it");
    const auto given = [&] {
      return make_host_resident(zeros(dtype::float32, {static_cast<int64_t>(random() % 3 + 1)}), "host");
    };
    if (chance(12)) // the states begin anew
      s.carried = two_values(given(), given());
    s.growth = chance(8) ? 0 : 1; // a device's mistake
    run_options options{.keep = chance(12) ? std::vector<std::string>{"y"} : std::vector<std::string>{},
                        .trace = chance(12)};
    s.start({{"x", zeros(dtype::float32, {chance(12) ? 2 : 1})}}, options);
    if (chance(16))
      s.machine->cancel(s.request->ticket);
    s.work_off();
    while (s.work) {
      const bool fails = chance(16), lacks_memory = chance(2);
      s.end(s.work->stop->load() ? failure{errc::cancelled, "dropped"}
            : fails              ? failure{lacks_memory ? errc::out_of_memory : errc::device_failed, "the test says so"}
                                 : failure{});
    }
    ends.push_back(s.answer ? s.answer->why.message : "no answer");
    if (s.answer && !s.answer->why.failed())
      ends.back() = fmt::format("{} and {} values, {} kept, plan {}", (*s.carried)[0].handle()->dims()[0],
                                (*s.carried)[1].handle()->dims()[0], s.answer->result.kept.size(),
                                s.answer->result.stats.plan_cached);
  }
  const session_stats stats = s.machine->stats();
  ends.push_back(fmt::format("{} runs, {} + {} plans", stats.runs, stats.plans.hits, stats.plans.misses));
  CHECK(s.machine->idle());
  return ends;
}

} // namespace

TEST_CASE("whatever happens, steps end as if none were made ahead", "[run][B7][E6][A13]") {
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    INFO("seed " << seed);
    CHECK(outcomes(seed, true) == outcomes(seed, false));
  }
}

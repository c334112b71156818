// What a session does while a device has a chunk of which it knows some values already (`chunk_begun`).
#include "run/session_machine.hpp"
#include "run/shared_ledger.hpp"
#include "support/catch.hpp"
#include "support/far_values.hpp"
#include "support/small_models.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

const device_info far{.name = "far", .kind = device_kind::null, .memory_bytes = int64_t{1} << 40};

device_tensor on_far(shape dims = {1}) {
  return std::make_shared<const far_resident>(dtype::float32, std::move(dims), far);
}

tensor one_zero() {
  return zeros(dtype::float32, {1});
}

/// A session with one made-up device, and a run of which that has the only chunk.
struct one_step {
  explicit one_step(std::vector<std::string> keep = {}) {
    const auto plans =
        std::make_shared<session_plans>(make_model(two_states(), {.fuse = false}, 0), std::vector<device_info>{far});
    machine = std::make_unique<session_machine>(
        std::vector<device_info>{far}, ledger_accounts{std::make_shared<shared_ledger>(far.memory_bytes)->open([] {})},
        plans, completion_mode::device);
    carried_values carried{
        .pairs = std::make_shared<const std::vector<carried_pair>>(std::vector<carried_pair>{{0, 1}, {1, 2}}),
        .given = std::make_shared<const std::vector<carried_value>>(
            std::vector<carried_value>{carried_value(on_far()), carried_value(on_far())})};
    request = std::make_shared<run_request>(named_tensors{{"x", one_zero()}}, run_options{.keep = std::move(keep)},
                                            std::move(carried));
    machine->start_run(request);
    work_off();
    REQUIRE(work);
    const bound_plan& bound = *bound_;
    for (const value_id v : bound.source->chunks[work->chunk].downloads)
      names.push_back(bound.source->program->values[v].name);
  }

  uint32_t position(const std::string& name) const {
    return static_cast<uint32_t>(std::ranges::find(names, name) - names.begin());
  }
  moved_value& value(const std::string& name) { return *work->downloads.at(position(name)); }
  void begin(const std::vector<std::string>& made) {
    chunk_begun begun{work->execution, work->chunk, {}};
    for (const std::string& name : made)
      begun.made.push_back(position(name));
    machine->on(begun);
    work_off();
  }
  /// Ends the chunk and returns the answer.
  run_answer end() {
    value("y").fill(one_zero());
    work->downloads.clear();
    chunk_ended ended{work->execution, work->chunk, {}};
    machine->on(ended);
    work_off();
    REQUIRE(answer);
    CHECK(machine->idle());
    return std::move(*answer);
  }

  void work_off() {
    std::vector<command> commands;
    for (machine->take_commands(commands); !commands.empty(); machine->take_commands(commands))
      for (command& c : commands)
        if (auto* order = std::get_if<device_order>(&c))
          carry_out(*order);
        else if (auto* job = std::get_if<plan_wanted>(&c))
          machine->on(planned{job->job, capture(job->make)});
        else if (auto* ended = std::get_if<run_answer>(&c))
          answer = std::move(*ended);
  }
  void carry_out(device_order& order) {
    if (const auto* install = std::get_if<install_plan>(&order.what)) {
      bound_ = install->bound;
      machine->on(0, {install->bound->id, install->self, {}});
    } else if (auto* chunks = std::get_if<run_chunks>(&order.what)) {
      work = std::move(chunks->works.at(0));
    }
  }

  std::unique_ptr<session_machine> machine;
  run_request_ptr request;
  std::optional<chunk_work> work;
  std::vector<std::string> names; // of its downloads
  bound_plan_ptr bound_;
  std::optional<run_answer> answer;
};

} // namespace

TEST_CASE("a value that a chunk leaves on its device is handed on as it was when the chunk began", "[run][B7]") {
  one_step s;
  const device_tensor one = on_far(), two = on_far();
  s.value("next1").fill({}, one);
  s.value("next2").fill({}, two);
  const moved_value* const first = &s.value("next1");
  const bool ahead = GENERATE(true, false), in_two = GENERATE(false, true);
  if (ahead && in_two)
    s.begin({"next2"});
  if (ahead)
    s.begin({"next1", "next2"});
  CHECK_FALSE(s.answer);
  if (ahead && in_two)
    s.begin({"next1"}); // said twice
  CHECK_FALSE(s.end().why.failed());
  REQUIRE(s.request->carried.made->size() == 2);
  CHECK((*s.request->carried.made)[0].value().get() == first);
  CHECK((*s.request->carried.made)[0].handle() == one);
  CHECK((*s.request->carried.made)[1].handle() == two);
}

TEST_CASE("what a run hands on it may keep by name, too", "[run][B7]") {
  one_step s({"next2"});
  const device_tensor one = on_far(), two = on_far();
  s.value("next1").fill({}, one);
  s.value("next2").fill({}, two);
  s.begin({"next1", "next2"});
  const run_answer answer = s.end();
  CHECK_FALSE(answer.why.failed());
  CHECK(answer.result.kept.at("next2") == two);
  CHECK((*s.request->carried.made)[1].handle() == two);
}

TEST_CASE("a value that is not as planned ends the run when its chunk has ended", "[run][B7][A13]") {
  one_step s;
  s.value("next1").fill({}, on_far());
  s.value("next2").fill({}, on_far({2}));
  s.begin({"next1", "next2"});
  CHECK_FALSE(s.answer);
  const run_answer answer = s.end();
  CHECK(answer.why.code == errc::internal);
  CHECK(answer.why.message.find("another shape") != std::string::npos);
}

TEST_CASE("that a chunk has begun counts for nothing if it is said too late, or of no chunk", "[run][B7]") {
  one_step s;
  const execution_id execution = s.work->execution;
  s.value("next1").fill({}, on_far());
  s.value("next2").fill({}, on_far());
  s.machine->on(chunk_begun{execution, s.work->chunk + 7, {0}});
  s.machine->on(chunk_begun{execution, s.work->chunk, {17}});
  s.machine->on(chunk_begun{execution + 1, s.work->chunk, {0}});
  CHECK_FALSE(s.end().why.failed());
  s.machine->on(chunk_begun{execution, 0, {0}});
  CHECK(s.machine->idle());
}

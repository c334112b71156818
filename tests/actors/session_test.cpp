// Sessions on real threads: inputs and outputs, runs side by side, cancellation, and an engine that goes away.
#include "plan/show/print.hpp"
#include "support/bound_values.hpp"

#include <thread>

using namespace std::chrono_literals;
using namespace troupe;
using namespace troupe::test;

namespace {

/// An engine of one reference device that follows a script.
engine scripted_engine(fault_script script, std::chrono::milliseconds device_timeout = std::chrono::minutes(1)) {
  return engine_of({reference("ref", script)}, device_timeout);
}

const tensor six = floats({2, 3}, {-1, 2, 3, 4, 5, 6});

} // namespace

TEST_CASE("inputs that do not fit are refused with the reason", "[actors][B7]") {
  engine e({.devices = {"null"}});
  const session s = e.load(chain(2, {dim::symbol("batch"), 3}));
  const auto refused = [&](named_tensors inputs, const std::string& words) {
    const error problem = thrown_by([&] { s.run(std::move(inputs)); });
    INFO(problem.what());
    CHECK(problem.code() == errc::invalid_input);
    CHECK(std::string(problem.what()).find(words) != std::string::npos);
  };
  refused({}, "'x' is missing");
  refused({{"x", six}, {"z", six}}, "no input 'z'");
  refused({{"x", tensor{}}}, "holds no tensor");
  refused({{"x", tensor(dtype::int32, {2, 3})}}, "is int32; the model takes float32");
  refused({{"x", floats({6}, {1, 2, 3, 4, 5, 6})}}, "shape [6]");
  refused({{"x", floats({3, 2}, {1, 2, 3, 4, 5, 6})}}, "shape [3, 2]");
  CHECK(s.run({{"x", six}}).outputs.size() == 1);
}

TEST_CASE("dims that the session states are compared with the inputs", "[actors][B7]") {
  engine e({.devices = {"null"}});
  const session s = e.load(chain(2, {dim::symbol("batch"), 3}), {.dims = {{"batch", 4}}});
  CHECK(thrown_by([&] { s.run({{"x", six}}); }).code() == errc::invalid_input);
}

TEST_CASE("outputs may be inputs and constants, and are chosen by name", "[actors][B7]") {
  graph_builder b;
  const value_id x = b.input("x", {2, 3});
  const value_id y = b.op("Relu", {x});
  b.g.outputs = {y, x, b.constant("c", floats({2}, {7, 8}))};
  const graph& g = b.g;
  engine e({.devices = {"cpu"}});
  const auto all = e.load(g).run({{"x", six}}).outputs;
  REQUIRE(all.size() == 3);
  CHECK(all.at("x").values<float>()[0] == -1);
  CHECK(all.at("c").values<float>()[1] == 8);
  CHECK(all.at(b.name(y)).values<float>()[0] == 0);
  const auto one = e.load(g, {.outputs = {"c"}}).run({{"x", six}}).outputs;
  REQUIRE(one.size() == 1);
  CHECK(one.at("c").values<float>()[0] == 7);
  CHECK(thrown_by([&] { e.load(g, {.outputs = {"nothing"}}); }).code() == errc::invalid_argument);
}

TEST_CASE("a session whose outputs are parts of the model's says so, and gives them", "[actors][B7]") {
  graph_builder b;
  const value_id y = b.inferred("Neg", {b.input("x", {dim::symbol("rows"), 3})});
  b.output(y);
  const std::string name = b.name(y);
  engine e({.devices = {"cpu"}});
  const session s = e.load(b.g, {.output_slices = {{name, 0, -1}, {name, 1, 0, 2}}});
  CHECK(to_string(*s.outputs().at(0).dims) == "[1, 2]");
  const tensor found = s.run({{"x", six}}).outputs.at(name);
  CHECK(found.dims() == shape{1, 2});
  CHECK(values_of(found) == std::vector<float>{-4, -5});
  const error refused = thrown_by([&] { e.load(b.g, {.output_slices = {{"nothing"}}}); });
  CHECK(refused.code() == errc::invalid_argument);
}

TEST_CASE("shapes that depend on data are bound when the data are there", "[actors][D1]") {
  graph_builder b;
  b.output(b.op("Neg", {b.op("NonZero", {b.input("x", {2, 3})})}, {}, "out"));
  engine e({.devices = {"cpu*2"}});
  const session s = e.load(b.g, {.policy = placement_policy::round_robin, .fuse = false});
  for (const int64_t count : {0, 2, 6, 2}) {
    std::vector<float> values(6, 0.f);
    std::fill_n(values.begin(), count, 1.f);
    const tensor found = s.run({{"x", floats({2, 3}, values)}}).outputs.at("out");
    REQUIRE(found.dims() == shape{2, count});
    for (int64_t i = 0; i < count; ++i)
      CHECK(found.data<int64_t>()[count + i] == -(i % 3));
  }
}

TEST_CASE("an input whose shape the file does not state takes any rank", "[actors][D3]") {
  graph g = chain(2);
  g.values[g.inputs[0]].dims = std::nullopt;
  engine e({.devices = {"cpu"}});
  const session s = e.load(g);
  for (const shape& dims : {shape{2, 3}, shape{6}, shape{1, 3, 2}, shape{6}, shape{3}}) {
    tensor x(dtype::float32, dims);
    std::fill_n(x.mutable_data<float>(), x.size(), 0.f);
    const tensor out = s.run({{"x", x}}).outputs.begin()->second;
    CHECK(out.dims() == dims);
    CHECK(out.values<float>()[0] == 0.5f);
  }
  CHECK(s.stats().bound_plans.misses == 4);
}

TEST_CASE("elements that decide shapes are read during a run: later the memory is the caller's", "[actors][B7]") {
  graph_builder b;
  b.output(b.op("Slice", {b.input("x", {4}), b.input("from", {1}, dtype::int64), b.input("to", {1}, dtype::int64)}, {},
                "y"));
  engine e({.devices = {"cpu"}});
  const tensor x = floats({4}, {1, 2, 3, 4});
  const auto first_of = [&](const session& s, const std::vector<int64_t>& from, const std::vector<int64_t>& to) {
    const auto over = [](const std::vector<int64_t>& memory) {
      return tensor(dtype::int64, {1}, std::shared_ptr<const void>{}, memory.data());
    };
    return s.run({{"x", x}, {"from", over(from)}, {"to", over(to)}}).outputs.at("y").values<float>()[0];
  };
  const session one = e.load(b.g), two = e.load(b.g);
  std::vector<int64_t> from{1}, to{2};
  CHECK(first_of(one, from, to) == 2);
  from = {0}, to = {1};
  CHECK(first_of(one, from, to) == 1);
  const std::vector<int64_t> as_before{1}, end{2};
  CHECK(first_of(one, as_before, end) == 2);
  CHECK(first_of(two, as_before, end) == 2); // devices share equal constants of sessions
}

TEST_CASE("runs of one session go on side by side from several threads", "[actors][A9][A11]") {
  engine e({.devices = {"cpu*2"}});
  const session s = e.load(chain(6), {.policy = placement_policy::round_robin, .fuse = false});
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller)
    callers.emplace_back([&, caller] {
      for (int i = 0; i < 50; ++i) {
        const float value = static_cast<float>(caller * 50 + i) / 50 - 2;
        float expected = value;
        for (int k = 0; k < 3; ++k)
          expected = 1 / (1 + std::exp(-expected));
        const auto outputs = s.run({{"x", floats({2, 3}, std::vector<float>(6, value))}}).outputs;
        if (outputs.begin()->second.values<float>()[5] != Approx(expected))
          ++wrong;
      }
    });
  for (std::thread& t : callers)
    t.join();
  CHECK(wrong == 0);
  CHECK(s.stats().runs == 200);
  CHECK(s.stats().bound_plans.misses == 1);
}

TEST_CASE("a plan can be asked for without a run", "[actors]") {
  engine e({.devices = {"null*2"}});
  const session s =
      e.load(chain(4, {dim::symbol("batch"), 3}), {.policy = placement_policy::round_robin, .fuse = false});
  const bound_plan_ptr bound = bound_plan_of(s, {{"x", six}});
  CHECK(bound->source->chunks.size() == 4);
  CHECK(bound->dims.at(bound->source->program->outputs.at(0)) == shape{2, 3});
  CHECK(plan_of(s, {{"x", six}}) == bound->source);
  CHECK_THROWS_AS(plan_of(s, {}), error);
  CHECK(s.stats().bound_plans.hits == 1);
  CHECK(s.plan({{"x", six}}) == to_text(*bound->source, bound.get()));
  CHECK(s.plan({{"x", six}}, plan_format::json) == to_json(*bound->source, bound.get()));
  CHECK(s.plan({{"x", six}}, plan_format::dot) == to_dot(*bound->source, bound.get()));
}

TEST_CASE("a run that is cancelled or late ends at once", "[actors]") {
  engine e(scripted_engine({.stall_at = 0}));
  const session s = e.load(chain(2));
  std::stop_source stop;
  auto cancelled = s.run_async({{"x", six}}, {.cancel = stop.get_token()});
  CHECK(cancelled.wait_for(20ms) == std::future_status::timeout);
  stop.request_stop();
  CHECK(thrown_by([&] { cancelled.get(); }).code() == errc::cancelled);
  CHECK(thrown_by([&] { s.run({{"x", six}}, {.cancel = stop.get_token()}); }).code() == errc::cancelled);
  CHECK(thrown_by([&] { s.run({{"x", six}}, {.timeout = 30ms}); }).code() == errc::timeout);
}

TEST_CASE("an engine that is destroyed ends its runs, and its sessions refuse new ones", "[actors][C11]") {
  auto e = std::make_unique<engine>(scripted_engine({.stall_at = 0}));
  const session s = e->load(chain(2));
  auto in_flight = s.run_async({{"x", six}});
  e.reset();
  CHECK(thrown_by([&] { in_flight.get(); }).code() == errc::cancelled);
  CHECK(thrown_by([&] { s.run({{"x", six}}); }).code() == errc::cancelled);
  CHECK(thrown_by([&] { s.stats(); }).code() == errc::cancelled);
}

TEST_CASE("a device that hangs in a call is abandoned; engine and caller go on", "[actors][C11]") {
  const auto latch = std::make_shared<hang_latch>();
  {
    engine e(scripted_engine({.hang_at = 0, .latch = latch}, 50ms));
    const session s = e.load(chain(2));
    const error problem = thrown_by([&] { s.run({{"x", six}}); });
    CHECK(problem.code() == errc::device_lost);
    CHECK(std::string(problem.what()).find("'ref'") != std::string::npos);
  }
  latch->release();
}

TEST_CASE("a run goes on when the caller drops its session", "[actors]") {
  engine e(scripted_engine({.delay = 5ms}));
  std::future<run_result> result = e.load(chain(2)).run_async({{"x", six}});
  CHECK(result.get().outputs.size() == 1);
}

TEST_CASE("engines refuse devices that do not open, or share a name", "[actors]") {
  const device_factory twin = [] { return std::make_unique<reference_device>("twin"); };
  CHECK(thrown_by([&] {
          make_engine({.devices = {}}, {.custom_devices = {twin, twin}});
        }).code() == errc::invalid_argument);
  const device_factory broken = []() -> std::unique_ptr<device> { fail(errc::unsupported, "no driver"); };
  CHECK(thrown_by([&] { make_engine({.devices = {"null"}}, {.custom_devices = {broken}}); }).code() ==
        errc::unsupported);
  CHECK(thrown_by([&] { engine e({.devices = {}}); }).code() == errc::invalid_argument);
}

TEST_CASE("an engine counts the work of its devices", "[actors]") {
  engine e({.devices = {"null*2"}});
  const session s = e.load(chain(4), {.policy = placement_policy::round_robin, .fuse = false});
  s.run({{"x", six}});
  const auto stats = e.stats();
  REQUIRE(stats.size() == 2);
  CHECK(stats[0].chunks == 2);
  CHECK(stats[1].chunks == 2);
  CHECK(e.devices().at(1).name == "null#1");
}

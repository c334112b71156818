// If, Loop and Scan from call to result, and how their runs end before the end.
#include "actors/engine_access.hpp"
#include "plan/show/print.hpp"
#include "support/bound_values.hpp"
#include "support/catch.hpp"
#include "support/control_models.hpp"
#include "support/thrown.hpp"
#include "trace/run_trace.hpp"

#include <iostream>
#include <thread>

using namespace std::chrono_literals;
using namespace troupe;
using namespace troupe::test;

namespace {

/// A loop that never ends by itself.
graph endless_loop() {
  graph_builder b;
  const value_id x = b.input("x", {4});
  b.output(add_loop(b, "forever", no_value, no_value, x, [](body_builder& body, value_id, value_id go, value_id v) {
    return std::pair(go, body.op("Relu", {v}));
  }));
  return b.g;
}

/// A loop that never ends and has nothing to compute.
graph idle_loop() {
  graph_builder b;
  const value_id x = b.input("x", {4});
  b.output(add_loop(b, "idle", no_value, no_value, x,
                    [](body_builder&, value_id, value_id go, value_id v) { return std::pair(go, v); }));
  return b.g;
}

/// Takes the value of a table of two by iteration; fails if the iteration is beyond the table.
graph table_loop() {
  graph_builder b;
  const value_id n = b.input("n", {}, dtype::int64), table = b.input("table", {2}), x = b.input("x", {});
  b.output(add_loop(b, "lookup", n, no_value, x, [&](body_builder& body, value_id i, value_id go, value_id v) {
    return std::pair(go, body.op("Add", {v, body.op("Gather", {body.capture(table), i}, {}, "row")}));
  }));
  return b.g;
}

} // namespace

TEST_CASE("a loop runs on every device, its scan outputs are joined", "[actors][control][A14][A4][C3]") {
  for (const std::vector<std::string>& devices : std::vector<std::vector<std::string>>{{"cpu"}, {"cpu*3"}}) {
    engine e({.devices = devices});
    for (const placement_policy policy :
         {placement_policy::single, placement_policy::round_robin, placement_policy::weighted,
          placement_policy::greedy_memory, placement_policy::heft, placement_policy::pipeline}) {
      const session s = e.load(growing_loop(), {.policy = policy});
      const run_result r = s.run(growing_inputs(4, 1000));
      CHECK(values_of(r.outputs.at("loop.0")) == std::vector<float>{31, 160});
      CHECK(r.outputs.at("loop.1").dims() == shape{4, 2});
      CHECK(values_of(r.outputs.at("loop.1")) == std::vector<float>{3, 20, 7, 40, 15, 80, 31, 160});
      CHECK(values_of(s.run(growing_inputs(100, 10)).outputs.at("loop.0")) == std::vector<float>{15, 80});
      const run_result none = s.run(growing_inputs(0, 10));
      CHECK(values_of(none.outputs.at("loop.0")) == std::vector<float>{1, 10});
      CHECK(none.outputs.at("loop.1").dims() == shape{0, 2});
      verify(*plan_of(s, growing_inputs(4, 1000)));
    }
  }
}

TEST_CASE("a pin may name a node of a body", "[actors][control][A14]") {
  engine e({.devices = {"cpu*2"}});
  const session s = e.load(growing_loop(), {.pins = {{"Gather_*", "cpu#1"}}});
  CHECK(values_of(s.run(growing_inputs(4, 1000)).outputs.at("loop.0")) == std::vector<float>{31, 160});
  const auto body = plan_of(s, growing_inputs(4, 1000))->bodies.at(0).compiled;
  for (size_t n = 0; n < body->program->nodes.size(); ++n)
    CHECK(body->placement[n] == (body->program->nodes[n].op_type == "Gather" ? 1 : 0));
}

TEST_CASE("unrolled and executed, a loop gives the same", "[actors][control][D2]") {
  engine e({.devices = {"cpu"}});
  const auto model = [](bool known) {
    graph_builder b;
    const value_id n = known ? b.constant("n", count(6)) : b.input("n", {}, dtype::int64);
    const value_id x = b.input("x", {1, 3});
    b.output(add_loop(b, "loop", n, no_value, x, [&](body_builder& body, value_id i, value_id go, value_id v) {
      const value_id end =
          body.op("Unsqueeze", {body.op("Add", {i, body.constant("one", count(1))}), body.integers({0})});
      const value_id some = body.op("Slice", {v, body.integers({0}), end, body.integers({0})});
      return std::pair(go, body.op("Concat", {v, some}, attrs_of({{"axis", int64_t{0}}})));
    }));
    return b.g;
  };
  const named_tensors x{{"x", floats({1, 3}, {1, 2, 3})}};
  named_tensors both = x;
  both["n"] = count(6);
  const tensor flat = e.load(model(true)).run(x).outputs.at("loop.0");
  const tensor executed = e.load(model(false)).run(both).outputs.at("loop.0");
  CHECK(flat.dims() == shape{22, 3});
  CHECK(flat.dims() == executed.dims());
  CHECK(values_of(flat) == values_of(executed));
}

TEST_CASE("an If in a Loop in an If reads values from two levels up", "[actors][control][A14]") {
  graph_builder b;
  const value_id c = b.input("c", {}, dtype::boolean), n = b.input("n", {}, dtype::int64),
                 x = b.input("x", {dim::symbol("d")}), bonus = b.input("bonus", {dim::symbol("d")});
  body_builder yes(&b), no(&b);
  const value_id bonus_1 = yes.capture(bonus);
  yes.output(add_loop(yes, "loop", yes.capture(n), no_value, yes.capture(x),
                      [&](body_builder& body, value_id i, value_id go, value_id v) {
                        body_builder odd(&body), even(&body);
                        const value_id bonus_2 = body.capture(bonus_1);
                        odd.output(odd.op("Add", {odd.capture(v), odd.capture(bonus_2)}));
                        even.output(even.capture(v));
                        const value_id is_odd = body.op("Cast", {body.op("Mod", {i, body.constant("two", count(2))})},
                                                        attrs_of({{"to", static_cast<int64_t>(dtype::boolean)}}));
                        return std::pair(go, add_control(body, "If", "inner", {is_odd},
                                                         {{"then_branch", &odd}, {"else_branch", &even}}, 1)[0]);
                      }));
  no.output(no.capture(bonus));
  b.output(add_control(b, "If", "outer", {c}, {{"then_branch", &yes}, {"else_branch", &no}}, 1)[0]);
  engine e({.devices = {"cpu"}});
  const session s = e.load(b.g);
  named_tensors inputs{
      {"n", count(5)}, {"x", floats({2}, {1, 2})}, {"bonus", floats({2}, {10, 100})}, {"c", tensor::scalar(true)}};
  CHECK(values_of(s.run(inputs).outputs.at("outer.0")) == std::vector<float>{21, 202});
  inputs["c"] = tensor::scalar(false);
  CHECK(values_of(s.run(inputs).outputs.at("outer.0")) == std::vector<float>{10, 100});
  const std::string text = to_text(*plan_of(s, inputs));
  CHECK(text.find("\nIf 'outer', body 'then_branch'\n  plan ") != std::string::npos);
  CHECK(text.find("\n  Loop 'loop', body 'body'\n    plan ") != std::string::npos);
}

TEST_CASE("branches may return captured values and constants, of shapes that differ", "[actors][control][A14]") {
  graph_builder b;
  const value_id c = b.input("c", {}, dtype::boolean), x = b.input("x", {dim::symbol("d")});
  const value_id k = b.constant("k", floats({3}, {7, 8, 9}));
  body_builder yes(&b), no(&b);
  yes.output(yes.capture(x));
  yes.output(yes.capture(x));
  no.output(no.constant("k2", floats({3}, {7, 8, 9})));
  no.output(no.capture(k));
  const auto both = add_control(b, "If", "choice", {c}, {{"then_branch", &yes}, {"else_branch", &no}}, 2);
  b.output(both[0]);
  b.output(b.op("Add", {both[0], both[1]}, {}, "twice"));
  engine e({.devices = {"cpu*2"}});
  const session s = e.load(b.g, {.policy = placement_policy::round_robin});
  const auto run = [&](bool condition) {
    return s.run({{"c", tensor::scalar(condition)}, {"x", floats({2}, {1, 2})}}).outputs;
  };
  CHECK(values_of(run(true).at("twice")) == std::vector<float>{2, 4});
  CHECK(values_of(run(false).at("twice")) == std::vector<float>{14, 16, 18});
  CHECK(values_of(run(false).at("choice.0")) == std::vector<float>{7, 8, 9});
}

TEST_CASE("elements of a body's input may decide shapes in it", "[actors][control][D3]") {
  graph_builder b;
  const value_id n = b.input("n", {}, dtype::int64), x = b.input("x", {4, 3}),
                 shape0 = b.input("shape", {2}, dtype::int64);
  body_builder body(&b);
  body.input("i", {}, dtype::int64);
  const value_id go = body.input("go", {}, dtype::boolean), dims = body.input("dims", {2}, dtype::int64);
  const value_id flipped = body.op("Gather", {dims, body.integers({1, 0})});
  body.output(go);
  body.output(flipped);
  body.output(
      body.op("ReduceSum", {body.op("Reshape", {body.capture(x), dims})}, attrs_of({{"keepdims", int64_t{0}}})));
  const auto results = add_control(b, "Loop", "loop", {n, no_value, shape0}, {{"body", &body}}, 2);
  b.output(results[0]);
  b.output(results[1]);
  engine e({.devices = {"cpu"}});
  const session s = e.load(b.g);
  const std::vector<int64_t> start{2, 6};
  tensor values(dtype::float32, {4, 3});
  std::fill_n(values.mutable_data<float>(), 12, 1.F);
  const run_result r = s.run({{"n", count(3)}, {"x", values}, {"shape", tensor::of<int64_t>({2}, start)}});
  CHECK(to_int64(r.outputs.at("loop.0").view()) == std::vector<int64_t>{6, 2});
  CHECK(values_of(r.outputs.at("loop.1")) == std::vector<float>{12, 12, 12});
}

TEST_CASE("a body that fails ends the run with one error that names node and iteration", "[actors][control][A14]") {
  engine e({.devices = {"cpu"}});
  const session s = e.load(table_loop());
  const auto inputs = [](int64_t n) {
    return named_tensors{{"n", count(n)}, {"table", floats({2}, {5, 6})}, {"x", floats({}, {1})}};
  };
  CHECK(values_of(s.run(inputs(2)).outputs.at("lookup.0")) == std::vector<float>{12});
  const error problem = thrown_by([&] { s.run(inputs(4)); });
  INFO(problem.what());
  CHECK(std::string(problem.what()).find("Loop 'lookup', iteration 2: device 'cpu' failed in chunk") == 0);
  CHECK(std::string(problem.what()).find("Gather 'Gather_row'") != std::string::npos);
  CHECK(values_of(s.run(inputs(2)).outputs.at("lookup.0")) == std::vector<float>{12}); // the session goes on
}

TEST_CASE("operands that cannot be a condition or a trip count end the run with one error", "[actors][control][A14]") {
  graph_builder b;
  const value_id n = b.input("n", {dim::symbol("k")}, dtype::int64), x = b.input("x", {});
  for (const char* name : {"first", "second"}) // both are ready at once
    b.output(add_loop(b, name, n, no_value, x, [](body_builder& body, value_id, value_id go, value_id v) {
      return std::pair(go, body.op("Add", {v, v}));
    }));
  engine e({.devices = {"cpu"}});
  const session s = e.load(b.g);
  const auto inputs = [](const std::vector<int64_t>& trips) {
    return named_tensors{{"n", tensor::of<int64_t>({static_cast<int64_t>(trips.size())}, trips)},
                         {"x", floats({}, {1})}};
  };
  const error problem = thrown_by([&] { s.run(inputs({2, 3})); });
  INFO(problem.what());
  CHECK(problem.code() == errc::invalid_input);
  CHECK(std::string(problem.what()).find("Loop 'first': the trip count has shape [2]") == 0);
  CHECK(values_of(s.run(inputs({3})).outputs.at("second.0")) == std::vector<float>{8});
}

TEST_CASE("an endless loop ends by its deadline, and when it is cancelled", "[actors][control][A14]") {
  engine e({.devices = {"cpu"}});
  const named_tensors x{{"x", floats({4}, {1, 2, 3, 4})}};
  for (const graph& model : {endless_loop(), idle_loop()}) {
    const session s = e.load(model);
    const error late = thrown_by([&] { s.run(x, {.timeout = 100ms}); });
    CHECK(late.code() == errc::timeout);
    std::stop_source stop;
    auto running = s.run_async(x, {.cancel = stop.get_token()});
    std::this_thread::sleep_for(50ms);
    CHECK(running.wait_for(0s) != std::future_status::ready);
    stop.request_stop();
    REQUIRE(running.wait_for(10s) == std::future_status::ready);
    CHECK(thrown_by([&] { running.get(); }).code() == errc::cancelled);
  }
}

TEST_CASE("a device that dies in a body costs a re-run of the whole model", "[actors][control][A14]") {
  for (uint64_t at : {0, 1, 3, 6}) {
    engine e(engine_of({reference("bad", {.die_at = at}), reference("good")}, engine_options{}.device_timeout));
    const session s = e.load(growing_loop(), {.policy = placement_policy::round_robin});
    const run_result r = s.run(growing_inputs(4, 1000), {.timeout = 20s});
    CHECK(values_of(r.outputs.at("loop.0")) == std::vector<float>{31, 160});
    CHECK(r.stats.lost_devices == std::vector<std::string>{"bad"});
    CHECK(values_of(s.run(growing_inputs(2, 1000)).outputs.at("loop.0")) == std::vector<float>{7, 40});
  }
}

TEST_CASE("runs of a loop are in flight side by side", "[actors][control][A14]") {
  engine e({.devices = {"cpu*2"}});
  const session s = e.load(growing_loop(), {.policy = placement_policy::round_robin});
  std::vector<std::future<run_result>> running;
  for (int64_t n = 0; n < 40; ++n)
    running.push_back(s.run_async(growing_inputs(n % 8, 1e9F)));
  for (int64_t n = 0; n < 40; ++n) {
    const tensor y = running[static_cast<size_t>(n)].get().outputs.at("loop.0");
    CHECK(y.data<float>()[1] == 10 * std::pow(2.F, static_cast<float>(n % 8)));
  }
}

TEST_CASE("a traced run has the executions of its bodies", "[actors][control][A14]") {
  engine e({.devices = {"cpu"}});
  const run_result r = e.load(growing_loop()).run(growing_inputs(3, 1e9F), {.trace = true});
  REQUIRE(r.trace->bodies.size() == 3);
  CHECK(r.trace->bodies[1].name == "Loop 'loop', iteration 1");
  CHECK(r.trace->bodies[1].source->program->nodes.size() > 1);
  CHECK_FALSE(r.trace->bodies[1].chunks.empty());
  CHECK(r.trace->bodies[1].begin_ns >= r.trace->begin_ns);
  CHECK(r.trace->bodies[1].end_ns <= r.trace->end_ns);
}

TEST_CASE("a loop's symbols cannot be bound by the caller", "[actors][control][D2][D3]") {
  engine e({.devices = {"cpu"}});
  const error problem = thrown_by([&] { e.load(table_loop(), {.dims = {{"lookup.i", 3}}}); });
  INFO(problem.what());
  CHECK(problem.code() == errc::invalid_argument);
  CHECK(std::string(problem.what()).find("'lookup.i' is a variable of Loop 'lookup'") != std::string::npos);
  const session s =
      e.load(growing_loop(), {.dims = {{"d", 2}}}); // a dim of an input, whatever the loop calls its variables
  CHECK(s.run(growing_inputs(1, 10)).outputs.at("loop.0").dims() == shape{2});
}

TEST_CASE("bodies compute in float16 if that is asked for", "[actors][control][A14]") {
  engine e({.devices = {"cpu"}});
  const session s = e.load(growing_loop(), {.precision = precision::fp16});
  CHECK(values_of(s.run(growing_inputs(4, 1000)).outputs.at("loop.0")) == std::vector<float>{31, 160});
  const auto p = plan_of(s, growing_inputs(4, 1000));
  const auto& values = p->bodies.at(0).compiled->program->values;
  CHECK(std::any_of(values.begin(), values.end(), [](const value& v) { return v.type == dtype::float16; }));
}

TEST_CASE("time of an iteration", "[actors][control][timing]") {
  engine e({.devices = {"cpu"}});
  const session s = e.load(growing_loop());
  s.run(growing_inputs(10, 1e38F));
  const auto start = std::chrono::steady_clock::now();
  named_tensors inputs = growing_inputs(1000, INFINITY);
  inputs["x"] = floats({2}, {0, 0});
  inputs["y"] = floats({2}, {0, 0});
  CHECK(s.run(inputs).outputs.at("loop.1").dims() == shape{1000, 2});
  const double us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
  std::cout << "a loop of 1000 small iterations: " << us / 1000 << " µs an iteration\n";
  CHECK(us < 5e6);
}

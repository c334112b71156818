// Sequences and optionals from call to result: as inputs and outputs, in bodies, carried by loops.
#include "actors/engine_access.hpp"
#include "plan/place/placement.hpp"
#include "rewrite/rewrite.hpp"
#include "support/catch.hpp"
#include "support/control_models.hpp"
#include "support/thrown.hpp"

using namespace troupe;
using namespace troupe::test;
using Catch::Contains;

namespace {

constexpr dtype floats_sequence = sequence_of(dtype::float32);

/// An input that is a sequence, or an optional, of tensors whose shapes the file does not state.
value_id container_input(graph_builder& b, const std::string& name, dtype type) {
  return b.input(name, {dim::symbol(name + ".0")}, type);
}

tensor sequence(std::vector<tensor> elements) {
  return tensor::sequence(dtype::float32, std::move(elements));
}

std::vector<std::vector<float>> contents(const tensor& sequence) {
  std::vector<std::vector<float>> all;
  for (const tensor& t : sequence.values<tensor>())
    all.push_back(values_of(t));
  return all;
}

using lists = std::vector<std::vector<float>>;

tensor run_one(const session& s, const named_tensors& inputs) {
  return s.run(inputs).outputs.begin()->second;
}

std::string failure_of(const session& s, const named_tensors& inputs) {
  const error e = thrown_by([&] { s.run(inputs); });
  CHECK((e.code() == errc::invalid_input || e.code() == errc::unsupported));
  return e.what();
}

attributes axis(int64_t axis) {
  return attrs_of({{"axis", axis}});
}

/// x [6, 4] → its rows in pairs → the pair at `i` → Relu.
graph pairs_model() {
  graph_builder b;
  const value_id pairs = b.op("SplitToSequence", {b.input("x", {6, 4}), b.integer(2)}, axis(0));
  b.output(b.op("Relu", {b.op("SequenceAt", {pairs, b.input("i", {}, dtype::int64)})}));
  b.output(b.op("SequenceLength", {pairs}));
  return b.g;
}

/// n times: s ← s with s's length · x at its end.
graph growing_sequence() {
  graph_builder b(17);
  const value_id n = b.input("n", {}, dtype::int64), x = b.input("x", {dim::symbol("d")});
  const value_id grown = add_loop(
      b, "loop", n, no_value, b.op("SequenceEmpty", {}), [&](body_builder& body, value_id, value_id go, value_id s) {
        const value_id length = body.op("Cast", {body.op("SequenceLength", {s})}, attrs_of({{"to", int64_t{1}}}));
        return std::pair(go, body.op("SequenceInsert", {s, body.op("Mul", {body.capture(x), length})}));
      });
  b.output(grown);
  return b.g;
}

} // namespace

TEST_CASE("lengths and shapes of pieces that are known beforehand need no run", "[sequence][A6]") {
  const graph g = rewrite(pairs_model(), {});
  CHECK(*g.values[g.outputs[0]].dims == symbolic_shape{2, 4});
  CHECK(count_nodes(g, "SequenceLength") == 0);
  engine e({.devices = {"cpu*2"}});
  tensor x(dtype::float32, {6, 4});
  for (int i = 0; i < 24; ++i)
    x.mutable_data<float>()[i] = static_cast<float>(i - 16);
  for (const placement_policy policy : {placement_policy::single, placement_policy::round_robin}) {
    const session s = e.load(pairs_model(), {.policy = policy});
    const named_tensors outputs = s.run({{"x", x}, {"i", count(-1)}}).outputs;
    CHECK(values_of(outputs.begin()->second) == std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7});
    CHECK(outputs.rbegin()->second.values<int64_t>()[0] == 3);
    CHECK_THAT(failure_of(s, {{"x", x}, {"i", count(3)}}),
               Contains("SequenceAt") && Contains("position 3 is out of range for a sequence of 3"));
  }
}

TEST_CASE("a session takes sequences of any rank that the file leaves open", "[sequence][A6]") {
  graph_builder b;
  const value_id s = container_input(b, "s", floats_sequence);
  b.output(b.op("Relu", {b.op("SequenceAt", {s, b.integer(1)})}, {}, "y"));
  engine e({.devices = {"cpu"}});
  const session model = e.load(b.g);
  CHECK(model.inputs()[0].type == floats_sequence);
  CHECK(values_of(run_one(model, {{"s", sequence({floats({1}, {1}), floats({2}, {-1, 2})})}})) ==
        std::vector<float>{0, 2});
  const tensor matrix = run_one(model, {{"s", sequence({floats({1, 1}, {1}), floats({2, 1}, {3, -4})})}});
  CHECK(matrix.dims() == shape{2, 1});
  CHECK(values_of(run_one(model, {{"s", sequence({floats({1}, {1}), floats({3}, {1, 2, 3})})}})) ==
        std::vector<float>{1, 2, 3});
  CHECK_THAT(failure_of(model, {{"s", sequence({floats({1}, {1}), floats({1, 1}, {3})})}}), Contains("rank"));
  CHECK_THAT(failure_of(model, {{"s", sequence({floats({1}, {1})})}}), Contains("out of range"));
  CHECK_THAT(failure_of(model, {{"s", floats({1}, {1})}}), Contains("takes sequence(float32)"));
  CHECK_THAT(failure_of(model, {{"s", tensor::sequence(dtype::int64, {})}}), Contains("sequence(int64)"));
  tensor wrong(floats_sequence, {2});
  wrong.mutable_data<tensor>()[0] = count(3);
  CHECK_THAT(failure_of(model, {{"s", wrong}}), Contains("'s': element 0 of a sequence(float32) is int64"));
}

TEST_CASE("elements must have the shape that the model states", "[sequence][A6]") {
  graph_builder b;
  const value_id s = container_input(b, "s", floats_sequence);
  b.g.values[s].elements.dims = shape{-1, 2};
  b.output(b.op("SequenceAt", {s, b.integer(0)}, {}, "y"));
  engine e({.devices = {"cpu"}});
  const session model = e.load(b.g);
  CHECK(run_one(model, {{"s", sequence({floats({3, 2}, {1, 2, 3, 4, 5, 6})})}}).dims() == shape{3, 2});
  CHECK_THAT(failure_of(model, {{"s", sequence({floats({3, 1}, {1, 2, 3})})}}),
             Contains("element 0 has shape [3, 1]; the model takes [-1, 2]"));
}

TEST_CASE("sequences are inputs and outputs as they are", "[sequence][A6]") {
  graph_builder b;
  const value_id s = container_input(b, "s", floats_sequence), x = b.input("x", {dim::symbol("d")});
  b.output(b.op("Identity", {b.op("SequenceInsert", {b.op("SequenceErase", {s, b.integer(0)}), x})}, {}, "out"));
  engine e({.devices = {"cpu"}});
  const session model = e.load(b.g);
  const tensor x1 = floats({1}, {7});
  const tensor out = run_one(model, {{"s", sequence({floats({1}, {1}), floats({2}, {2, 3})})}, {"x", x1}});
  CHECK(out.type() == floats_sequence);
  CHECK(contents(out) == lists{{2, 3}, {7}});
  CHECK(contents(run_one(model, {{"s", sequence({floats({1}, {1})})}, {"x", x1}})) == lists{{7}});
  CHECK_THAT(failure_of(model, {{"s", sequence({})}, {"x", x1}}), Contains("[-1]"));
}

TEST_CASE("a loop carries a sequence that grows", "[sequence][control][A14]") {
  engine e({.devices = {"cpu*2"}});
  for (const placement_policy policy : {placement_policy::single, placement_policy::round_robin}) {
    const session s = e.load(growing_sequence(), {.policy = policy});
    const tensor x = floats({2}, {1, 10});
    CHECK(contents(run_one(s, {{"n", count(3)}, {"x", x}})) == lists{{0, 0}, {1, 10}, {2, 20}});
    CHECK(run_one(s, {{"n", count(0)}, {"x", x}}).dims() == shape{0});
    CHECK(contents(run_one(s, {{"n", count(5)}, {"x", floats({1}, {2})}})).at(4) == std::vector<float>{8});
  }
  graph joined = growing_sequence();
  graph_builder b;
  b.g = std::move(joined);
  b.g.outputs = {
      b.op("ConcatFromSequence", {b.g.outputs[0]}, attrs_of({{"axis", int64_t{0}}, {"new_axis", int64_t{1}}}))};
  const tensor stacked = run_one(e.load(b.g), {{"n", count(20)}, {"x", floats({1}, {3})}});
  CHECK(stacked.dims() == shape{20, 1});
  CHECK(stacked.data<float>()[19] == 57);
}

TEST_CASE("a loop carries an optional whose value each iteration makes", "[sequence][control][A14]") {
  graph_builder b(18);
  const value_id n = b.input("n", {}, dtype::int64), x = b.input("x", {2});
  const value_id o = container_input(b, "o", optional_of(dtype::float32));
  b.g.values[o].elements.dims = shape{2};
  b.output(add_loop(b, "loop", n, no_value, o, [&](body_builder& body, value_id, value_id go, value_id v) {
    body_builder yes(&body), no(&body);
    yes.output(yes.op("Add", {yes.op("OptionalGetElement", {yes.capture(v)}), yes.capture(body.capture(x))}));
    no.output(no.capture(body.capture(x)));
    const value_id has = body.op("OptionalHasElement", {v});
    return std::pair(go, add_control(body, "If", "if", {has}, {{"then_branch", &yes}, {"else_branch", &no}}, 1)[0]);
  }));
  engine e({.devices = {"cpu"}});
  const session s = e.load(b.g);
  const tensor empty = tensor::optional(dtype::float32, {}), x1 = floats({2}, {1, 2});
  const tensor full = tensor::optional(dtype::float32, floats({2}, {10, 10}));
  CHECK(values_of(run_one(s, {{"n", count(3)}, {"x", x1}, {"o", empty}})) == std::vector<float>{3, 6});
  CHECK(values_of(run_one(s, {{"n", count(2)}, {"x", x1}, {"o", full}})) == std::vector<float>{12, 14});
  CHECK(values_of(run_one(s, {{"n", count(0)}, {"x", x1}, {"o", full}})) == std::vector<float>{10, 10});
  CHECK_THAT(failure_of(s, {{"n", count(0)}, {"x", x1}, {"o", empty}}),
             Contains("carried value 0 is an empty optional"));
}

TEST_CASE("branches give sequences of different lengths", "[sequence][control][A14]") {
  graph_builder b;
  const value_id c = b.input("c", {}, dtype::boolean), x = b.input("x", {2});
  body_builder yes(&b), no(&b);
  yes.output(yes.op("SequenceConstruct", {yes.capture(x), yes.op("Neg", {yes.capture(x)})}));
  no.output(no.op("SequenceEmpty", {}));
  const value_id chosen = add_control(b, "If", "if", {c}, {{"then_branch", &yes}, {"else_branch", &no}}, 1)[0];
  b.output(chosen);
  b.output(b.op("SequenceLength", {chosen}, {}, "length"));
  engine e({.devices = {"cpu"}});
  const session s = e.load(b.g);
  for (bool condition : {true, false}) {
    const named_tensors out = s.run({{"c", tensor::scalar(condition)}, {"x", floats({2}, {1, 2})}}).outputs;
    CHECK(contents(out.at("if.0")) == (condition ? lists{{1, 2}, {-1, -2}} : lists{}));
    CHECK(out.rbegin()->second.values<int64_t>()[0] == (condition ? 2 : 0));
  }
}

TEST_CASE("SequenceMap runs its body for each element", "[sequence][control][A14]") {
  graph_builder b(17);
  const value_id s = container_input(b, "s", floats_sequence), t = container_input(b, "t", floats_sequence);
  const value_id x = b.input("x", {1}), y = b.input("y", {1});
  body_builder body(&b);
  std::vector<value_id> formal;
  for (const char* name : {"a", "b", "c"})
    formal.push_back(body.g.add_value({.name = name, .type = dtype::float32}));
  body.g.inputs = formal;
  body.output(body.op("Add", {body.op("Mul", {formal[0], formal[2]}), body.capture(y)}));
  body.output(body.op("Shape", {formal[1]}));
  for (value_id v : add_control(b, "SequenceMap", "map", {s, t, x}, {{"body", &body}}, 2))
    b.output(v);
  engine e({.devices = {"cpu*2"}});
  const session model = e.load(b.g, {.policy = placement_policy::round_robin});
  const auto run = [&](const tensor& first, const tensor& second) {
    return named_tensors{{"s", first}, {"t", second}, {"x", floats({1}, {10})}, {"y", floats({1}, {1})}};
  };
  const tensor two = sequence({floats({2}, {1, 2}), floats({1}, {3})});
  const named_tensors out = model.run(run(two, sequence({floats({1, 1}, {0}), floats({2, 2}, {0, 0, 0, 0})}))).outputs;
  CHECK(contents(out.at("map.0")) == lists{{11, 21}, {31}});
  CHECK(out.at("map.1").type() == sequence_of(dtype::int64));
  CHECK(out.at("map.1").values<tensor>()[1].values<int64_t>()[1] == 2);
  CHECK_THAT(failure_of(model, run(two, sequence({floats({1}, {0})}))),
             Contains("sequence 1 has 1 elements, but the first has 2"));
}

TEST_CASE("a SequenceMap over nothing gives empty sequences", "[sequence][control][A14]") {
  graph_builder b(17);
  const value_id s = container_input(b, "s", floats_sequence);
  b.g.values[s].elements.dims = shape{-1};
  body_builder body(&b);
  const value_id a = body.input("a", {dim::symbol("a.0")});
  body.output(body.op("Relu", {a}));
  b.output(add_control(b, "SequenceMap", "map", {s}, {{"body", &body}}, 1)[0]);
  engine e({.devices = {"cpu"}});
  const session model = e.load(b.g);
  const tensor none = run_one(model, {{"s", sequence({})}});
  CHECK(none.type() == floats_sequence);
  CHECK(none.dims() == shape{0});
  CHECK(contents(run_one(model, {{"s", sequence({floats({2}, {-1, 1}), floats({0}, {})})}})) == lists{{0, 1}, {}});
}

TEST_CASE("an optional input is asked for before it is used", "[sequence][control][A14]") {
  graph_builder b(18);
  const value_id o = container_input(b, "o", optional_of(dtype::float32));
  b.g.values[o].elements.dims = shape{2};
  const value_id has = b.op("OptionalHasElement", {o}, {}, "has");
  body_builder yes(&b), no(&b);
  yes.output(yes.op("OptionalGetElement", {yes.capture(o)}));
  no.output(no.constant("otherwise", floats({2}, {5, 6})));
  b.output(
      b.op("Neg", {add_control(b, "If", "if", {has}, {{"then_branch", &yes}, {"else_branch", &no}}, 1)[0]}, {}, "y"));
  engine e({.devices = {"cpu"}});
  const session model = e.load(b.g);
  CHECK(values_of(run_one(model, {{"o", tensor::optional(dtype::float32, floats({2}, {1, 2}))}})) ==
        std::vector<float>{-1, -2});
  CHECK(values_of(run_one(model, {{"o", tensor::optional(dtype::float32, {})}})) == std::vector<float>{-5, -6});
  tensor two(optional_of(dtype::float32), {2});
  CHECK_THAT(failure_of(model, {{"o", two}}), Contains("'o' is an optional of 2 elements"));
}

TEST_CASE("an empty optional has nothing to get", "[sequence][A6]") {
  graph_builder b(18);
  const value_id o = container_input(b, "o", optional_of(floats_sequence));
  b.output(b.op("OptionalGetElement", {o}, {}, "y"));
  engine e({.devices = {"cpu"}});
  const session model = e.load(b.g);
  CHECK(contents(run_one(model, {{"o", tensor::optional(floats_sequence, sequence({floats({1}, {4})}))}})) ==
        lists{{4}});
  CHECK_THAT(failure_of(model, {{"o", tensor::optional(floats_sequence, {})}}), Contains("the optional is empty"));
}

TEST_CASE("operators on tensors refuse sequences", "[sequence][A6]") {
  const auto refusal = [](const std::string& op, bool first) {
    graph_builder b;
    const value_id s = container_input(b, "s", floats_sequence), x = b.input("x", {1});
    b.output(b.op(op, first ? std::vector{s, x} : std::vector{x, s}));
    return std::string(thrown_by([&] { rewrite(b.g, {}); }).what());
  };
  CHECK_THAT(refusal("Add", true), Contains("element type sequence(float32) is not supported"));
  CHECK_THAT(refusal("Add", false), Contains("input 1 is sequence(float32), but must be a tensor"));
  CHECK_THAT(refusal("Gather", false), Contains("input 1 is sequence(float32), but must be a tensor"));
  CHECK_THAT(refusal("Reshape", false), Contains("input 1 is sequence(float32), but must be a tensor"));
  CHECK_THAT(refusal("SequenceInsert", true), !Contains("must be a tensor"));
}

TEST_CASE("models with sequences become float16 around them", "[sequence][precision]") {
  engine e({.devices = {"cpu"}});
  const session s = e.load(pairs_model(), {.precision = precision::fp16});
  tensor x(dtype::float32, {6, 4});
  std::fill_n(x.mutable_data<float>(), 24, 2.5F);
  CHECK(values_of(s.run({{"x", x}, {"i", count(0)}}).outputs.begin()->second) == std::vector<float>(8, 2.5F));
}

TEST_CASE("nothing of a model with sequences runs on another host", "[sequence][plan][B6]") {
  const auto g = std::make_shared<const graph>(rewrite(pairs_model(), {}));
  device_info here{.name = "cpu", .kind = device_kind::cpu}, there = here;
  here.host_memory = there.host_memory = true;
  here.memory_bytes = there.memory_bytes = 1 << 30;
  there.name = "b/cpu";
  there.host = "b";
  const std::vector<device_info> both{there, here};
  for (const placement_policy policy :
       {placement_policy::single, placement_policy::round_robin, placement_policy::heft})
    for (device_index d : place(*g, both, {.policy = policy}))
      CHECK(d == 1);
  const std::vector<device_info> far{there};
  CHECK_THAT(std::string(thrown_by([&] { place(*g, far, {}); }).what()), Contains("do not leave this host"));
  CHECK_THAT(std::string(thrown_by([&] {
                           place(*g, both, {.pins = {{"Relu*", "b/cpu"}}});
                         }).what()),
             Contains("pinned to 'b/cpu'") && Contains("do not leave this host"));
}

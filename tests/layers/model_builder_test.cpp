// Models built in code: the same answers as their operators' references, on CPU and GPU; wrong calls are named.
#include "troupe/model_builder.hpp"

#include "actors/engine_access.hpp"
#include "examples/tiny_transformer.hpp"
#include "loader/models.hpp"
#include "ops/registry.hpp"
#include "support/catch.hpp"
#include "support/gpu.hpp"
#include "support/run_graph.hpp"

using namespace troupe;
using namespace troupe::test;
using Catch::Contains;

namespace {

/// image [batch, 3, 8, 8] → scores [batch, 5]: the layers of a small CNN.
built_model small_cnn() {
  model_builder m("cnn");
  const variable image = m.input("image", dtype::float32, {dim::symbol("batch"), 3, 8, 8});
  variable x = m.conv(image, random_tensor({6, 3, 3, 3}, 1), random_tensor({6}, 2), {.pads = {1, 1, 1, 1}});
  x = m.relu(m.batch_norm(x, random_tensor({6}, 3), random_tensor({6}, 4), random_tensor({6}, 5),
                          tensor::of<float>({6}, std::vector<float>(6, 2.f))));
  const variable branch = m.conv(x, random_tensor({6, 3, 1, 1}, 6), variable(), {.group = 2});
  x = m.concat({x, m.tanh(branch)}, 1);
  x = m.max_pool(x, {2, 2}, {.strides = {2, 2}});
  x = m.average_pool(x, {2, 2}, {.strides = {2, 2}, .pads = {0, 0, 0, 0}});
  x = m.linear(m.flatten(x), random_tensor({48, 5}, 7), random_tensor({5}, 8));
  m.output("scores", m.sigmoid(x / tensor::scalar(4.f)));
  return m.build();
}

void check_on(const std::string& device, const built_model& g, const std::string& input, const tensor& x) {
  const tensor want = run_graph(inferred(g.source()), {x}).at(0);
  engine e = make_engine({.devices = {device}}, {.gpu_validation = gpus_are_validated()});
  const tensor got = e.load(g).run({{input, x}}).outputs.begin()->second;
  REQUIRE(got.dims() == want.dims());
  const auto a = to_double(got.view()), b = to_double(want.view());
  for (size_t i = 0; i < a.size(); ++i)
    REQUIRE(a[i] == Approx(b[i]).epsilon(1e-3).margin(1e-5));
  CHECK(gpu_messages(e).empty());
}

const tensor five_tokens = tensor::of<int64_t>({1, 5}, std::vector<int64_t>{7, 42, 3, 49, 0});

} // namespace

TEST_CASE("models built in code give the results of their operators' references", "[layers][B1]") {
  check_on("cpu", small_cnn(), "image", random_tensor({2, 3, 8, 8}, 9));
  check_on("cpu", examples::tiny_transformer(50, 16, 2), "tokens", five_tokens);
}

TEST_CASE("models built in code run on a GPU", "[layers][vulkan][B1]") {
  check_on("vulkan:0", small_cnn(), "image", random_tensor({2, 3, 8, 8}, 9));
  check_on("vulkan:0", examples::tiny_transformer(50, 16, 2), "tokens", five_tokens);
}

TEST_CASE("types and shapes are known as soon as a layer is added", "[layers][B1]") {
  model_builder m;
  const dim n = dim::symbol("n");
  const variable x = m.input("x", dtype::float32, {n, 6, 4});
  CHECK(x.name() == "x");
  CHECK(m.transpose(x, {1, 0, 2}).dims() == symbolic_shape{6, n, 4});
  CHECK(m.reshape(x, {n * 2, 12}).dims() == symbolic_shape{n * 2, 12});
  CHECK(m.reshape(x, {-1, 8}).dims() == symbolic_shape{n * 3, 8});
  CHECK(m.mean(x, {2}, false).dims() == symbolic_shape{n, 6});
  CHECK(m.cast(x, dtype::float16).type() == dtype::float16);
  CHECK((x * x - x + x).dims() == x.dims());
  const auto parts = m.call_all("Split", {x}, {{"axis", 1}, {"num_outputs", 3}}, {.outputs = 3});
  REQUIRE(parts.size() == 3);
  CHECK(parts[2].dims() == symbolic_shape{n, 2, 4});
  CHECK(parts[0].name() == "Split");
  CHECK(parts[2].name() == "Split:2");
  CHECK(m.relu(x).name() == "Relu");
  CHECK(m.relu(x).name() == "Relu_2");
  CHECK(m.call("Relu", {x}, {}, {.name = "mine"}).name() == "mine");
  CHECK_FALSE(variable());
}

TEST_CASE("a reshape to symbolic dims runs at any of them", "[layers][B1][D3]") {
  model_builder m;
  const dim n = dim::symbol("n");
  m.output("y", m.reshape(m.input("x", dtype::float32, {n, 6}), {2, n, 3}));
  engine e({.devices = {"cpu"}});
  const session s = e.load(m.build());
  for (const int64_t size : {1, 4})
    CHECK(s.run({{"x", random_tensor({size, 6}, 1)}}).outputs.at("y").dims() == shape{2, size, 3});
}

TEST_CASE("a layer that does not fit throws when it is added, and leaves the model as it was", "[layers][B1][D8]") {
  model_builder m, other;
  const variable x = m.input("x", dtype::float32, {2, 3});
  CHECK_THAT(error_of([&] { m.matmul(x, random_tensor({4, 5}, 1)); }), Contains("invalid_model: MatMul 'MatMul': "));
  CHECK_THAT(error_of([&] {
               m.call("Add", {x, tensor::scalar(int64_t{1})}, {}, {.name = "sum"});
             }),
             Contains("Add 'sum': ") && Contains("float32 and int64"));
  CHECK_THAT(error_of([&] { m.call("NoSuchThing", {x}); }), Contains("unsupported: NoSuchThing 'NoSuchThing'"));
  CHECK_THAT(error_of([&] { m.call("Relu", {x, x}); }), Contains("Relu 'Relu': 2 inputs"));
  CHECK_THAT(error_of([&] { m.call("Relu", {x}, {}, {.domain = "my.own"}); }), Contains("'my.own' is not supported"));
  CHECK_THAT(error_of([&] { m.transpose(x, {0, 2}); }), Contains("Transpose 'Transpose'"));
  CHECK_THAT(error_of([&] { m.relu(other.input("z", dtype::float32, {1})); }),
             Contains("invalid_argument: Relu 'Relu': input 0 is given 'z', which belongs to another model"));
  CHECK_THAT(error_of([&] { m.relu(variable()); }), Contains("Relu") && Contains("0 inputs"));
  CHECK_THAT(error_of([&] { m.relu(tensor()); }), Contains("input 0 is a tensor without elements or type"));
  CHECK_THAT(error_of([&] { m.input("x", dtype::float32, {1}); }), Contains("has something of that name already"));
  CHECK_THAT(error_of([&] { m.input("", dtype::float32, {1}); }), Contains("the input needs a name"));
  CHECK_THAT(error_of([&] { m.input("y", dtype::float32, {-1}); }), Contains("negative dim"));
  CHECK_THAT(error_of([&] { m.constant({}, "c"); }), Contains("'c' is given, but holds no tensor"));
  CHECK_THAT(error_of([&] { m.output("y", variable()); }), Contains("output 'y' is given a variable that names"));
  CHECK_THAT(error_of([&] { variable().dims(); }), Contains("names no value"));
  CHECK_THAT(error_of([&] { model_builder("m", 99); }), Contains("opset 99 is not known"));
  m.output("sum", m.call("Add", {x, x}, {}, {.name = "sum"}));
  CHECK(m.build().source().nodes.size() == 1);
  CHECK(m.build().source().values.size() == 2);
}

TEST_CASE("a model is checked as a whole before it is used", "[layers][B1][D8]") {
  model_builder m("net");
  const variable x = m.input("x", dtype::float32, {2, 3});
  CHECK_THAT(error_of([&] { m.build(); }), Contains("the model 'net' has no output"));
  const variable y = m.relu(x);
  m.output("y", y);
  CHECK(m.build().source().outputs.size() == 1);
  const variable unused = m.input("unused", dtype::float32, {2, 3});
  CHECK_THAT(error_of([&] { m.build(); }), Contains("no output of the model depends on the input 'unused'"));
  const variable dead = m.sigmoid(unused);
  CHECK_THAT(error_of([&] { m.build(); }), Contains("depends on Sigmoid 'Sigmoid': make it an output"));
  m.output("", dead);
  CHECK_THAT(error_of([&] { m.output("", dead); }), Contains("'Sigmoid' is an output already"));
  CHECK(m.build().source().outputs.size() == 2);
}

TEST_CASE("inputs, constants and one value twice can be outputs", "[layers][B7]") {
  model_builder m;
  const variable x = m.input("x", dtype::float32, {2});
  const variable y = m.relu(x);
  m.output("a", y);
  m.output("b", y);
  m.output("x", x);
  m.output("c", m.constant(tensor::of<float>({1}, std::vector<float>{5})));
  engine e({.devices = {"cpu"}});
  const auto outputs = e.load(m.build()).run({{"x", tensor::of<float>({2}, std::vector<float>{-1, 2})}}).outputs;
  REQUIRE(outputs.size() == 4);
  CHECK(outputs.at("a").values<float>()[1] == 2);
  CHECK(outputs.at("b").values<float>()[0] == 0);
  CHECK(outputs.at("x").values<float>()[0] == -1);
  CHECK(outputs.at("c").values<float>()[0] == 5);
}

TEST_CASE("the builder gives the graph that the loader gives for the same model as a file", "[layers][B1]") {
  const graph loaded = load(relu_model());
  model_builder m("g", 17);
  m.output("y", m.relu(m.input("x", dtype::float32, {dim::symbol("batch"), dim::symbol("features")})));
  graph built = m.build().source();
  resolve(built);
  REQUIRE(built.nodes.size() == loaded.nodes.size());
  CHECK(built.name == loaded.name);
  CHECK(built.nodes[0].def == loaded.nodes[0].def);
  CHECK(built.inputs == loaded.inputs);
  CHECK(built.outputs == loaded.outputs);
  REQUIRE(built.values.size() == loaded.values.size());
  for (size_t v = 0; v < built.values.size(); ++v) {
    CHECK(built.values[v].name == loaded.values[v].name);
    CHECK(built.values[v].type == loaded.values[v].type);
    CHECK(built.values[v].dims == loaded.values[v].dims);
  }
}

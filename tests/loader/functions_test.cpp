// Local functions and subgraphs.
#include "support/catch.hpp"

#include "loader/models.hpp"
#include "ops/op.hpp"

using namespace troupe;
using namespace troupe::test;
using Catch::Contains;

namespace {

onnx::FunctionProto& add_function(onnx::ModelProto& m, const std::string& name, const std::vector<std::string>& inputs,
                                  const std::vector<std::string>& outputs, int64_t opset = 17) {
  auto* f = m.add_functions();
  f->set_name(name);
  f->set_domain("local");
  for (const auto& i : inputs)
    f->add_input(i);
  for (const auto& o : outputs)
    f->add_output(o);
  f->add_opset_import()->set_version(opset);
  auto* local = f->add_opset_import();
  local->set_domain("local");
  local->set_version(1);
  return *f;
}

onnx::NodeProto& add_node(onnx::FunctionProto& f, const std::string& op, const std::vector<std::string>& inputs,
                          const std::vector<std::string>& outputs) {
  onnx::GraphProto g;
  *f.add_node() = test::add_node(g, op, inputs, outputs);
  return *f.mutable_node(f.node_size() - 1);
}

/// x → call of `function` → y.
onnx::ModelProto calling_model(const std::string& function) {
  auto m = relu_model();
  auto* local = m.add_opset_import();
  local->set_domain("local");
  local->set_version(1);
  m.mutable_graph()->mutable_node(0)->set_op_type(function);
  m.mutable_graph()->mutable_node(0)->set_domain("local");
  return m;
}

} // namespace

TEST_CASE("a call is replaced by the function's nodes", "[loader]") {
  auto m = calling_model("Twice");
  auto& f = add_function(m, "Twice", {"a"}, {"b"}, 12);
  add_node(f, "Relu", {"a"}, {"t"});
  add_node(f, "Sigmoid", {"t"}, {"b"});
  add_node(*m.mutable_graph(), "Twice", {"y"}, {"z"}).set_domain("local");
  m.mutable_graph()->mutable_output(0)->set_name("z");
  const graph g = load(m);
  REQUIRE(g.nodes.size() == 4);
  CHECK(g.nodes[0].op_type == "Relu");
  CHECK(g.nodes[1].op_type == "Sigmoid");
  CHECK(g.nodes[2].inputs[0] == g.nodes[1].outputs[0]);
  CHECK(g.values[g.nodes[0].outputs[0]].name != g.values[g.nodes[2].outputs[0]].name);
  CHECK(g.nodes[3].outputs == g.outputs);
}

TEST_CASE("functions are resolved with their own opset", "[loader]") {
  auto m = calling_model("F");
  add_node(add_function(m, "F", {"a"}, {"b"}, 999), "Relu", {"a"}, {"b"});
  CHECK_THAT(error_of([&] { load(m); }), Contains("opset 999") && Contains("'F'"));
}

TEST_CASE("attributes of a call reach the function's nodes", "[loader]") {
  auto m = calling_model("F");
  auto& f = add_function(m, "F", {"a"}, {"b"});
  f.add_attribute("slope");
  auto* reference = add_node(f, "Relu", {"a"}, {"b"}).add_attribute();
  reference->set_name("alpha");
  reference->set_ref_attr_name("slope");
  reference->set_type(onnx::AttributeProto::FLOAT);
  SECTION("given") {
    auto* slope = m.mutable_graph()->mutable_node(0)->add_attribute();
    slope->set_name("slope");
    slope->set_type(onnx::AttributeProto::FLOAT);
    slope->set_f(0.25f);
    CHECK(load(m).nodes[0].attrs.real("alpha") == 0.25f);
  }
  SECTION("left out: the call in the function has none") {
    CHECK_FALSE(load(m).nodes[0].attrs.has("alpha"));
  }
  SECTION("of another type") {
    auto* slope = m.mutable_graph()->mutable_node(0)->add_attribute();
    slope->set_name("slope");
    slope->set_type(onnx::AttributeProto::INT);
    CHECK_THAT(error_of([&] { load(m); }), Contains("another type"));
  }
  SECTION("by default") {
    f.clear_attribute();
    onnx::AttributeProto fallback;
    fallback.set_name("slope");
    fallback.set_type(onnx::AttributeProto::FLOAT);
    fallback.set_f(0.5f);
    constexpr int attribute_proto_field = 11; // newer than the message classes of Debian 12
    add_field(f, attribute_proto_field, fallback.SerializeAsString());
    CHECK(load(m).nodes[0].attrs.real("alpha") == 0.5f);
  }
}

TEST_CASE("functions that call themselves are refused", "[loader]") {
  auto m = calling_model("F");
  add_node(add_function(m, "F", {"a"}, {"b"}), "G", {"a"}, {"b"}).set_domain("local");
  add_node(add_function(m, "G", {"a"}, {"b"}), "F", {"a"}, {"b"}).set_domain("local");
  CHECK_THAT(error_of([&] { load(m); }), Contains("invalid_model") && Contains("calls itself"));
}

TEST_CASE("functions that blow up exponentially are refused", "[loader][slow]") {
  auto m = calling_model("F0");
  for (int i = 0; i < 40; ++i) {
    auto& f = add_function(m, fmt::format("F{}", i), {"a"}, {"b"});
    const std::string next = i == 39 ? "Relu" : fmt::format("F{}", i + 1);
    add_node(f, next, {"a"}, {"t"}).set_domain(i == 39 ? "" : "local");
    add_node(f, next, {"t"}, {"b"}).set_domain(i == 39 ? "" : "local");
  }
  CHECK_THAT(error_of([&] { load(m); }), Contains("unsupported") && Contains("1000000 nodes"));
}

TEST_CASE("calls of a function of very many formal inputs are refused", "[loader][limits]") {
  auto m = calling_model("Wide");
  std::vector<std::string> formal{"a"};
  for (int i = 0; i < 30'000; ++i)
    formal.push_back("unused" + std::to_string(i));
  auto& f = add_function(m, "Wide", formal, {"b"});
  add_node(f, "Relu", {"a"}, {"b"});
  for (int i = 0; i < 10'000; ++i) // 300 million formal inputs
    add_node(*m.mutable_graph(), "Wide", {"x"}, {"z" + std::to_string(i)}).set_domain("local");
  CHECK_THAT(error_of([&] { load(m); }), Contains("unsupported") && Contains("too large when they are inlined"));
}

TEST_CASE("malformed functions and calls", "[loader]") {
  auto m = calling_model("F");
  auto& f = add_function(m, "F", {"a"}, {"b"});
  SECTION("an output that nothing produces") {
    CHECK_THAT(error_of([&] { load(m); }), Contains("'b' is not produced"));
  }
  SECTION("too many inputs") {
    add_node(f, "Relu", {"a"}, {"b"});
    m.mutable_graph()->mutable_node(0)->add_input("x");
    CHECK_THAT(error_of([&] { load(m); }), Contains("2 inputs"));
  }
  SECTION("names of the caller are not visible") {
    add_node(f, "Relu", {"x"}, {"b"});
    CHECK_THAT(error_of([&] { load(m); }), Contains("'x', which nothing defines"));
  }
  SECTION("two functions of one name") {
    add_function(m, "F", {"a"}, {"b"});
    CHECK_THAT(error_of([&] { load(m); }), Contains("defined twice"));
  }
  SECTION("a reference outside of a function") {
    add_node(f, "Relu", {"a"}, {"b"});
    auto* a = m.mutable_graph()->mutable_node(0)->add_attribute();
    a->set_name("x");
    a->set_ref_attr_name("y");
    CHECK_THAT(error_of([&] { load(m); }), Contains("not in a function"));
  }
}

TEST_CASE("bodies capture values of the enclosing graph, and constants as constants", "[loader]") {
  // No table row is needed for the owner of a body: the loader need not know the attribute's meaning.
  auto m = relu_model();
  auto& outer = *m.mutable_graph();
  *outer.add_initializer() = raw_floats("w", {1}, {4});
  auto* a = outer.mutable_node(0)->add_attribute();
  a->set_name("body");
  a->set_type(onnx::AttributeProto::GRAPH);
  auto& body = *a->mutable_g();
  add_node(body, "Relu", {"x"}, {"inner"});
  add_node(body, "Sigmoid", {"w"}, {"constant"});
  body.add_output()->set_name("inner");
  body.add_output()->set_name("constant");
  SECTION("captured") {
    // Relu takes one input; the capture is not a formal one.
    const graph g = load(m);
    const node& n = g.nodes[0];
    REQUIRE(n.captures == 1);
    CHECK(n.inputs == std::vector<value_id>{g.inputs[0], g.inputs[0]});
    const auto& loaded = *std::get<std::shared_ptr<const graph>>(n.attrs.all().at("body"));
    REQUIRE(loaded.captured.size() == 1);
    CHECK(loaded.inputs == loaded.captured);
    CHECK(loaded.values[loaded.captured[0]].name == "x");
    CHECK(loaded.values[loaded.nodes[1].inputs[0]].constant->leaf.values<float>()[0] == 4);
  }
  SECTION("missing") {
    body.mutable_node(0)->set_input(0, "nowhere");
    CHECK_THAT(error_of([&] { load(m); }), Contains("'nowhere'"));
  }
}

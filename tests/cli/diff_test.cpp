// troupe diff, from the command line.
#include "loader/models.hpp"
#include "support/catch.hpp"
#include "support/command.hpp"

#include <nlohmann/json.hpp>

using namespace troupe::test;
using Catch::Contains;
using nlohmann::json;

namespace {

/// x → Softmax over `axis` → h → Add of w → y; w is a Constant node, if asked for.
onnx::ModelProto model(int64_t axis, const std::vector<float>& w, bool literal = false) {
  auto m = relu_model();
  auto& g = *m.mutable_graph();
  g.clear_node();
  auto* attribute = add_node(g, "Softmax", {"x"}, {"h"}).add_attribute();
  attribute->set_name("axis");
  attribute->set_type(onnx::AttributeProto::INT);
  attribute->set_i(axis);
  const auto weight = raw_floats("w", {std::ssize(w)}, w);
  if (literal) {
    auto* value = add_node(g, "Constant", {}, {"w"}).add_attribute();
    value->set_name("value");
    value->set_type(onnx::AttributeProto::TENSOR);
    *value->mutable_t() = weight;
  } else
    *g.add_initializer() = weight;
  add_node(g, "Add", {"h", "w"}, {"y"});
  return m;
}

struct two_models : scratch_folder {
  command_result diff(const onnx::ModelProto& a, const onnx::ModelProto& b, const std::string& options = "") const {
    const auto first = write("a.onnx", a.SerializeAsString()), second = write("b.onnx", b.SerializeAsString());
    return run_command("diff '" + first.string() + "' '" + second.string() + "' " + options, true);
  }
};

json difference(const std::string& name, const std::string& first, const std::string& second) {
  return {{"name", name}, {"first", first}, {"second", second}};
}

} // namespace

TEST_CASE("models that only say a weight in another way do not differ", "[cli][diff]") {
  const command_result r = two_models().diff(model(1, {1, 2}), model(1, {1, 2}, true));
  CHECK(r.output == "no difference\n");
  CHECK(r.status == 0);
}

TEST_CASE("differences of two models are named, with both sides", "[cli][diff]") {
  const two_models files;
  auto other = model(0, {1, 2.25});
  other.mutable_opset_import(0)->set_version(18);
  set_tensor_type(*other.mutable_graph()->add_output(), "z", {"batch", "features"});
  add_node(*other.mutable_graph(), "Relu", {"h"}, {"z"});
  const command_result r = files.diff(model(1, {1, 2}), other, "--json");
  INFO(r.output);
  REQUIRE(r.status == 1);
  const json all = json::parse(r.output);
  CHECK(all["opset"] == json{difference("ai.onnx", "17", "18")});
  CHECK(all["input"].empty());
  CHECK(all["output"] == json{difference("z", "", "float32 [batch, features]")});
  CHECK(all["operator"] == json{difference("Relu", "", "1")});
  CHECK(all["node"] ==
        json{difference("h", "Softmax(x), axis = 1", "Softmax(x), axis = 0"), difference("z", "", "Relu(h)")});
  CHECK(all["weight"] == json{difference("w", "float32 [2]", "elements differ by 0.25 at most")});
  CHECK_THAT(files.diff(model(1, {1, 2}), other, "--top 1").output,
             Contains("output   z: none -> float32 [batch, features]\n") && Contains("node     and 1 more (--top)\n"));
  CHECK_THAT(files.diff(model(1, {1}), model(1, {1, 2})).output, Contains("weight   w: float32 [1] -> float32 [2]\n"));
}

TEST_CASE("bodies of control flow are compared, too", "[cli][diff]") {
  const auto branching = [](const char* op) {
    auto m = relu_model();
    auto& g = *m.mutable_graph();
    set_tensor_type(*g.add_input(), "c", {});
    g.mutable_input(1)->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::BOOL);
    auto& branch = add_node(g, "If", {"c"}, {"z"});
    for (const char* name : {"then_branch", "else_branch"}) {
      auto* attribute = branch.add_attribute();
      attribute->set_name(name);
      attribute->set_type(onnx::AttributeProto::GRAPH);
      add_node(*attribute->mutable_g(), name == std::string("then_branch") ? op : "Relu", {"x"}, {"r"});
      set_tensor_type(*attribute->mutable_g()->add_output(), "r", {"batch", "features"});
    }
    set_tensor_type(*g.add_output(), "z", {"batch", "features"});
    return m;
  };
  const two_models files;
  CHECK(files.diff(branching("Tanh"), branching("Tanh")).status == 0);
  const command_result r = files.diff(branching("Tanh"), branching("Sigmoid"));
  CHECK(r.status == 1);
  CHECK_THAT(r.output, Contains("node     z/then_branch/r: Tanh(x) -> Sigmoid(x)\n") && !Contains("else_branch"));
}

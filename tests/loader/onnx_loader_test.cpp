#include "support/catch.hpp"

#include "loader/models.hpp"
#include "loader/onnx_loader.hpp"
#include "ops/op.hpp"

using namespace troupe;
using namespace troupe::test;

TEST_CASE("a loaded graph has the model's inputs, outputs and resolved nodes", "[loader]") {
  const graph g = load(relu_model());
  REQUIRE(g.nodes.size() == 1);
  CHECK(g.nodes[0].def->name == "Relu");
  REQUIRE(g.inputs.size() == 1);
  const value& x = g.values[g.inputs[0]];
  CHECK(x.name == "x");
  CHECK(x.type == dtype::float32);
  CHECK(to_string(*x.dims) == "[batch, features]");
  CHECK(g.nodes[0].outputs == g.outputs);
}

TEST_CASE("an initializer that is also an input is a constant, unless it contradicts the input an input too",
          "[loader]") {
  auto m = relu_model();
  *m.mutable_graph()->add_initializer() = raw_floats("x", {1, 2}, {-1, 3});
  const graph g = load(m);
  CHECK(g.inputs.size() == 1);
  m.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::INT32);
  CHECK(load(m).inputs.empty());
  const value& x = g.values[g.nodes[0].inputs[0]];
  REQUIRE(x.constant);
  CHECK(x.constant->leaf.values<float>()[1] == 3);
}

TEST_CASE("weights of a file are used where they are, if they are aligned", "[loader]") {
  const scratch_folder folder;
  auto m = relu_model();
  // The name's length moves raw_data: some of these four files have it aligned.
  int in_place = 0;
  for (const char* name : {"w", "ww", "www", "wwww"}) {
    auto changed = m;
    *changed.mutable_graph()->add_initializer() = raw_floats(name, {1000}, std::vector<float>(1000, 2.5f));
    const auto file = folder.write("m.onnx", changed.SerializeAsString());
    const graph g = load_model(file);
    for (const value& v : g.values)
      if (v.name == name) {
        CHECK(v.constant->leaf.values<float>()[999] == 2.5f);
        const auto address = reinterpret_cast<uintptr_t>(v.constant->leaf.data());
        CHECK(address % 4 == 0);
        in_place += address % 64 != 0; // copies are aligned to 64 bytes
      }
  }
  CHECK(in_place >= 1);
}

TEST_CASE("a file's node has no attribute that rewrites write", "[loader]") {
  auto m = relu_model();
  auto& named = *m.mutable_graph()->mutable_node(0)->add_attribute();
  named.set_name("troupe.iterations_before");
  named.set_type(onnx::AttributeProto::INT);
  named.set_i(1);
  CHECK_FALSE(load(m).nodes[0].attrs.has("troupe.iterations_before"));
}

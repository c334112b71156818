#include "loader/file_facts.hpp"

#include "loader/models.hpp"
#include "support/catch.hpp"

using namespace troupe;
using namespace troupe::test;
using Catch::Contains;

TEST_CASE("device configurations in bodies are reported as ignored, and training", "[loader]") {
  const scratch_folder folder;
  auto m = relu_model();
  const auto facts = [&] { return read_facts(folder.write("m.onnx", m.SerializeAsString())); };
  CHECK(facts().ignored.empty());
  CHECK(facts().ir_version == 8);
  add_field(m, 26, "");
  add_field(*m.mutable_graph()->mutable_node(0), 10, "");
  CHECK(facts().ignored.empty());
  auto& a = *add_node(*m.mutable_graph(), "If", {"x"}, {"z"}).add_attribute();
  a.set_name("then_branch");
  add_field(add_node(*a.mutable_g(), "Relu", {"x"}, {"r"}), 10, "");
  REQUIRE(facts().ignored.size() == 1);
  CHECK_THAT(facts().ignored[0], Contains("device configurations of 1 nodes in functions and bodies"));
  m.add_training_info();
  CHECK(facts().ignored.size() == 2);
}

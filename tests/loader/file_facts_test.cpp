#include "loader/file_facts.hpp"

#include "loader/models.hpp"
#include "support/catch.hpp"

using namespace troupe;
using namespace troupe::test;
using Catch::Contains;

namespace {

void add_field(google::protobuf::Message& message, int number, const std::string& content) {
  message.GetReflection()->MutableUnknownFields(&message)->AddLengthDelimited(number, content);
}

} // namespace

TEST_CASE("a file's devices, sharding and stages are found, in bodies too", "[loader]") {
  const scratch_folder folder;
  auto m = relu_model();
  const auto facts = [&] { return read_facts(folder.write("m.onnx", m.SerializeAsString())); };
  CHECK(facts().ignored.empty());
  CHECK(facts().ir_version == 8);
  auto& n = *m.mutable_graph()->mutable_node(0);
  add_field(m, 26, "");                                             // configuration
  add_field(n, 10, std::string("\x0a\x01\x61\x12\x00\x18\x02", 7)); // id "a", an empty sharding_spec, pipeline_stage 2
  auto& a = *add_node(*m.mutable_graph(), "If", {"x"}, {"z"}).add_attribute();
  a.set_name("then_branch");
  add_field(add_node(*a.mutable_g(), "Relu", {"x"}, {"r"}), 10, "");
  REQUIRE(facts().ignored.size() == 1);
  CHECK_THAT(facts().ignored[0], Contains("1 device configurations") && Contains("2 nodes use") &&
                                     Contains("1 of them with a sharding") &&
                                     Contains("1 of them with a pipeline_stage"));
  m.add_training_info();
  CHECK(facts().ignored.size() == 2);
}

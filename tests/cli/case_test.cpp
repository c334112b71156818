// troupe test, from the command line.
#include "loader/models.hpp"
#include "support/catch.hpp"
#include "support/command.hpp"

using namespace troupe::test;
using Catch::Contains;

namespace {

/// Writes a case: NaN and 1 cast to float8e5m2 must give these two bytes.
void write_float8_case(const scratch_folder& folder, const std::string& wanted) {
  onnx::ModelProto m = relu_model();
  m.mutable_opset_import(0)->set_version(19);
  onnx::NodeProto& cast = *m.mutable_graph()->mutable_node(0);
  cast.set_op_type("Cast");
  onnx::AttributeProto& to = *cast.add_attribute();
  to.set_name("to");
  to.set_type(onnx::AttributeProto::INT);
  constexpr int float8e5m2 = 19; // newer than the message classes of Debian 12
  to.set_i(float8e5m2);
  m.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->set_elem_type(float8e5m2);
  folder.write("model.onnx", m.SerializeAsString());
  std::filesystem::create_directory(folder.path() / "test_data_set_0");
  folder.write("test_data_set_0/input_0.pb", raw_floats("x", {1, 2}, {std::nanf(""), 1}).SerializeAsString());
  onnx::TensorProto y = raw_floats("y", {1, 2}, {});
  y.set_data_type(float8e5m2);
  y.set_raw_data(wanted);
  folder.write("test_data_set_0/output_0.pb", y.SerializeAsString());
}

command_result test_case(const std::string& wanted) {
  const scratch_folder folder;
  write_float8_case(folder, wanted);
  return run_command("test --devices cpu " + folder.path().string(), true);
}

} // namespace

TEST_CASE("every encoding of NaN is NaN to troupe test", "[cli]") {
  for (const char* nan : {"\x7d", "\x7e", "\x7f", "\xff"})
    CHECK_THAT(test_case(std::string(nan) + "\x3c").output, Contains("1 passed, 0 failed"));
  CHECK_THAT(test_case("\x7c\x3c").output, Contains("got nan, expected inf"));
  CHECK_THAT(test_case("\x7e\x3d").output, Contains("got 1, expected 1.25"));
}

// troupe test, from the command line: how outputs are compared with those of a case.
#include "loader/models.hpp"
#include "support/catch.hpp"
#include "support/command.hpp"

using namespace troupe::test;
using Catch::Contains;

namespace {

/// x → Identity → y of one element type.
onnx::ModelProto identity_model(int type) {
  onnx::ModelProto m = relu_model();
  auto& g = *m.mutable_graph();
  g.mutable_node(0)->set_op_type("Identity");
  for (auto* info : {g.mutable_input(0), g.mutable_output(0)})
    info->mutable_type()->mutable_tensor_type()->set_elem_type(type);
  return m;
}

template <class T>
std::string tensor_file(const std::string& name, int type, const std::vector<T>& elements) {
  onnx::TensorProto t;
  t.set_name(name);
  t.set_data_type(type);
  t.add_dims(1);
  t.add_dims(static_cast<int64_t>(elements.size()));
  t.set_raw_data(elements.data(), elements.size() * sizeof(T));
  return t.SerializeAsString();
}

/// Runs `troupe test` on a case whose model gives its input back.
template <class T>
command_result test_identity(int type, const std::vector<T>& given, const std::vector<T>& expected,
                             const std::string& options = "") {
  const scratch_folder folder;
  std::filesystem::create_directory(folder.path() / "test_data_set_0");
  folder.write("model.onnx", identity_model(type).SerializeAsString());
  folder.write("test_data_set_0/input_0.pb", tensor_file("x", type, given));
  folder.write("test_data_set_0/output_0.pb", tensor_file("y", type, expected));
  return run_command("test --devices cpu " + options + " " + folder.path().string(), true);
}

} // namespace

TEST_CASE("integers must be as expected, whatever the tolerance", "[cli]") {
  constexpr int int64 = onnx::TensorProto::INT64;
  const std::vector<int64_t> large = {1'000'000, (int64_t{1} << 53) + 1};
  CHECK(test_identity<int64_t>(int64, large, large).status == 0);
  const command_result off = test_identity<int64_t>(int64, large, {1'000'001, large[1]});
  CHECK(off.status == 1);
  CHECK_THAT(off.output, Contains("got 1000000, expected 1000001"));
  // Doubles do not tell these two apart.
  CHECK(test_identity<int64_t>(int64, large, {large[0], int64_t{1} << 53}).status == 1);
}

TEST_CASE("floats are compared by their relative L2 distance if asked to", "[cli]") {
  constexpr int float32 = onnx::TensorProto::FLOAT;
  const std::vector<float> given = {100, 0.5f}, wanted = {100, 0.25f}, far = {90, 0.5f};
  CHECK(test_identity<float>(float32, given, wanted).status == 1);
  CHECK(test_identity<float>(float32, given, wanted, "--l2 2e-2").status == 0);
  const command_result off = test_identity<float>(float32, given, far, "--l2 2e-2");
  CHECK(off.status == 1);
  CHECK_THAT(off.output, Contains("relative L2 distance 0.111"));
  CHECK(test_identity<int32_t>(onnx::TensorProto::INT32, {100, 2}, {100, 3}, "--l2 2e-2").status == 1);
  CHECK(test_identity<float>(float32, given, {NAN, 0.5f}, "--l2 2e-2").status == 1);
  CHECK(test_identity<float>(float32, {0, NAN}, {0, NAN}, "--l2 2e-2").status == 0);
  CHECK(test_identity<float>(float32, given, given, "--l2 -1").status != 0);
}

TEST_CASE("a tolerance that is not a number is refused: any answer would pass", "[cli]") {
  for (const char* option : {"--rtol nan", "--atol nan", "--l2 nan", "--atol -nan"}) {
    const command_result wrong = test_identity<float>(onnx::TensorProto::FLOAT, {1, 2}, {6, 7}, option);
    CHECK(wrong.status == 2);
    CHECK_THAT(wrong.output, Contains("is not finite"));
  }
}

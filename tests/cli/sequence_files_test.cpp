// Sequences in files: given to `troupe run`, and written by it.
#include "loader/models.hpp"
#include "support/catch.hpp"
#include "support/command.hpp"
#include "troupe/tensor_file.hpp"

using namespace troupe;
using namespace troupe::test;
using Catch::Contains;

namespace {

void set_sequence_type(onnx::ValueInfoProto& info, const std::string& name) {
  info.set_name(name);
  info.mutable_type()->mutable_sequence_type()->mutable_elem_type()->mutable_tensor_type()->set_elem_type(1);
}

/// s → SequenceErase → out.
std::string erasing_model() {
  onnx::ModelProto m;
  m.set_ir_version(8);
  m.add_opset_import()->set_version(17);
  onnx::GraphProto& g = *m.mutable_graph();
  set_sequence_type(*g.add_input(), "s");
  set_sequence_type(*g.add_output(), "out");
  add_node(g, "SequenceErase", {"s"}, {"out"});
  return m.SerializeAsString();
}

} // namespace

TEST_CASE("troupe run reads and writes files of sequences", "[cli][sequence]") {
  const scratch_folder folder;
  const std::string model = folder.write("model.onnx", erasing_model()).string();
  const tensor x = tensor::of<float>({2}, std::vector<float>{1, 2}), y = tensor::of<float>({1}, std::vector<float>{3});
  const auto given = (folder.path() / "s.pb").string();
  write_pb(given, "s", tensor::sequence(dtype::float32, {x, y}));
  const command_result r =
      run_command("run " + model + " --devices cpu --input s=" + given + " --output " + folder.path().string(), true);
  INFO(r.output);
  CHECK(r.status == 0);
  CHECK_THAT(r.output, Contains("sequence(float32)"));
  const tensor out = read_pb(folder.path() / "out.pb", sequence_of(dtype::float32)).value;
  REQUIRE(out.dims() == shape{1});
  CHECK(out.values<tensor>()[0].values<float>()[1] == 2);

  const command_result none = run_command("run " + model + " --devices cpu", true);
  CHECK(none.status == 1);
  CHECK_THAT(none.output, Contains("input 's' is sequence(float32), which is not made up: give a .pb file"));
}

// A classifier as skl2onnx exports it by default: its probabilities, declared as a sequence of maps, are a tensor.
#include "loader/models.hpp"
#include "rewrite/rewrite.hpp"
#include "support/catch.hpp"
#include "support/run_graph.hpp"
#include "support/thrown.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

void declare_maps(onnx::ValueInfoProto& info, const std::string& name) {
  info.set_name(name);
  auto& map = *info.mutable_type()->mutable_sequence_type()->mutable_elem_type()->mutable_map_type();
  map.set_key_type(onnx::TensorProto::INT64);
  map.mutable_value_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
}

/// x [n, 2] → probabilities of `labels` → ZipMap.
onnx::ModelProto classifier(const std::vector<int64_t>& labels) {
  onnx::ModelProto m;
  m.set_ir_version(8);
  m.add_opset_import()->set_version(17);
  auto& ml = *m.add_opset_import();
  ml.set_domain("ai.onnx.ml");
  ml.set_version(3);
  auto& g = *m.mutable_graph();
  g.set_name("g");
  set_tensor_type(*g.add_input(), "x", {"n"});
  g.mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(2);
  add_node(g, "Softmax", {"x"}, {"p"});
  auto& zip = add_node(g, "ZipMap", {"p"}, {"zipped"});
  zip.set_domain("ai.onnx.ml");
  auto& names = *zip.add_attribute();
  names.set_name("classlabels_int64s");
  names.set_type(onnx::AttributeProto::INTS);
  for (const int64_t label : labels)
    names.add_ints(label);
  declare_maps(*g.add_output(), "zipped");
  return m;
}

} // namespace

TEST_CASE("ZipMap gives the tensor that it would have zipped", "[ml][loader][A1]") {
  const graph g = rewrite(load(classifier({7, 9})), {});
  CHECK(g.values[g.outputs[0]].name == "zipped");
  const tensor y = run_graph(g, {tensor::of<float>({3, 2}, std::vector<float>{0, 0, 1, -1, 2, 2})})[0];
  CHECK(y.dims() == shape{3, 2});
  CHECK(y.data<float>()[0] == Approx(0.5));
  CHECK(y.data<float>()[2] == Approx(1 / (1 + std::exp(-2.))));
}

TEST_CASE("ZipMap's labels must fit, and no other maps are taken", "[ml][loader][A7]") {
  using Catch::Contains;
  CHECK_THAT(thrown_by([&] {
               rewrite(load(classifier({7, 8, 9})), {});
             }).what(),
             Contains("3 labels for rows of shape"));
  onnx::ModelProto given = classifier({7, 9});
  declare_maps(*given.mutable_graph()->add_input(), "maps");
  CHECK_THAT(thrown_by([&] { load(given); }).what(), Contains("'maps' is a sequence of maps"));
  onnx::ModelProto other = classifier({7, 9});
  other.mutable_graph()->mutable_node(1)->set_op_type("DictVectorizer");
  CHECK_THAT(thrown_by([&] { rewrite(load(other), {}); }).what(), Contains("takes a map, but 'p' is none"));
}

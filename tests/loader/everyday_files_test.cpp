// Valid files as exporters, optimisers and caches write them, beyond the standard's examples.
#include "support/catch.hpp"

#include "loader/models.hpp"
#include "support/small_models.hpp"
#include "troupe/model_file.hpp"

using namespace troupe;
using namespace troupe::test;
using Catch::Contains;

namespace {

onnx::TensorShapeProto& shape_of_input(onnx::ModelProto& m, int i = 0) {
  return *m.mutable_graph()->mutable_input(i)->mutable_type()->mutable_tensor_type()->mutable_shape();
}

/// x [batch, features] + w → y.
onnx::ModelProto sum_with_initializer() {
  auto m = relu_model();
  auto& n = *m.mutable_graph()->mutable_node(0);
  n.set_op_type("Add");
  n.add_input("w");
  return m;
}

const value& value_called(const graph& g, const std::string& name) {
  const auto found = std::ranges::find(g.values, name, &value::name);
  REQUIRE(found != g.values.end());
  return *found;
}

/// Runs a model of one output on the CPU.
tensor run_on_cpu(const onnx::ModelProto& m, const named_tensors& inputs) {
  engine e({.devices = {"cpu"}});
  return e.load(load(m)).run(inputs).outputs.begin()->second;
}

/// A sparse tensor of floats.
onnx::SparseTensorProto sparse(std::vector<int64_t> dims, const std::vector<float>& values,
                               std::vector<int64_t> index_dims, const std::vector<int64_t>& indices) {
  onnx::SparseTensorProto t;
  *t.mutable_values() = raw_floats("w", {static_cast<int64_t>(values.size())}, values);
  auto& i = *t.mutable_indices();
  i.set_data_type(onnx::TensorProto::INT64);
  for (int64_t d : index_dims)
    i.add_dims(d);
  i.set_raw_data(indices.data(), indices.size() * sizeof(int64_t));
  for (int64_t d : dims)
    t.add_dims(d);
  return t;
}

} // namespace

TEST_CASE("a dim of -1 is one that is not known", "[loader]") {
  auto m = relu_model();
  for (int axis : {0, 1})
    shape_of_input(m).mutable_dim(axis)->set_dim_value(-1);
  m.mutable_graph()
      ->mutable_output(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(0)
      ->set_dim_value(-1);
  CHECK(to_string(*value_called(load(m), "x").dims) == "[x.0, x.1]");
  CHECK(run_on_cpu(m, {{"x", floats({1, 3}, {-1, 0, 2})}}).dims() == shape{1, 3});
}

TEST_CASE("a dim's name is any text, and never one of the engine's own symbols", "[loader]") {
  auto m = relu_model();
  shape_of_input(m).mutable_dim(0)->set_dim_param("past_sequence_length + 1");
  shape_of_input(m).mutable_dim(1)->set_dim_param("#x.1");
  const symbolic_shape dims = *value_called(load(m), "x").dims;
  CHECK(dims[0].symbol_name() == "past_sequence_length + 1");
  CHECK(dims[0].to_string() == "past_sequence_length + 1");
  CHECK_FALSE(dims[1].depends_on_data());
}

TEST_CASE("of several initializers of one name, and imports of one domain, the last counts", "[loader]") {
  auto m = sum_with_initializer();
  for (float w : {1.f, 5.f})
    *m.mutable_graph()->add_initializer() = raw_floats("w", {1}, {w});
  CHECK(run_on_cpu(m, {{"x", floats({1, 2}, {1, 2})}}).values<float>()[0] == 6);
  m.add_opset_import()->set_version(13);
  m.mutable_opset_import(1)->set_domain("ai.onnx");
  CHECK(load(m).opsets.at("") == 13);
}

TEST_CASE("a domain that is not imported has its newest version", "[loader]") {
  auto m = relu_model();
  m.mutable_graph()->mutable_node(0)->set_op_type("Gelu");
  m.mutable_graph()->mutable_node(0)->set_domain("com.microsoft");
  CHECK(load(m).nodes[0].def->name == "Gelu");
  auto ml = relu_model();
  ml.mutable_graph()->mutable_node(0)->set_op_type("Normalizer");
  ml.mutable_graph()->mutable_node(0)->set_domain("ai.onnx.ml");
  CHECK(load(ml).nodes[0].def->name == "Normalizer");
}

TEST_CASE("sparse initializers and constants are dense tensors", "[loader]") {
  const tensor x = floats({2, 3}, {0, 0, 0, 0, 0, 0});
  const std::vector<float> expected = {0, 7, 0, 0, 0, 8};
  auto m = sum_with_initializer();
  *m.mutable_graph()->add_sparse_initializer() = sparse({2, 3}, {7, 8}, {2}, {1, 5});
  CHECK(values_of(run_on_cpu(m, {{"x", x}})) == expected);
  *m.mutable_graph()->mutable_sparse_initializer(0) = sparse({2, 3}, {7, 8}, {2, 2}, {0, 1, 1, 2});
  CHECK(values_of(run_on_cpu(m, {{"x", x}})) == expected);

  auto constant = sum_with_initializer();
  auto& a = *add_node(*constant.mutable_graph(), "Constant", {}, {"w"}).add_attribute();
  a.set_name("sparse_value");
  a.set_type(onnx::AttributeProto::SPARSE_TENSOR);
  *a.mutable_sparse_tensor() = sparse({2, 3}, {7, 8}, {2}, {1, 5});
  CHECK(values_of(run_on_cpu(constant, {{"x", x}})) == expected);
}

TEST_CASE("sparse tensors that are invalid, or too large when they are dense, are refused", "[loader][limits]") {
  const auto refusal = [](const onnx::SparseTensorProto& t) {
    auto m = sum_with_initializer();
    *m.mutable_graph()->add_sparse_initializer() = t;
    return error_of([&] { load(m); });
  };
  CHECK_THAT(refusal(sparse({2, 3}, {7}, {1}, {6})), Contains("sparse tensor 'w'") && Contains("outside of [0, 6)"));
  CHECK_THAT(refusal(sparse({2, 3}, {7}, {1}, {-1})), Contains("outside"));
  CHECK_THAT(refusal(sparse({2, 3}, {7}, {1, 2}, {0, 3})), Contains("outside of [0, 3)"));
  CHECK_THAT(refusal(sparse({2, 3}, {7, 8}, {1}, {0})), Contains("int64 [1]"));
  CHECK_THAT(refusal(sparse({1 << 20, 1 << 20}, {7}, {1}, {0})), Contains("unsupported") && Contains("more than"));
  CHECK_THAT(refusal(sparse({int64_t{1} << 40, int64_t{1} << 40}, {7}, {1}, {0})), Contains("overflow"));
  CHECK_THAT(refusal(sparse({-1}, {7}, {1}, {0})), Contains("negative"));
  CHECK_THAT(refusal({}), Contains("unsupported"));
}

TEST_CASE("a list of outputs that names a value twice gives a model one output, and a body two results", "[loader]") {
  auto m = relu_model();
  set_tensor_type(*m.mutable_graph()->add_output(), "y", {"batch", "features"});
  CHECK(load(m).outputs.size() == 1);

  auto outer = relu_model();
  auto& g = *outer.mutable_graph();
  auto trips = raw_floats("trips", {}, {});
  trips.clear_raw_data();
  trips.set_data_type(onnx::TensorProto::INT64);
  trips.add_int64_data(2);
  *g.add_initializer() = trips;
  auto& loop = *g.mutable_node(0);
  loop.set_op_type("Loop");
  loop.clear_input();
  for (const char* name : {"trips", "", "x"})
    loop.add_input(name);
  loop.add_output("all");
  auto& a = *loop.add_attribute();
  a.set_name("body");
  a.set_type(onnx::AttributeProto::GRAPH);
  auto& body = *a.mutable_g();
  for (const char* name : {"i", "go", "t"})
    set_tensor_type(*body.add_input(), name, {});
  body.mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::INT64);
  body.mutable_input(1)->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::BOOL);
  body.mutable_input(2)->mutable_type()->mutable_tensor_type()->clear_shape();
  add_node(body, "Add", {"t", "t"}, {"doubled"});
  for (const char* name : {"go", "doubled", "doubled"})
    body.add_output()->set_name(name);
  set_tensor_type(*g.add_output(), "all", {"trips", "batch", "features"});
  engine e({.devices = {"cpu"}});
  const auto outputs = e.load(load(outer)).run({{"x", floats({1, 2}, {1, 3})}}).outputs;
  CHECK(values_of(outputs.at("y")) == std::vector<float>{4, 12});
  CHECK(values_of(outputs.at("all")) == std::vector<float>{2, 6, 4, 12});
}

TEST_CASE("an initializer that is also an input can be given by the caller", "[loader]") {
  for (int64_t version : {3, 8}) {
    auto m = sum_with_initializer();
    m.set_ir_version(version);
    set_tensor_type(*m.mutable_graph()->add_input(), "w", {"n"});
    *m.mutable_graph()->add_initializer() = raw_floats("w", {2}, {10, 20});
    engine e({.devices = {"cpu"}});
    const session s = e.load(load(m));
    REQUIRE(s.inputs().size() == 1); // w may be left out
    const tensor x = floats({1, 2}, {1, 2});
    const auto sum = [&](named_tensors inputs) { return values_of(s.run(std::move(inputs)).outputs.at("y")); };
    CHECK(sum({{"x", x}}) == std::vector<float>{11, 22});
    CHECK(sum({{"x", x}, {"w", floats({2}, {1, 1})}}) == std::vector<float>{2, 3});
    CHECK(sum({{"x", x}, {"w", floats({1}, {5})}}) == std::vector<float>{6, 7}); // n is the given size
    CHECK(sum({{"x", x}}) == std::vector<float>{11, 22});
    CHECK_THAT(error_of([&] { sum({{"x", x}, {"w", tensor(dtype::int32, {2})}}); }), Contains("'w' is int32"));
    CHECK_THAT(error_of([&] { sum({{"x", x}, {"w", floats({1, 2}, {5, 6})}}); }), Contains("'w' has shape [1, 2]"));
    CHECK_THAT(error_of([&] { sum({{"x", x}, {"v", x}}); }), Contains("no input 'v'"));
  }
}

TEST_CASE("a body captures the value that the caller gives instead of an initializer", "[loader]") {
  auto m = sum_with_initializer();
  auto& g = *m.mutable_graph();
  set_tensor_type(*g.add_input(), "w", {"n"});
  *g.add_initializer() = raw_floats("w", {1}, {10});
  set_tensor_type(*g.add_input(), "yes", {});
  g.mutable_input(2)->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::BOOL);
  auto& choice = *g.mutable_node(0);
  choice.set_op_type("If");
  choice.clear_input();
  choice.add_input("yes");
  for (const char* name : {"then_branch", "else_branch"}) {
    auto& a = *choice.add_attribute();
    a.set_name(name);
    a.set_type(onnx::AttributeProto::GRAPH);
    add_node(*a.mutable_g(), name[0] == 't' ? "Add" : "Sub", {"x", "w"}, {"r"});
    a.mutable_g()->add_output()->set_name("r");
  }
  tensor yes(dtype::boolean, {});
  yes.mutable_data<bool>()[0] = true;
  CHECK(values_of(run_on_cpu(m, {{"x", floats({1, 1}, {1})}, {"yes", yes}})) == std::vector<float>{11});
  CHECK(values_of(run_on_cpu(m, {{"x", floats({1, 1}, {1})}, {"yes", yes}, {"w", floats({1}, {2})}})) ==
        std::vector<float>{3});
}

TEST_CASE("models and their data may be symbolic links, as in the Hugging Face cache", "[loader]") {
  const scratch_folder cache;
  const auto snapshot = cache.path() / "snapshots" / "abc";
  std::filesystem::create_directories(snapshot);
  std::filesystem::create_directory(cache.path() / "blobs");
  auto m = sum_with_initializer();
  auto w = raw_floats("w", {2}, {});
  w.clear_raw_data();
  w.set_data_location(onnx::TensorProto::EXTERNAL);
  auto* location = w.add_external_data();
  location->set_key("location");
  location->set_value("model.onnx_data");
  *m.mutable_graph()->add_initializer() = w;
  const float data[] = {10, 20};
  cache.write("blobs/c6ed", m.SerializeAsString());
  cache.write("blobs/b879", {reinterpret_cast<const char*>(data), sizeof data});
  std::filesystem::create_symlink("../../blobs/c6ed", snapshot / "model.onnx");
  std::filesystem::create_symlink("../../blobs/b879", snapshot / "model.onnx_data");
  CHECK(value_called(load_model(snapshot / "model.onnx"), "w").constant->leaf.values<float>()[1] == 20);
}

TEST_CASE("a file names the symbolic dims of its inputs without being loaded", "[loader]") {
  onnx::ModelProto m;
  set_tensor_type(*m.mutable_graph()->add_input(), "a", {"batch", "past_sequence_length + 1"});
  set_tensor_type(*m.mutable_graph()->add_input(), "b", {"batch", "heads"});
  set_tensor_type(*m.mutable_graph()->add_output(), "y", {"only_outputs"});
  shape_of_input(m).add_dim()->set_dim_value(3);
  const std::string bytes = m.SerializeAsString();
  CHECK(parse_metadata(std::as_bytes(std::span(bytes))).input_dims ==
        std::vector<std::string>{"batch", "past_sequence_length + 1", "heads"});
}

TEST_CASE("files of other kinds are called by their names", "[loader]") {
  const scratch_folder folder;
  const auto refusal = [&](const std::string& bytes) {
    const auto file = folder.write("m.onnx", bytes);
    const std::string loading = error_of([&] { load_model(file); });
    CHECK_THAT(error_of([&] { read_metadata(file); }), Contains(loading.substr(loading.find("it is"))));
    return loading;
  };
  CHECK_THAT(refusal("version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 102\n"),
             Contains("a Git LFS pointer") && Contains("git lfs pull") && Contains("m.onnx"));
  CHECK_THAT(refusal("\n <!DOCTYPE html><html>"), Contains("a web page"));
  CHECK_THAT(refusal("<HTML>Not found"), Contains("a web page"));
  CHECK_THAT(refusal("PK\3\4 and so on"), Contains("a zip archive"));
  CHECK_THAT(refusal(std::string("\x1c\0\0\0ORTM\0\0", 10)), Contains(".ort"));
  CHECK_THAT(refusal("GGUF\3"), Contains("GGUF"));
  // A name that looks like one of them does not matter: the file is read first.
  auto m = relu_model();
  m.set_producer_name("ORTMaker");
  const std::string bytes = m.SerializeAsString();
  REQUIRE(bytes.substr(4, 4) == "ORTM");
  CHECK(error_of([&] { load_model(folder.write("m.onnx", bytes)); }).empty());
}

// Maps: CastMap and DictVectorizer by hand (ONNX Runtime's package for Node.js has no maps to ask with), and inputs of
// models that are maps.
#include "loader/models.hpp"
#include "ops/run_op.hpp"
#include "rewrite/rewrite.hpp"
#include "support/catch.hpp"
#include "support/run_graph.hpp"
#include "support/thrown.hpp"

using namespace troupe;
using namespace troupe::test;
using Catch::Contains;
using troupe::testing::int_list;
using troupe::testing::longs;

namespace {

using texts = std::vector<std::string>;

tensor strings(const texts& list) {
  return tensor::of<std::string>({std::ssize(list)}, list);
}

tensor reals(const std::vector<float>& list) {
  return tensor::of<float>({std::ssize(list)}, list);
}

tensor call(std::string_view op, const attributes& attrs, const tensor& keys, const tensor& values) {
  return testing::run("ai.onnx.ml", op, {keys, values}, attrs);
}

template <class T>
std::vector<T> list_of(const tensor& t) {
  CHECK(t.dims() == shape{1, t.size()});
  const auto values = t.values<T>();
  return {values.begin(), values.end()};
}

attributes cast_to(const char* type) {
  return attrs_of({{"cast_to", std::string(type)}});
}

attributes sparse(const char* type, int64_t most) {
  return attrs_of({{"cast_to", std::string(type)}, {"map_form", std::string("SPARSE")}, {"max_map", most}});
}

template <class F>
std::string message_of(F&& f) {
  return thrown_by(std::forward<F>(f)).what();
}

} // namespace

TEST_CASE("CastMap puts the values of a map into the order of its keys", "[ops][ml][A1]") {
  const tensor keys = longs({7, -3, 2});
  CHECK(list_of<float>(call("CastMap", {}, keys, reals({1.5f, -2, 0}))) == std::vector<float>{-2, 0, 1.5f});
  CHECK(list_of<int64_t>(call("CastMap", cast_to("TO_INT64"), keys, reals({1.5f, -2.7f, 9}))) == int_list{-2, 9, 1});
  CHECK(list_of<std::string>(call("CastMap", cast_to("TO_STRING"), keys, reals({1.5f, -2, 0}))) ==
        texts{"-2.000000", "0.000000", "1.500000"});
  CHECK(list_of<float>(call("CastMap", cast_to("TO_FLOAT"), keys, strings({"1.5", "-2", "3e2"}))) ==
        std::vector<float>{-2, 300, 1.5f});
  CHECK(list_of<int64_t>(call("CastMap", cast_to("TO_INT64"), keys, strings({"1", "-2", "3"}))) == int_list{-2, 3, 1});
  CHECK(list_of<std::string>(call("CastMap", cast_to("TO_STRING"), keys, strings({"a", "b", "c"}))) ==
        texts{"b", "c", "a"});
  CHECK(call("CastMap", {}, longs({}), reals({})).dims() == shape{1, 0});
}

TEST_CASE("CastMap puts the values of a sparse map at the places of their keys", "[ops][ml][A1]") {
  const tensor keys = longs({3, 0});
  CHECK(list_of<float>(call("CastMap", sparse("TO_FLOAT", 5), keys, reals({4, 8}))) ==
        std::vector<float>{8, 0, 0, 4, 0});
  CHECK(list_of<int64_t>(call("CastMap", sparse("TO_INT64", 4), keys, reals({4, 8}))) == int_list{8, 0, 0, 4});
  CHECK(list_of<std::string>(call("CastMap", sparse("TO_STRING", 4), keys, strings({"x", "y"}))) ==
        texts{"y", "0.f", "0.f", "x"});
}

TEST_CASE("CastMap refuses operands that are not maps, and keys without a place", "[ops][ml][A7]") {
  const auto refused = [](const attributes& attrs, const tensor& keys, const tensor& values) {
    return message_of([&] { call("CastMap", attrs, keys, values); });
  };
  const tensor keys = longs({1, 2}), values = reals({1, 2});
  CHECK_THAT(refused({}, keys, reals({1})), Contains("keys and values of a map: 2 and 1 differ"));
  CHECK_THAT(refused({}, longs({4, 4}), values), Contains("the key 4 is there twice"));
  CHECK_THAT(refused({}, tensor(dtype::int64, {1, 2}), values), Contains("are not vectors"));
  CHECK_THAT(refused({}, keys, longs({1, 2})), Contains("values of int64; float32 or string is needed"));
  CHECK_THAT(refused({}, keys, strings({"1", "one"})), Contains("one"));
  CHECK_THAT(refused(sparse("TO_FLOAT", 2), keys, values), Contains("the key 2 is outside the 2"));
  CHECK_THAT(refused(sparse("TO_FLOAT", 2), longs({0, -1}), values), Contains("the key -1 is outside the 2"));
  CHECK_THAT(refused(sparse("TO_FLOAT", 0), keys, values), Contains("'max_map' is 0"));
  CHECK_THAT(refused(sparse("TO_FLOAT", int64_t{1} << 40), keys, values), Contains("'max_map' is"));
  CHECK_THAT(refused(cast_to("TO_DOUBLE"), keys, values), Contains("'cast_to' is 'TO_DOUBLE'"));
  CHECK_THAT(refused(attrs_of({{"map_form", std::string("THIN")}}), keys, values), Contains("'map_form' is 'THIN'"));
}

TEST_CASE("DictVectorizer gives the values of a vocabulary", "[ops][ml][A1]") {
  const attributes words = attrs_of({{"string_vocabulary", texts{"a", "c", "b", "z", "c"}}});
  const tensor keys = strings({"c", "a", "y"});
  CHECK(list_of<float>(call("DictVectorizer", words, keys, reals({4, 5, 6}))) == std::vector<float>{5, 4, 0, 0, 4});
  CHECK(list_of<int64_t>(call("DictVectorizer", words, keys, longs({4, 5, 6}))) == int_list{5, 4, 0, 0, 4});
  const attributes numbers = attrs_of({{"int64_vocabulary", int_list{10, 20}}});
  CHECK(list_of<std::string>(call("DictVectorizer", numbers, longs({20}), strings({"x"}))) == texts{"", "x"});
  const tensor wide = tensor::of<double>({2}, std::vector<double>{0.1, 0.2});
  CHECK(list_of<double>(call("DictVectorizer", numbers, longs({20, 10}), wide)) == std::vector<double>{0.2, 0.1});
}

TEST_CASE("DictVectorizer refuses operands that are not maps, and vocabularies of other keys", "[ops][ml][A7]") {
  const auto refused = [](const attributes& attrs, const tensor& keys, const tensor& values) {
    return message_of([&] { call("DictVectorizer", attrs, keys, values); });
  };
  const attributes words = attrs_of({{"string_vocabulary", texts{"a"}}});
  CHECK_THAT(refused({}, longs({1}), reals({1})), Contains("'string_vocabulary' and 'int64_vocabulary' is needed"));
  CHECK_THAT(
      refused(attrs_of({{"string_vocabulary", texts{"a"}}, {"int64_vocabulary", int_list{1}}}), longs({1}), reals({1})),
      Contains("one of the attributes"));
  CHECK_THAT(refused(words, longs({1}), reals({1})),
             Contains("a map from int64 to float32; the vocabulary is of string"));
  CHECK_THAT(refused(words, strings({"a"}), tensor(dtype::int32, {1})), Contains("a map from string to int32"));
  CHECK_THAT(refused(words, strings({"a", "a"}), reals({1, 2})), Contains("the key a is there twice"));
  CHECK_THAT(refused(words, strings({"a"}), reals({1, 2})), Contains("1 and 2 differ"));
}

// -- models

namespace {

void declare_map(onnx::ValueInfoProto& info, const std::string& name, int key, int value) {
  info.set_name(name);
  auto& map = *info.mutable_type()->mutable_map_type();
  map.set_key_type(key);
  map.mutable_value_type()->mutable_tensor_type()->set_elem_type(value);
}

/// x, a map from int64 to float → CastMap → y.
onnx::ModelProto map_model(int key = onnx::TensorProto::INT64, int value = onnx::TensorProto::FLOAT) {
  onnx::ModelProto m = relu_model();
  auto& ml = *m.add_opset_import();
  ml.set_domain("ai.onnx.ml");
  ml.set_version(1);
  auto& g = *m.mutable_graph();
  g.clear_node();
  declare_map(*g.mutable_input(0), "x", key, value);
  add_node(g, "CastMap", {"x"}, {"y"}).set_domain("ai.onnx.ml");
  set_tensor_type(*g.mutable_output(0), "y", {"one", "n"});
  return m;
}

} // namespace

TEST_CASE("A model's input that is a map is its keys and its values", "[loader][ml][A1]") {
  const graph g = rewrite(load(map_model()), {});
  REQUIRE(g.inputs.size() == 2);
  const value &keys = g.values[g.inputs[0]], &values = g.values[g.inputs[1]];
  CHECK(keys.name == "x.keys");
  CHECK(keys.type == dtype::int64);
  CHECK(values.name == "x.values");
  CHECK(values.type == dtype::float32);
  CHECK(*keys.dims == *values.dims);
  CHECK(list_of<float>(run_graph(g, {longs({5, 1}), reals({2, 3})})[0]) == std::vector<float>{3, 2});
}

TEST_CASE("A body takes a map from around it", "[loader][ml][A1]") {
  onnx::ModelProto m = map_model();
  auto& g = *m.mutable_graph();
  const onnx::NodeProto cast = g.node(0);
  g.clear_node();
  auto& choice = *g.add_input();
  choice.set_name("which");
  choice.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::BOOL);
  choice.mutable_type()->mutable_tensor_type()->mutable_shape();
  auto& branch = add_node(g, "If", {"which"}, {"y"});
  for (const char* name : {"then_branch", "else_branch"}) {
    auto& body = *branch.add_attribute();
    body.set_name(name);
    body.set_type(onnx::AttributeProto::GRAPH);
    body.mutable_g()->set_name(name);
    *body.mutable_g()->add_node() = cast;
    body.mutable_g()->mutable_node(0)->set_output(0, std::string(name) + "_y");
    set_tensor_type(*body.mutable_g()->add_output(), std::string(name) + "_y", {"one", "n"});
  }
  const graph loaded = load(m);
  CHECK(loaded.inputs.size() == 3);
}

TEST_CASE("Maps are refused where no operator takes them", "[loader][ml][A7]") {
  const auto refused = [](const std::function<void(onnx::GraphProto&)>& change, int value = onnx::TensorProto::FLOAT,
                          int key = onnx::TensorProto::INT64) {
    onnx::ModelProto m = map_model(key, value);
    change(*m.mutable_graph());
    return message_of([&] { load(m); });
  };
  const auto as_it_is = [](onnx::GraphProto&) {};
  CHECK_THAT(refused([](onnx::GraphProto& g) {
               g.mutable_node(0)->set_op_type("Relu");
               g.mutable_node(0)->clear_domain();
             }),
             Contains("'x' is a map, which only CastMap and DictVectorizer can take"));
  CHECK_THAT(refused([](onnx::GraphProto& g) { g.mutable_output(0)->set_name("x"); }), Contains("'x' is a map"));
  CHECK_THAT(refused([](onnx::GraphProto& g) { add_node(g, "Relu", {"x.values"}, {"x"}); }),
             Contains("the value name 'x' is defined twice"));
  CHECK_THAT(refused([](onnx::GraphProto& g) { set_tensor_type(*g.add_input(), "x.keys", {"n"}); }),
             Contains("two inputs called 'x.keys'"));
  CHECK_THAT(refused([](onnx::GraphProto& g) {
               set_tensor_type(*g.add_input(), "x.values", {"n"});
               g.mutable_input()->SwapElements(0, 1);
             }),
             Contains("the value name 'x.values' is defined twice"));
  CHECK_THAT(refused([](onnx::GraphProto& g) { *g.add_initializer() = raw_floats("x", {1}, {1}); }),
             Contains("'x' is defined twice"));
  CHECK_THAT(refused([](onnx::GraphProto& g) {
               g.mutable_input(0)->mutable_type()->mutable_map_type()->mutable_value_type()->mutable_sequence_type();
             }),
             Contains("'x' is a"));
  CHECK_THAT(refused(as_it_is, 0), Contains("'x' is a map of other than single numbers and strings"));
  CHECK_THAT(refused(as_it_is, onnx::TensorProto::FLOAT, 0), Contains("'x' is a map of other than"));
  CHECK_THAT(refused(as_it_is, onnx::TensorProto::FLOAT, 77), Contains("element type 77"));
  CHECK_THAT(refused([](onnx::GraphProto& g) { set_tensor_type(*g.mutable_input(0), "x", {"n"}); }),
             Contains("takes a map, but 'x' is none: only inputs of a model can be maps"));
}

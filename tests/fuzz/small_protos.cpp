#include "fuzz/small_protos.hpp"

#include "rewrite/rewrite.hpp"

namespace troupe::test {
namespace {

using names = std::vector<std::string>;
using integers = std::vector<int64_t>;

/// A model with one float input x [n, 4] and one output y of any shape.
onnx::ModelProto empty_model() {
  onnx::ModelProto m = relu_model();
  auto& g = *m.mutable_graph();
  g.clear_node();
  g.mutable_input(0)->Clear();
  set_tensor_type(*g.mutable_input(0), "x", {"n"});
  g.mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(4);
  g.mutable_output(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  return m;
}

void declare(onnx::ValueInfoProto& info, const std::string& name, int type) {
  info.set_name(name);
  info.mutable_type()->mutable_tensor_type()->set_elem_type(type);
}

onnx::AttributeProto& attribute(onnx::NodeProto& n, const std::string& name, onnx::AttributeProto::AttributeType type) {
  auto& a = *n.add_attribute();
  a.set_name(name);
  a.set_type(type);
  return a;
}

void set_int(onnx::NodeProto& n, const std::string& name, int64_t value) {
  attribute(n, name, onnx::AttributeProto::INT).set_i(value);
}

void set_ints(onnx::NodeProto& n, const std::string& name, const integers& values) {
  auto& a = attribute(n, name, onnx::AttributeProto::INTS);
  for (int64_t v : values)
    a.add_ints(v);
}

void add_floats(onnx::GraphProto& g, const std::string& name, const integers& dims) {
  std::vector<float> values(static_cast<size_t>(volume(dims)));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i % 7) / 4 - 0.5f;
  *g.add_initializer() = raw_floats(name, dims, values);
}

void add_integers(onnx::GraphProto& g, const std::string& name, const integers& dims, const integers& values) {
  auto& t = *g.add_initializer();
  t.set_name(name);
  t.set_data_type(onnx::TensorProto::INT64);
  for (int64_t d : dims)
    t.add_dims(d);
  for (int64_t v : values)
    t.add_int64_data(v);
}

onnx::ModelProto cnn() {
  onnx::ModelProto m = empty_model();
  auto& g = *m.mutable_graph();
  add_integers(g, "image", {4}, {-1, 1, 2, 2});
  add_floats(g, "w", {4, 1, 1, 1});
  add_floats(g, "b", {4});
  add_node(g, "Reshape", {"x", "image"}, {"r"});
  set_ints(add_node(g, "Conv", {"r", "w", "b"}, {"c"}), "kernel_shape", {1, 1});
  add_node(g, "Relu", {"c"}, {"a"});
  set_ints(add_node(g, "MaxPool", {"a"}, {"p"}), "kernel_shape", {2, 2});
  add_node(g, "GlobalAveragePool", {"a"}, {"q"});
  add_node(g, "Add", {"p", "q"}, {"s"});
  add_node(g, "Resize", {"s", "", "scales"}, {"y"});
  *g.add_initializer() = raw_floats("scales", {4}, {1, 1, 2, 2});
  return m;
}

/// Constants that are computed: recipes of weights.
onnx::ModelProto recipe() {
  onnx::ModelProto m = empty_model();
  auto& g = *m.mutable_graph();
  add_floats(g, "w", {3, 4});
  add_integers(g, "flat", {1}, {-1});
  add_integers(g, "square", {2}, {4, 3});
  add_node(g, "Add", {"w", "w"}, {"w2"});
  add_node(g, "Reshape", {"w2", "flat"}, {"w3"});
  set_int(add_node(g, "Cast", {"w3"}, {"w4"}), "to", onnx::TensorProto::FLOAT16);
  set_int(add_node(g, "Cast", {"w4"}, {"w5"}), "to", onnx::TensorProto::FLOAT);
  add_node(g, "Reshape", {"w5", "square"}, {"w6"});
  set_ints(add_node(g, "Transpose", {"w6"}, {"w7"}), "perm", {1, 0});
  set_int(add_node(g, "Gemm", {"x", "w7"}, {"m"}), "transB", 1);
  add_node(g, "Softmax", {"m"}, {"y"});
  return m;
}

onnx::ModelProto external() {
  onnx::ModelProto m = empty_model();
  auto& g = *m.mutable_graph();
  auto& t = *g.add_initializer();
  t.set_name("w");
  t.set_data_type(onnx::TensorProto::FLOAT);
  t.add_dims(4);
  t.add_dims(4);
  t.set_data_location(onnx::TensorProto::EXTERNAL);
  for (const auto& [key, value] : std::map<std::string, std::string>{{"location", "w.bin"}, {"offset", "64"}}) {
    auto& entry = *t.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  }
  add_node(g, "MatMul", {"x", "w"}, {"y"});
  return m;
}

/// Shape arithmetic, and a node whose shape depends on data.
onnx::ModelProto shapes() {
  onnx::ModelProto m = empty_model();
  auto& g = *m.mutable_graph();
  add_integers(g, "zero", {1}, {0});
  add_integers(g, "minus", {1}, {-1});
  add_node(g, "Shape", {"x"}, {"s"});
  add_node(g, "Gather", {"s", "zero"}, {"n"});
  set_int(add_node(g, "Concat", {"minus", "n"}, {"t"}), "axis", 0);
  add_node(g, "Reshape", {"x", "t"}, {"r"});
  add_node(g, "NonZero", {"r"}, {"z"});
  set_ints(add_node(g, "Transpose", {"z"}, {"i"}), "perm", {1, 0});
  add_node(g, "GatherND", {"r", "i"}, {"y"});
  return m;
}

/// A Loop that carries x and collects it, with an If inside.
onnx::ModelProto control() {
  onnx::ModelProto m = empty_model();
  auto& g = *m.mutable_graph();
  add_integers(g, "trips", {}, {3});
  onnx::GraphProto body, branch;
  branch.set_name("branch");
  declare(*branch.add_output(), "b", onnx::TensorProto::FLOAT);
  add_node(branch, "Relu", {"v"}, {"b"});
  body.set_name("body");
  declare(*body.add_input(), "i", onnx::TensorProto::INT64);
  declare(*body.add_input(), "go", onnx::TensorProto::BOOL);
  declare(*body.add_input(), "v", onnx::TensorProto::FLOAT);
  add_node(body, "Equal", {"i", "trips"}, {"stop"});
  add_node(body, "Not", {"stop"}, {"on"});
  auto& choice = add_node(body, "If", {"on"}, {"u"});
  for (const char* name : {"then_branch", "else_branch"})
    *attribute(choice, name, onnx::AttributeProto::GRAPH).mutable_g() = branch;
  add_node(body, "Add", {"u", "x"}, {"w"});
  declare(*body.add_output(), "on", onnx::TensorProto::BOOL);
  declare(*body.add_output(), "w", onnx::TensorProto::FLOAT);
  declare(*body.add_output(), "u", onnx::TensorProto::FLOAT);
  auto& loop = add_node(g, "Loop", {"trips", "", "x"}, {"last", "y"});
  *attribute(loop, "body", onnx::AttributeProto::GRAPH).mutable_g() = body;
  return m;
}

onnx::ModelProto scan() {
  onnx::ModelProto m = empty_model();
  auto& g = *m.mutable_graph();
  onnx::GraphProto body;
  body.set_name("body");
  declare(*body.add_input(), "sum", onnx::TensorProto::FLOAT);
  declare(*body.add_input(), "row", onnx::TensorProto::FLOAT);
  add_node(body, "Add", {"sum", "row"}, {"next"});
  add_node(body, "Identity", {"next"}, {"kept"});
  declare(*body.add_output(), "next", onnx::TensorProto::FLOAT);
  declare(*body.add_output(), "kept", onnx::TensorProto::FLOAT);
  add_floats(g, "start", {4});
  auto& n = add_node(g, "Scan", {"start", "x"}, {"total", "y"});
  set_int(n, "num_scan_inputs", 1);
  *attribute(n, "body", onnx::AttributeProto::GRAPH).mutable_g() = body;
  return m;
}

/// A call of a function with an attribute.
onnx::ModelProto with_function() {
  onnx::ModelProto m = empty_model();
  auto& domain = *m.add_opset_import();
  domain.set_domain("own");
  domain.set_version(1);
  auto& f = *m.add_functions();
  f.set_name("Twice");
  f.set_domain("own");
  f.add_input("a");
  f.add_output("b");
  f.add_attribute("axis");
  f.add_opset_import()->set_version(17);
  auto add = [&](const std::string& op, const names& in, const names& out) -> onnx::NodeProto& {
    auto& n = *f.add_node();
    n.set_op_type(op);
    for (const std::string& name : in)
      n.add_input(name);
    for (const std::string& name : out)
      n.add_output(name);
    return n;
  };
  auto& a = attribute(add("Softmax", {"a"}, {"s"}), "axis", onnx::AttributeProto::INT);
  a.set_ref_attr_name("axis");
  add("Add", {"s", "a"}, {"b"});
  auto& call = add_node(*m.mutable_graph(), "Twice", {"x"}, {"y"});
  call.set_domain("own");
  set_int(call, "axis", -1);
  return m;
}

onnx::ModelProto quantized() {
  onnx::ModelProto m = empty_model();
  auto& g = *m.mutable_graph();
  *g.add_initializer() = raw_floats("scale", {}, {0.5f});
  add_floats(g, "w", {4, 2});
  add_node(g, "QuantizeLinear", {"w", "scale"}, {"wq"});
  add_node(g, "DequantizeLinear", {"wq", "scale"}, {"wd"});
  add_node(g, "DynamicQuantizeLinear", {"x"}, {"q", "s", "z"});
  add_node(g, "DequantizeLinear", {"q", "s", "z"}, {"d"});
  add_node(g, "MatMul", {"d", "wd"}, {"y"});
  return m;
}

onnx::ModelProto recurrent() {
  onnx::ModelProto m = empty_model();
  auto& g = *m.mutable_graph();
  add_integers(g, "axis", {1}, {1});
  add_floats(g, "w", {1, 12, 4});
  add_floats(g, "r", {1, 12, 3});
  add_node(g, "Unsqueeze", {"x", "axis"}, {"steps"});
  set_int(add_node(g, "LSTM", {"steps", "w", "r"}, {"y", "h", "c"}), "hidden_size", 3);
  return m;
}

} // namespace

std::map<std::string, onnx::ModelProto> small_protos() {
  return {{"cnn", cnn()},
          {"recipe", recipe()},
          {"external", external()},
          {"shapes", shapes()},
          {"control", control()},
          {"scan", scan()},
          {"function", with_function()},
          {"quantized", quantized()},
          {"recurrent", recurrent()}};
}

std::string external_bytes() {
  std::string bytes(512, '\0');
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<char>(i % 4 == 3 ? 0x3f : i); // as floats: about a half
  return bytes;
}

const std::vector<std::shared_ptr<const graph>>& plan_models() {
  static const auto models = [] {
    std::vector<std::shared_ptr<const graph>> all;
    for (const onnx::ModelProto& m : {cnn(), shapes(), control()})
      all.push_back(std::make_shared<const graph>(rewrite(load(m), {})));
    return all;
  }();
  return models;
}

std::vector<device_info> plan_devices() {
  std::vector<device_info> devices;
  for (const char* name : {"cpu", "cpu#1"})
    devices.push_back({.name = name, .memory_bytes = int64_t{256} << 20});
  return devices;
}

} // namespace troupe::test

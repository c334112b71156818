// Bad model files: each class must give a clear error, never a crash or a graph.
#include "support/catch.hpp"

#include "loader/models.hpp"

#include <random>

#include <sys/stat.h>

using namespace troupe;
using namespace troupe::test;
using Catch::Contains;

namespace {

/// The error of loading `relu_model()` after `change`.
std::string error_after(const std::function<void(onnx::ModelProto&)>& change) {
  auto m = relu_model();
  change(m);
  return error_of([&] { load(m); });
}

std::string error_of_bytes(const std::string& bytes) {
  return error_of([&] { load_model(std::as_bytes(std::span(bytes))); });
}

std::string length_prefixed(uint8_t tag, const std::string& body) {
  std::string out(1, static_cast<char>(tag));
  size_t n = body.size();
  for (; n >= 0x80; n >>= 7)
    out += static_cast<char>(n | 0x80);
  return out + static_cast<char>(n) + body;
}

} // namespace

TEST_CASE("files that are not models", "[loader]") {
  const scratch_folder folder;
  const auto load_file = [&](const std::string& name, const std::string& bytes) {
    const auto file = folder.write(name, bytes);
    return error_of([&] { load_model(file); });
  };
  CHECK_THAT(load_file("empty.onnx", ""), Contains("invalid_model") && Contains("empty.onnx") && Contains("empty"));
  CHECK_THAT(load_file("text.onnx", "hello, this is a text file\n"), Contains("invalid_model"));
  CHECK_THAT(load_file("zero.onnx", std::string(100, '\0')), Contains("invalid_model"));
  CHECK_THAT(error_of([&] { load_model(folder.path() / "missing.onnx"); }), Contains("io") && Contains("missing.onnx"));
  CHECK_THAT(error_of([&] { load_model(folder.path()); }), Contains("a directory"));
  const auto pipe = folder.path() / "pipe.onnx";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THAT(error_of([&] { load_model(pipe); }), Contains("a special file"));
  CHECK_THAT(error_of([&] { load_model("/dev/zero"); }), Contains("a special file"));
}

TEST_CASE("every truncation of a model is refused or a smaller model", "[loader]") {
  auto m = relu_model();
  *m.mutable_graph()->add_initializer() = raw_floats("w", {3}, {1, 2, 3});
  const std::string bytes = m.SerializeAsString();
  int refused = 0;
  for (size_t size = 0; size < bytes.size(); ++size)
    refused += !error_of_bytes(bytes.substr(0, size)).empty();
  CHECK(refused == static_cast<int>(bytes.size())); // the opset import comes last, so nothing shorter is a model
}

TEST_CASE("random bytes are refused", "[loader]") {
  std::mt19937 random(7);
  for (int i = 0; i < 500; ++i) {
    std::string bytes(random() % 300, '\0');
    for (char& c : bytes)
      c = static_cast<char>(random());
    CHECK(error_of_bytes(bytes) != "");
  }
}

TEST_CASE("names of megabytes are refused with a readable message", "[loader][limits]") {
  const std::string endless(1 << 20, 'n');
  const auto check = [](const std::string& message) {
    CHECK_THAT(message, Contains("unsupported") && Contains("65536"));
    CHECK(message.size() < 1000);
  };
  check(error_after([&](auto& m) { m.mutable_graph()->mutable_node(0)->set_name(endless); }));
  check(error_after([&](auto& m) { m.mutable_graph()->mutable_node(0)->set_op_type(endless); }));
  check(error_after([&](auto& m) { m.mutable_graph()->mutable_input(0)->set_name(endless); }));
}

TEST_CASE("deep nesting in the bytes is refused", "[loader]") {
  // graph → node → attribute → graph …, built inside out
  std::string graph_bytes;
  for (int i = 0; i < 200; ++i)
    graph_bytes = length_prefixed(0x0a, length_prefixed(0x2a, length_prefixed(0x32, graph_bytes)));
  CHECK_THAT(error_of_bytes(length_prefixed(0x3a, graph_bytes)), Contains("unsupported") && Contains("nested"));
}

TEST_CASE("versions and operators that do not exist", "[loader]") {
  CHECK_THAT(error_after([](auto& m) { m.set_ir_version(99); }), Contains("unsupported: model: IR version 99"));
  CHECK_THAT(error_after([](auto& m) { m.clear_ir_version(); }), Contains("no IR version"));
  CHECK_THAT(error_after([](auto& m) { m.clear_opset_import(); }), Contains("imports no operator set"));
  CHECK_THAT(error_after([](auto& m) { m.mutable_opset_import(0)->set_version(999); }),
             Contains("unsupported") && Contains("opset 999"));
  CHECK_THAT(error_after([](auto& m) { m.mutable_opset_import(0)->set_version(-3); }), Contains("opset -3"));
  CHECK_THAT(error_after([](auto& m) { m.mutable_graph()->mutable_node(0)->set_op_type("Relux"); }),
             Contains("unsupported") && Contains("Relux"));
  CHECK_THAT(error_after([](auto& m) { m.mutable_graph()->mutable_node(0)->set_domain("acme"); }), Contains("acme"));
}

TEST_CASE("an old file without opset import has the first opset", "[loader]") {
  CHECK(error_after([](auto& m) {
          m.clear_opset_import();
          m.set_ir_version(1);
        }) == "");
}

TEST_CASE("names that are missing or defined twice, cycles, wrong arity", "[loader]") {
  CHECK_THAT(error_after([](auto& m) { m.mutable_graph()->mutable_node(0)->set_input(0, "nowhere"); }),
             Contains("invalid_model") && Contains("'nowhere'"));
  CHECK_THAT(error_after([](auto& m) { m.mutable_graph()->mutable_output(0)->set_name("nowhere"); }),
             Contains("'nowhere'"));
  CHECK_THAT(error_after([](auto& m) { add_node(*m.mutable_graph(), "Relu", {"x"}, {"y"}); }),
             Contains("'y' is defined twice"));
  CHECK_THAT(error_after([](auto& m) { add_node(*m.mutable_graph(), "Relu", {"x"}, {"x"}); }),
             Contains("'x' is defined twice"));
  CHECK_THAT(error_after([](auto& m) { set_tensor_type(*m.mutable_graph()->add_input(), "x", {"a"}); }),
             Contains("two inputs called 'x'"));
  CHECK_THAT(error_after([](auto& m) {
               auto& g = *m.mutable_graph();
               g.mutable_node(0)->set_input(0, "b");
               add_node(g, "Relu", {"y"}, {"b"});
             }),
             Contains("cycle"));
  CHECK_THAT(error_after([](auto& m) { m.mutable_graph()->mutable_node(0)->add_input("x"); }), Contains("2 inputs"));
  CHECK_THAT(error_after([](auto& m) { m.mutable_graph()->mutable_node(0)->clear_input(); }), Contains("0 inputs"));
  CHECK_THAT(error_after([](auto& m) { m.mutable_graph()->mutable_node(0)->add_output("z"); }), Contains("2 outputs"));
}

TEST_CASE("an attribute of another kind than operators read is refused, whether or not anything would read it",
          "[loader]") {
  const auto with_attribute = [](const std::string& op, const std::function<void(onnx::AttributeProto&)>& fill) {
    return error_after([&](auto& m) {
      auto& n = *m.mutable_graph()->mutable_node(0);
      n.set_op_type(op);
      n.set_name("the node");
      fill(*n.add_attribute());
    });
  };
  const auto text = [](const char* name) {
    return [=](onnx::AttributeProto& a) {
      a.set_name(name);
      a.set_type(onnx::AttributeProto::STRING);
      a.set_s("1");
    };
  };
  const auto one_float = [](const char* name) {
    return [=](onnx::AttributeProto& a) {
      a.set_name(name);
      a.set_type(onnx::AttributeProto::FLOAT);
      a.set_f(3);
    };
  };
  CHECK(with_attribute("Softmax", text("axis")) ==
        "invalid_model: model: Softmax 'the node': attribute 'axis' is a string, but must be an integer");
  CHECK_THAT(with_attribute("MaxPool", one_float("kernel_shape")),
             Contains("attribute 'kernel_shape' is a float, but must be a list of integers"));
  CHECK_THAT(with_attribute("EyeLike", text("k")), Contains("attribute 'k' is a string, but must be an integer"));
  CHECK_THAT(with_attribute("Dropout", one_float("seed")),
             Contains("attribute 'seed' is a float, but must be an integer"));
  CHECK(with_attribute("Bernoulli", one_float("seed")) == "");
  CHECK(with_attribute("Relu", text("an exporter's own")) == "");
}

TEST_CASE("operands that an operator cannot do without are refused where they are left out", "[loader]") {
  const auto with_node = [](const std::string& op, const std::vector<std::string>& inputs, int64_t opset) {
    return error_after([&](auto& m) {
      m.mutable_opset_import(0)->set_version(opset);
      add_node(*m.mutable_graph(), op, inputs, {"z"});
      m.mutable_graph()->mutable_output(0)->set_name("z");
    });
  };
  for (int64_t opset : {6, 17}) {
    CHECK_THAT(with_node("Greater", {"y", ""}, opset), Contains("invalid_model") && Contains("input 1 is missing"));
    CHECK_THAT(with_node("Add", {"", "y"}, opset), Contains("input 0 is missing"));
    CHECK_THAT(with_node("Concat", {"y", ""}, opset), Contains("input 1 is missing"));
  }
  CHECK(with_node("Clip", {"y", "", "y"}, 17).empty()); // these may be left out
}

TEST_CASE("a first output that is left out is refused, but for recurrent operators", "[loader]") {
  const auto with_node = [](const std::string& op, const std::vector<std::string>& inputs) {
    return error_after([&](auto& m) {
      auto& g = *m.mutable_graph();
      for (const char* name : {"w", "r", "s"})
        *g.add_initializer() = raw_floats(name, {1, 1, 1}, {1});
      add_node(g, op, inputs, {"", "z"});
      g.mutable_output(0)->set_name("z");
    });
  };
  for (const char* op : {"MaxPool", "Dropout"})
    CHECK_THAT(with_node(op, {"y"}), Contains("invalid_model") && Contains("output 0 is left out"));
  CHECK_THAT(with_node("LayerNormalization", {"y", "s"}), Contains("output 0 is left out"));
  CHECK_THAT(with_node("BatchNormalization", {"y", "s", "s", "s", "s"}), Contains("output 0 is left out"));
  CHECK(with_node("GRU", {"y", "w", "r"}).empty());
}

TEST_CASE("inputs of impossible types and dims", "[loader]") {
  const auto with_dim = [](int64_t d) {
    return error_after([&](auto& m) {
      auto* shape = m.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
      for (int i = 0; i < 2; ++i)
        shape->mutable_dim(i)->set_dim_value(d);
    });
  };
  CHECK(with_dim(3) == "");
  CHECK_THAT(with_dim(-2), Contains("invalid_model") && Contains("negative"));
  CHECK_THAT(with_dim(int64_t{1} << 40), Contains("overflow"));
  CHECK_THAT(error_after([](auto& m) { m.mutable_graph()->mutable_input(0)->clear_type(); }),
             Contains("'x' has no element type"));
  CHECK_THAT(error_after([](auto& m) { m.mutable_graph()->mutable_input(0)->mutable_type()->mutable_map_type(); }),
             Contains("unsupported") && Contains("'x' is not a tensor, sequence or optional"));
  CHECK_THAT(error_after([](auto& m) { m.mutable_graph()->mutable_input(0)->mutable_type()->mutable_sequence_type(); }),
             Contains("unsupported") && Contains("'x' is a sequence of something else"));
  CHECK_THAT(error_after([](auto& m) {
               auto* held =
                   m.mutable_graph()->mutable_input(0)->mutable_type()->mutable_sequence_type()->mutable_elem_type();
               held->mutable_sequence_type()->mutable_elem_type()->mutable_tensor_type()->set_elem_type(1);
             }),
             Contains("unsupported") && Contains("'x' is a sequence of something else"));
  CHECK_THAT(error_after([](auto& m) {
               auto* held =
                   m.mutable_graph()->mutable_input(0)->mutable_type()->mutable_optional_type()->mutable_elem_type();
               held->mutable_optional_type()->mutable_elem_type()->mutable_tensor_type()->set_elem_type(1);
             }),
             Contains("unsupported") && Contains("'x' is an optional of something else"));
  CHECK_THAT(error_after([](auto& m) {
               m.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(14);
             }),
             Contains("unsupported") && Contains("element type 14"));
}

TEST_CASE("initializers that do not fit their shape", "[loader]") {
  const auto with = [](const onnx::TensorProto& t) {
    return error_after([&](auto& m) { *m.mutable_graph()->add_initializer() = t; });
  };
  CHECK_THAT(with(raw_floats("w", {4}, {1, 2, 3})), Contains("tensor 'w'") && Contains("12 bytes"));
  CHECK_THAT(with(raw_floats("w", {-1}, {1})), Contains("negative"));
  CHECK_THAT(with(raw_floats("w", {int64_t{1} << 62, 8}, {1})), Contains("overflow"));
  CHECK_THAT(with(raw_floats("w", {int64_t{1} << 61}, {1})), Contains("overflow"));
  CHECK_THAT(with(raw_floats("w", {int64_t{1} << 50}, {1})), Contains("needs"));
  CHECK(with(raw_floats("w", {0, 5}, {})) == "");
  CHECK_THAT(with(raw_floats("", {1}, {1})), Contains("no name"));
  auto both = raw_floats("w", {1}, {1});
  both.add_float_data(1);
  CHECK_THAT(with(both), Contains("both raw_data and a typed field"));
  auto undefined = raw_floats("w", {1}, {1});
  undefined.set_data_type(0);
  CHECK_THAT(with(undefined), Contains("unsupported"));
}

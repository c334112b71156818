#include "compat/onnxruntime/models.hpp"

#include <cstring>

namespace troupe::test::onnx_bytes {
namespace {

constexpr int float32 = 1, int64 = 7, text = 8, boolean = 9;

std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7)
    out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
  return out;
}

template <class T>
std::string raw(const std::vector<T>& values) {
  std::string out(values.size() * sizeof(T), '\0');
  if (!values.empty())
    std::memcpy(out.data(), values.data(), out.size());
  return out;
}

std::string tensor_head(const std::string& name, const std::vector<int64_t>& dims, int type) {
  std::string out;
  for (const int64_t d : dims)
    out += field(1, d);
  return out + field(2, type) + field(8, name);
}

std::string entry(const std::string& key, const std::string& value) {
  return field(1, key) + field(2, value);
}

} // namespace

std::string field(unsigned number, int64_t value) {
  return varint(number << 3) + varint(static_cast<uint64_t>(value));
}

std::string field(unsigned number, const std::string& content) {
  return varint(number << 3 | 2) + varint(content.size()) + content;
}

std::string node(const std::string& op, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                 const std::vector<std::string>& attributes, const std::string& name) {
  std::string out;
  for (const std::string& input : inputs)
    out += field(1, input);
  for (const std::string& output : outputs)
    out += field(2, output);
  out += field(3, name) + field(4, op);
  for (const std::string& a : attributes)
    out += field(5, a);
  return out;
}

std::string attribute(const std::string& name, int64_t value) {
  return field(1, name) + field(3, value) + field(20, int64_t{2});
}

std::string graph_attribute(const std::string& name, const std::string& graph) {
  return field(1, name) + field(6, graph) + field(20, int64_t{5});
}

std::string tensor_type(int element, const std::vector<std::string>& dims) {
  std::string shape;
  for (const std::string& d : dims)
    shape += field(1, d.find_first_not_of("0123456789") == std::string::npos ? field(1, int64_t{std::stoll(d)})
                                                                             : field(2, d));
  return field(1, field(1, int64_t{element}) + field(2, shape));
}

std::string sequence_type(const std::string& element) {
  return field(4, field(1, element));
}

std::string optional_type(const std::string& held) {
  return field(9, field(1, held));
}

std::string map_type(int key, int value) {
  return field(5, field(1, int64_t{key}) + field(2, tensor_type(value, {})));
}

std::string value(const std::string& name, const std::string& type) {
  return field(1, name) + field(2, type);
}

std::string initializer(const std::string& name, const std::vector<int64_t>& dims, const std::vector<float>& values) {
  return tensor_head(name, dims, float32) + field(9, raw(values));
}

std::string initializer(const std::string& name, const std::vector<int64_t>& dims, const std::vector<int64_t>& values) {
  return tensor_head(name, dims, int64) + field(9, raw(values));
}

std::string external(const std::string& name, const std::vector<int64_t>& dims, const std::string& file,
                     int64_t offset) {
  return tensor_head(name, dims, float32) + field(13, entry("location", file)) +
         field(13, entry("offset", std::to_string(offset))) + field(14, int64_t{1});
}

std::string graph(const graph_parts& parts) {
  std::string out;
  for (const std::string& n : parts.nodes)
    out += field(1, n);
  out += field(2, parts.name);
  for (const std::string& i : parts.initializers)
    out += field(5, i);
  for (const std::string& i : parts.inputs)
    out += field(11, i);
  for (const std::string& o : parts.outputs)
    out += field(12, o);
  return out;
}

std::string model(const graph_parts& parts) {
  return field(1, int64_t{8}) + field(2, std::string("a test")) + field(4, std::string("example.org")) +
         field(5, int64_t{3}) + field(7, graph(parts)) + field(8, field(2, int64_t{17})) +
         field(14, entry("colour", "green"));
}

std::string add() {
  const std::string type = tensor_type(float32, {"n", "2"});
  return model({.nodes = {node("Add", {"a", "b"}, {"c"})},
                .inputs = {value("a", type), value("b", type)},
                .outputs = {value("c", type)},
                .initializers = {}});
}

std::string strings() {
  const std::string type = tensor_type(text, {"n"});
  return model({.nodes = {node("Identity", {"x"}, {"y"})},
                .inputs = {value("x", type)},
                .outputs = {value("y", type)},
                .initializers = {}});
}

std::string gather() {
  return model({.nodes = {node("Gather", {"x", "at"}, {"y"})},
                .inputs = {value("x", tensor_type(float32, {"n"})), value("at", tensor_type(int64, {"k"}))},
                .outputs = {value("y", tensor_type(float32, {"k"}))},
                .initializers = {}});
}

std::string count(int64_t most) {
  const std::string scalar = tensor_type(int64, {}), flag = tensor_type(boolean, {}), row = tensor_type(float32, {"1"});
  const std::string body =
      graph({.nodes = {node("Identity", {"go"}, {"go_on"}), node("Add", {"held", "one"}, {"more"})},
             .inputs = {value("i", scalar), value("go", flag), value("held", row)},
             .outputs = {value("go_on", flag), value("more", row)},
             .initializers = {initializer("one", {1}, std::vector<float>{1})}});
  return model({.nodes = {node("Loop", {"most", "", "x"}, {"y"}, {graph_attribute("body", body)})},
                .inputs = {value("x", row)},
                .outputs = {value("y", row)},
                .initializers = {initializer("most", {}, std::vector<int64_t>{most})}});
}

} // namespace troupe::test::onnx_bytes

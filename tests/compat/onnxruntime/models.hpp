// Models for clients of the C interface, as the bytes of an .onnx file: written field by field, since a client has no
// other library.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::test::onnx_bytes {

/// Returns one field of a message: a number, or a text or message.
std::string field(unsigned number, int64_t value);
std::string field(unsigned number, const std::string& content);

/// Returns a NodeProto; `attributes` are serialized AttributeProtos.
std::string node(const std::string& op, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                 const std::vector<std::string>& attributes = {}, const std::string& name = "");

/// Returns an attribute with a number, or a graph.
std::string attribute(const std::string& name, int64_t value);
std::string graph_attribute(const std::string& name, const std::string& graph);

/// Returns a TypeProto: a tensor of an element type (TensorProto's number) whose dims are numbers or names, or a
/// container of such tensors.
std::string tensor_type(int element, const std::vector<std::string>& dims);
std::string sequence_type(const std::string& element);
std::string optional_type(const std::string& held);
/// From keys, of an element type, to single values of another.
std::string map_type(int key, int value);

/// Returns a ValueInfoProto.
std::string value(const std::string& name, const std::string& type);

/// Returns a TensorProto of int64 or float values.
std::string initializer(const std::string& name, const std::vector<int64_t>& dims, const std::vector<float>& values);
std::string initializer(const std::string& name, const std::vector<int64_t>& dims, const std::vector<int64_t>& values);

/// Returns a TensorProto of floats whose bytes are in a file.
std::string external(const std::string& name, const std::vector<int64_t>& dims, const std::string& file,
                     int64_t offset);

struct graph_parts {
  std::vector<std::string> nodes, inputs, outputs, initializers;
  std::string name = "made";
};
std::string graph(const graph_parts& parts);

/// Returns a ModelProto of opset 17 whose metadata has "colour" = "green".
std::string model(const graph_parts& parts);

/// c = a + b, of floats with the shape [n, 2].
std::string add();
/// y = x, of strings with the shape [n].
std::string strings();
/// y = x at the places `at`: of floats with the shape [n], and int64 with the shape [k].
std::string gather();
/// A Loop that counts to `most`, adding 1 to x (float [1]) each time.
std::string count(int64_t most);

} // namespace troupe::test::onnx_bytes

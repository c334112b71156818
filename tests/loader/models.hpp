// Small ONNX models built in code, for the loader's tests.
// noinline: GCC 12 warns wrongly (its bug 105651) if strings of literals are built in one large function.
#pragma once

#include "loader/onnx_loader.hpp"

#include <onnx/onnx_pb.h>

#include <fstream>
#include <functional>

namespace troupe::test {

inline void set_tensor_type(onnx::ValueInfoProto& info, const std::string& name, const std::vector<std::string>& dims) {
  info.set_name(name);
  auto* type = info.mutable_type()->mutable_tensor_type();
  type->set_elem_type(onnx::TensorProto::FLOAT);
  auto* shape = type->mutable_shape();
  for (const auto& d : dims)
    shape->add_dim()->set_dim_param(d);
}

[[gnu::noinline]] inline onnx::NodeProto& add_node(onnx::GraphProto& g, const std::string& op,
                                                   const std::vector<std::string>& inputs,
                                                   const std::vector<std::string>& outputs) {
  auto* n = g.add_node();
  n->set_op_type(op);
  for (const auto& name : inputs)
    n->add_input(name);
  for (const auto& name : outputs)
    n->add_output(name);
  return *n;
}

/// Adds a field that the installed classes do not know.
inline void add_field(google::protobuf::Message& message, int number, const std::string& content) {
  message.GetReflection()->MutableUnknownFields(&message)->AddLengthDelimited(number, content);
}

/// A tensor of floats in raw_data.
inline onnx::TensorProto raw_floats(const std::string& name, std::vector<int64_t> dims,
                                    const std::vector<float>& values) {
  onnx::TensorProto t;
  t.set_name(name);
  t.set_data_type(onnx::TensorProto::FLOAT);
  for (int64_t d : dims)
    t.add_dims(d);
  t.set_raw_data(values.data(), values.size() * sizeof(float));
  return t;
}

/// x [batch, 4] → Relu → y, opset 17.
inline onnx::ModelProto relu_model() {
  onnx::ModelProto m;
  m.set_ir_version(8);
  m.add_opset_import()->set_version(17);
  auto& g = *m.mutable_graph();
  g.set_name("g");
  set_tensor_type(*g.add_input(), "x", {"batch", "features"});
  set_tensor_type(*g.add_output(), "y", {"batch", "features"});
  add_node(g, "Relu", {"x"}, {"y"});
  return m;
}

inline graph load(const onnx::ModelProto& m, const std::filesystem::path& folder = {}) {
  const std::string bytes = m.SerializeAsString();
  return load_model(std::as_bytes(std::span(bytes)), folder);
}

/// A folder that is deleted with its content.
class scratch_folder {
public:
  scratch_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "troupe-test-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~scratch_folder() { std::filesystem::remove_all(path_); }
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return path_ / name;
  }

private:
  std::filesystem::path path_;
};

/// The error that `work` throws, as "code: message"; empty if it throws none.
inline std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const error& e) {
    return std::string(to_string(e.code())) + ": " + e.what();
  }
  return "";
}

} // namespace troupe::test

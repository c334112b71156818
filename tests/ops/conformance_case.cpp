#include "ops/conformance_case.hpp"

#include "ops/evaluate.hpp"

#include <cmath>
#include <cstring>
#include <fstream>
#include <onnx/onnx_pb.h>

namespace troupe::testing {
namespace {

using std::filesystem::path;

template <class Message>
Message parse(const path& file) {
  std::ifstream in(file, std::ios::binary);
  Message message;
  if (!in || !message.ParseFromIstream(&in))
    fail(errc::io, "{} cannot be read", file.string());
  return message;
}

template <class T, class Field>
void fill(tensor& t, const Field& field) {
  const int64_t count = t.bytes() / static_cast<int64_t>(sizeof(T));
  if (field.size() != count)
    fail(errc::invalid_model, "a tensor has {} elements, expected {}", field.size(), count);
  std::transform(field.begin(), field.end(), t.mutable_data<T>(), [](auto v) { return static_cast<T>(v); });
}

void fill_typed(tensor& t, const onnx::TensorProto& p) {
  switch (t.type()) {
    case dtype::string:
      std::copy(p.string_data().begin(), p.string_data().end(), t.mutable_data<std::string>());
      return;
    case dtype::float32: return fill<float>(t, p.float_data());
    case dtype::float64: return fill<double>(t, p.double_data());
    case dtype::int64: return fill<int64_t>(t, p.int64_data());
    case dtype::uint64: return fill<uint64_t>(t, p.uint64_data());
    case dtype::uint32: return fill<uint32_t>(t, p.uint64_data());
    default: break;
  }
  switch (bits_of(t.type())) {
    case 32: return fill<uint32_t>(t, p.int32_data());
    case 16: return fill<uint16_t>(t, p.int32_data());
    default: return fill<uint8_t>(t, p.int32_data()); // packed types: a byte an entry
  }
}

tensor to_tensor(const onnx::TensorProto& p) {
  tensor t(dtype_from_onnx(p.data_type()), shape(p.dims().begin(), p.dims().end()));
  if (!p.has_raw_data()) {
    if (t.size() > 0)
      fill_typed(t, p);
    return t;
  }
  if (static_cast<int64_t>(p.raw_data().size()) != t.bytes())
    fail(errc::invalid_model, "a tensor has {} bytes, expected {}", p.raw_data().size(), t.bytes());
  std::memcpy(t.mutable_data(), p.raw_data().data(), p.raw_data().size());
  return t;
}

attribute to_attribute(const onnx::AttributeProto& a) {
  switch (a.type()) {
    case onnx::AttributeProto::INT: return a.i();
    case onnx::AttributeProto::FLOAT: return a.f();
    case onnx::AttributeProto::STRING: return a.s();
    case onnx::AttributeProto::TENSOR: return to_tensor(a.t());
    case onnx::AttributeProto::INTS: return std::vector<int64_t>(a.ints().begin(), a.ints().end());
    case onnx::AttributeProto::FLOATS: return std::vector<float>(a.floats().begin(), a.floats().end());
    case onnx::AttributeProto::STRINGS: return std::vector<std::string>(a.strings().begin(), a.strings().end());
    default: fail(errc::unsupported, "attribute '{}' is of a kind that single-node cases do not have", a.name());
  }
}

/// Puts `files` (input_0.pb …), which follow `declared`, into the order in which the node names them.
template <class Names>
std::vector<tensor> operands(const path& folder, const std::string& prefix, const onnx::GraphProto& g,
                             const google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>& declared,
                             const Names& names) {
  std::map<std::string, tensor> by_name;
  for (const auto& initializer : g.initializer())
    by_name[initializer.name()] = to_tensor(initializer);
  int index = 0;
  for (const auto& info : declared) {
    const path file = folder / (prefix + "_" + std::to_string(index++) + ".pb");
    if (!info.type().has_tensor_type())
      fail(errc::unsupported, "{} is not a tensor", info.name());
    if (std::filesystem::exists(file))
      by_name[info.name()] = to_tensor(parse<onnx::TensorProto>(file));
  }
  std::vector<tensor> found;
  for (const auto& name : names)
    found.push_back(name.empty() ? tensor{} : by_name[name]);
  return found;
}

bool close(double a, double e, double rtol, double atol) {
  if (std::isnan(a) || std::isnan(e))
    return std::isnan(a) && std::isnan(e);
  return a == e || (std::isfinite(e) && std::abs(a - e) <= atol + rtol * std::abs(e));
}

int packed_bits(const tensor& t, int64_t i) {
  const int width = bits_of(t.type()), in_byte = 8 / width;
  return t.data<uint8_t>()[i / in_byte] >> (i % in_byte * width) & ((1 << width) - 1);
}

} // namespace

std::optional<conformance_case> load_single_node_case(const path& folder) {
  const auto model = parse<onnx::ModelProto>(folder / "model.onnx");
  const auto& g = model.graph();
  if (g.node_size() != 1 || model.functions_size() != 0)
    return std::nullopt;
  const auto& n = g.node(0);
  conformance_case c{.name = folder.filename().string(), .domain = n.domain(), .op_type = n.op_type()};
  if (c.domain == "ai.onnx")
    c.domain.clear();
  for (const auto& import : model.opset_import())
    if (import.domain() == n.domain() || (c.domain.empty() && import.domain() == "ai.onnx"))
      c.opset = import.version();
  try {
    for (const auto& a : n.attribute())
      c.attrs.set(a.name(), to_attribute(a));
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (entry.is_directory())
        c.data_sets.push_back(
            {operands(entry, "input", g, g.input(), n.input()), operands(entry, "output", g, g.output(), n.output())});
  } catch (const error& e) {
    if (e.code() == errc::unsupported)
      return std::nullopt;
    throw;
  }
  return c;
}

std::string difference(const tensor& actual, const tensor& expected, double rtol, double atol) {
  if (actual.type() != expected.type() || actual.dims() != expected.dims())
    return fmt::format("{}{} instead of {}{}", to_string(actual.type()), to_string(actual.dims()),
                       to_string(expected.type()), to_string(expected.dims()));
  const auto report = [](int64_t i, const auto& a, const auto& e) {
    return fmt::format("element {} is {} instead of {}", i, a, e);
  };
  for (int64_t i = 0; i < expected.size(); ++i) {
    if (expected.type() == dtype::string) {
      const auto &a = actual.data<std::string>()[i], &e = expected.data<std::string>()[i];
      if (a != e)
        return report(i, a, e);
    } else if (types::packed & set_of(expected.type())) {
      if (packed_bits(actual, i) != packed_bits(expected, i))
        return report(i, packed_bits(actual, i), packed_bits(expected, i));
    } else if (types::floats & set_of(expected.type())) {
      const auto [a, e] = visit_float(expected.type(), [&]<class T>(type_tag<T>) {
        return std::pair<double, double>(actual.data<T>()[i], expected.data<T>()[i]);
      });
      if (!close(a, e, rtol, atol))
        return report(i, a, e);
    } else {
      const int64_t width = bits_of(expected.type()) / 8;
      if (std::memcmp(actual.data<char>() + i * width, expected.data<char>() + i * width, width) != 0)
        return fmt::format("element {} differs", i);
    }
  }
  return "";
}

std::string run_case(const conformance_case& c, const op_def* def) {
  if (c.data_sets.empty())
    return "the case has no data";
  for (const case_data& data : c.data_sets) {
    try {
      const auto outputs = evaluate(*def, c.attrs, data.inputs, data.expected.size());
      for (size_t i = 0; i < outputs.size(); ++i)
        if (data.expected[i].defined())
          if (const std::string text = difference(outputs[i], data.expected[i]); !text.empty())
            return fmt::format("output {}: {}", i, text);
    } catch (const error& e) {
      return fmt::format("{}: {}", to_string(e.code()), e.what());
    }
  }
  return "";
}

} // namespace troupe::testing

#include "support/peer_cases.hpp"

#include "support/catch.hpp"
#include "support/places.hpp"
#include "tensor/convert.hpp"
#include "troupe/engine.hpp"

#include <fstream>

namespace troupe::test {

using nlohmann::json;

namespace {

std::string decode_base64(const std::string& text) {
  static const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t word = 0;
  int bits = 0;
  for (const char c : text) {
    if (c == '=')
      break;
    word = word << 6 | static_cast<uint32_t>(digits.find(c));
    bits += 6;
    if (bits >= 8)
      bytes.push_back(static_cast<char>(word >> (bits -= 8)));
  }
  return bytes;
}

dtype type_called(const std::string& name) {
  for (const dtype t :
       {dtype::float32, dtype::float16, dtype::float64, dtype::int8, dtype::uint8, dtype::int16, dtype::uint16,
        dtype::int32, dtype::uint32, dtype::int64, dtype::boolean, dtype::int4, dtype::uint4, dtype::string})
    if (name == to_string(t))
      return t;
  throw std::runtime_error("the cases have an unknown element type: " + name);
}

tensor tensor_of(const json& j) {
  if (j.is_null())
    return {};
  tensor t(type_called(j.at("t")), j.at("d").get<shape>());
  if (t.type() == dtype::string) {
    const auto texts = j.at("s").get<std::vector<std::string>>();
    REQUIRE(std::ssize(texts) == t.size());
    std::copy(texts.begin(), texts.end(), t.mutable_data<std::string>());
    return t;
  }
  const std::string bytes = decode_base64(j.at("b"));
  REQUIRE(static_cast<int64_t>(bytes.size()) == t.bytes());
  std::memcpy(t.mutable_data(), bytes.data(), bytes.size());
  return t;
}

float real_of(const json& j) {
  return j.is_string() ? std::numeric_limits<float>::quiet_NaN() : j.get<float>();
}

attribute attribute_of(const json& j) {
  if (j.is_string())
    return j.get<std::string>();
  if (j.is_array())
    return j.get<std::vector<int64_t>>();
  if (j.is_object() && j.contains("texts"))
    return j["texts"].get<std::vector<std::string>>();
  if (j.is_object() && j.contains("tensor"))
    return tensor_of(j["tensor"]);
  if (j.is_object() && j.contains("real"))
    return real_of(j["real"]);
  if (j.is_object()) {
    std::vector<float> reals;
    for (const json& x : j["reals"])
      reals.push_back(real_of(x));
    return reals;
  }
  return j.get<int64_t>();
}

/// The difference that two engines may have: a last step where results are quantised, and the rounding of float
/// arithmetic in another order.
double tolerance(dtype type, double expected) {
  if (type == dtype::int8 || type == dtype::uint8 || type == dtype::int16 || type == dtype::uint16)
    return 1;
  if (type == dtype::float16)
    return 4e-3 + 4e-3 * std::abs(expected);
  return types::floats & set_of(type) ? 1e-5 + 1e-4 * std::abs(expected) : 0;
}

std::string difference(const tensor& got, const tensor& want, double loose) {
  if (got.type() != want.type() || got.dims() != want.dims())
    return fmt::format("{}{} instead of {}{}", to_string(got.type()), to_string(got.dims()), to_string(want.type()),
                       to_string(want.dims()));
  if (want.type() == dtype::string) {
    const auto a = got.values<std::string>(), b = want.values<std::string>();
    const auto apart = std::mismatch(a.begin(), a.end(), b.begin());
    return apart.first == a.end() ? "" : fmt::format("'{}' instead of '{}'", *apart.first, *apart.second);
  }
  const auto a = to_double(got.view()), b = to_double(want.view());
  size_t steps = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double apart = std::abs(a[i] - b[i]);
    if (a[i] != b[i] && !(std::isnan(a[i]) && std::isnan(b[i])) && !(apart <= loose + tolerance(want.type(), b[i])))
      return fmt::format("element {} is {} instead of {}", i, a[i], b[i]);
    steps += a[i] != b[i];
  }
  const bool quantised = bits_of(want.type()) <= 16 && (types::integers & set_of(want.type()));
  if (quantised && steps > 1 + a.size() / 50)
    return fmt::format("{} of {} elements are a step off", steps, a.size());
  return "";
}

peer_case case_of(const json& j) {
  peer_case c{j["name"], j["op"], j["domain"], j.value("version", int64_t{1}), j.value("loose", 0.0), {}, {}, {}, {}};
  for (const auto& [name, value] : j["attrs"].items())
    c.attrs[name] = attribute_of(value);
  for (const json& input : j["inputs"]) {
    c.inputs.push_back(tensor_of(input));
    c.constant.push_back(input.is_object() && input.value("c", false));
  }
  for (const json& output : j["outputs"])
    c.outputs.push_back(tensor_of(output));
  return c;
}

} // namespace

std::vector<peer_case> read_peer_cases(const std::string& file) {
  std::ifstream in(test_data() + "/../" + file);
  std::vector<peer_case> read;
  for (std::string line; std::getline(in, line);)
    read.push_back(case_of(json::parse(line)));
  REQUIRE(read.size() > 50);
  return read;
}

std::vector<tensor> run_peer_case(engine& e, const peer_case& c) {
  model_builder m;
  named_tensors inputs;
  std::vector<argument> operands;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const tensor& t = c.inputs[i];
    if (!t.defined()) {
      operands.emplace_back(variable());
    } else if (c.constant[i]) {
      operands.emplace_back(t);
    } else {
      const std::string name = "x" + std::to_string(i);
      inputs[name] = t;
      operands.emplace_back(m.input(name, t.type(), symbolic_shape(t.dims().begin(), t.dims().end())));
    }
  }
  const auto results = m.call_all(c.op, operands, c.attrs, {.domain = c.domain, .outputs = c.outputs.size()});
  for (size_t i = 0; i < results.size(); ++i)
    if (c.outputs[i].defined())
      m.output("y" + std::to_string(i), results[i]);
  auto outputs = e.load(m.build()).run(inputs).outputs;
  std::vector<tensor> got;
  for (size_t i = 0; i < c.outputs.size(); ++i)
    got.push_back(outputs["y" + std::to_string(i)]);
  return got;
}

std::string peer_difference(const peer_case& c, const std::vector<tensor>& got) {
  for (size_t i = 0; i < c.outputs.size(); ++i)
    if (c.outputs[i].defined())
      if (const std::string text = difference(got[i], c.outputs[i], c.loose); !text.empty())
        return fmt::format("output {}: {}", i, text);
  return "";
}

} // namespace troupe::test

// Operators of com.microsoft against ONNX Runtime: the cases that generate.mjs wrote, on the CPU and on a GPU.
#include "actors/engine_access.hpp"
#include "ops/evaluate.hpp"
#include "ops/registry.hpp"
#include "support/catch.hpp"
#include "support/gpu.hpp"
#include "tensor/convert.hpp"
#include "troupe/model_builder.hpp"

#include <nlohmann/json.hpp>

#include <fstream>

using namespace troupe;
using namespace troupe::test;
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
  for (const dtype t : {dtype::float32, dtype::float16, dtype::float64, dtype::int8, dtype::uint8, dtype::int16,
                        dtype::uint16, dtype::int32, dtype::int64, dtype::boolean, dtype::int4, dtype::uint4})
    if (name == to_string(t))
      return t;
  throw std::runtime_error("the cases have an unknown element type: " + name);
}

tensor tensor_of(const json& j) {
  tensor t(type_called(j.at("t")), j.at("d").get<shape>());
  const std::string bytes = decode_base64(j.at("b"));
  REQUIRE(static_cast<int64_t>(bytes.size()) == t.bytes());
  std::memcpy(t.mutable_data(), bytes.data(), bytes.size());
  return t;
}

attribute attribute_of(const json& j) {
  if (j.is_string())
    return j.get<std::string>();
  if (j.is_array())
    return j.get<std::vector<int64_t>>();
  if (j.is_object())
    return j.contains("real") ? attribute(j["real"].get<float>()) : attribute(j["reals"].get<std::vector<float>>());
  return j.get<int64_t>();
}

/// The model of a case, and its inputs. Results are called "y0", "y1" …
struct built_case {
  built_model model;
  std::map<std::string, tensor> inputs;
};

built_case build(const json& c) {
  model_builder m;
  std::map<std::string, tensor> inputs;
  std::vector<argument> operands;
  for (const json& j : c["inputs"]) {
    if (j.is_null()) {
      operands.emplace_back(variable());
      continue;
    }
    const tensor t = tensor_of(j);
    if (j.value("c", false)) {
      operands.emplace_back(t);
      continue;
    }
    const std::string name = "x" + std::to_string(inputs.size());
    inputs[name] = t;
    operands.emplace_back(m.input(name, t.type(), symbolic_shape(t.dims().begin(), t.dims().end())));
  }
  std::map<std::string, attribute> attributes;
  for (const auto& [name, value] : c["attrs"].items())
    attributes[name] = attribute_of(value);
  const auto results =
      m.call_all(c["op"], operands, attributes, {.domain = c["domain"], .outputs = c["outputs"].size()});
  for (size_t i = 0; i < results.size(); ++i)
    if (!c["outputs"][i].is_null())
      m.output("y" + std::to_string(i), results[i]);
  return {m.build(), inputs};
}

/// What two engines may differ by: a last step where results are quantised, and what float arithmetic in another order gives.
double tolerance(dtype type, double expected) {
  if (type == dtype::int8 || type == dtype::uint8 || type == dtype::int16 || type == dtype::uint16)
    return 1;
  if (type == dtype::float16)
    return 4e-3 + 4e-3 * std::abs(expected);
  return types::floats & set_of(type) ? 1e-5 + 1e-4 * std::abs(expected) : 0;
}

std::string difference(const tensor& got, const tensor& want) {
  if (got.type() != want.type() || got.dims() != want.dims())
    return fmt::format("{}{} instead of {}{}", to_string(got.type()), to_string(got.dims()), to_string(want.type()),
                       to_string(want.dims()));
  const auto a = to_double(got.view()), b = to_double(want.view());
  size_t steps = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double apart = std::abs(a[i] - b[i]);
    if (a[i] != b[i] && !(apart <= tolerance(want.type(), b[i])))
      return fmt::format("element {} is {} instead of {}", i, a[i], b[i]);
    steps += a[i] != b[i];
  }
  if (!(types::floats & set_of(want.type())) && steps > 1 + a.size() / 50)
    return fmt::format("{} of {} elements are a step off", steps, a.size());
  return "";
}

std::vector<json> cases() {
  std::ifstream file(std::string(TROUPE_TEST_DATA) + "/../contrib/cases.jsonl");
  std::vector<json> read;
  for (std::string line; std::getline(file, line);)
    read.push_back(json::parse(line));
  REQUIRE(read.size() > 50);
  return read;
}

void check_on(const std::vector<std::string>& devices) {
  engine e = make_engine({.devices = devices}, {.gpu_validation = gpus_are_validated()});
  for (const json& c : cases()) {
    std::string problem;
    try {
      const built_case built = build(c);
      const auto outputs = e.load(built.model).run(built.inputs).outputs;
      for (size_t i = 0; i < c["outputs"].size() && problem.empty(); ++i)
        if (!c["outputs"][i].is_null())
          problem = difference(outputs.at("y" + std::to_string(i)), tensor_of(c["outputs"][i]));
    } catch (const error& e) {
      problem = e.what();
    }
    if (!problem.empty())
      FAIL_CHECK(c["name"].get<std::string>() << " on " << devices.front() << ": " << problem);
  }
  CHECK(gpu_messages(e).empty());
}

} // namespace

TEST_CASE("operators of com.microsoft give what ONNX Runtime gives", "[ops][contrib]") {
  check_on({"cpu"});
}

TEST_CASE("operators of com.microsoft give that on a GPU, the CPU running what it lacks",
          "[ops][contrib][vulkan][slow]") {
  check_on({"vulkan:0", "cpu"});
}

TEST_CASE("compositions refuse operands that are missing or of the wrong rank", "[ops][contrib]") {
  const tensor single = tensor::of<float>({1}, std::vector<float>{1}),
               cube = tensor::of<float>({1, 1, 1}, std::vector<float>{1});
  for (const op_def* def : all_ops()) {
    if (!def->expand)
      continue;
    INFO(def->domain << "." << def->name);
    const auto most = std::min<size_t>(def->inputs.max, 16);
    for (size_t count = 0; count <= most; ++count) {
      CHECK_THROWS_AS(evaluate(*def, {}, std::vector<tensor>(count)), error);
      for (const tensor& t : {single, cube, tensor::scalar<uint8_t>(1), tensor::scalar<int32_t>(1)})
        try {
          evaluate(*def, {}, std::vector<tensor>(count, t));
        } catch (const error& e) {
          CHECK(e.code() != errc::internal);
        }
    }
  }
}

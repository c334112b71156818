// Inference lets through what kernels take: operands of other types and dims than an operator has are refused before a
// kernel reads them.
#include "ops/registry.hpp"
#include "ops/run_op.hpp"
#include "ops/type_rules.hpp"
#include "support/catch.hpp"
#include "support/sample_calls.hpp"
#include "support/thrown.hpp"
#include "troupe/engine.hpp"

#include <cmath>
#include <set>

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr auto all_types =
    std::to_array<dtype>({dtype::float32, dtype::float16, dtype::bfloat16, dtype::float64, dtype::int8, dtype::int16,
                          dtype::int32, dtype::int64, dtype::uint8, dtype::uint16, dtype::uint32, dtype::uint64,
                          dtype::boolean, dtype::string, dtype::int4, dtype::float8e4m3fn});

/// Returns why inference refuses a call; empty if it does not.
std::string refusal_of(const sample_call& c) {
  try {
    inferred(graph_of(c, dims_of(c)));
    return "";
  } catch (const error& e) {
    CHECK(e.code() != errc::internal);
    return e.what();
  }
}

} // namespace

TEST_CASE("the letters of each operator are known ones", "[ops]") {
  for (const op_def* def : all_ops()) {
    INFO(def->domain << "." << def->name);
    CHECK(are_operand_letters(operand_letters(*def)));
  }
  CHECK_FALSE(are_operand_letters(""));
  CHECK_FALSE(are_operand_letters("T?"));
  CHECK_FALSE(are_operand_letters("T(U"));
  CHECK_FALSE(are_operand_letters("T()"));
}

TEST_CASE("the last letters are repeated", "[ops]") {
  std::string plain, repeated;
  for (size_t i = 0; i < 6; ++i) {
    plain += operand_letter("TUl", i);
    repeated += operand_letter("fU(TfV)", i);
  }
  CHECK(plain == "TUllll");
  CHECK(repeated == "fUTfVT");
}

TEST_CASE("valid calls are taken", "[ops]") {
  for (const sample_call& c : read_sample_calls(true)) {
    INFO(c.def->domain << "." << c.name);
    // These calls compute a part of the operands that compositions must know.
    if (c.def->name != "DynamicSlice" && c.def->name != "DecoderMaskedMultiHeadAttention" &&
        c.def->name != "LabelEncoder")
      CHECK(refusal_of(c).empty());
  }
}

TEST_CASE("an operand of another type than input 0 is refused where one type is asked for", "[ops]") {
  size_t refused = 0;
  for (const sample_call& c : read_sample_calls(true)) {
    const std::string_view letters = operand_letters(*c.def);
    for (size_t i = 1; i < c.inputs.size(); ++i)
      for (const dtype type : all_types) {
        if (!c.inputs[i].defined() || operand_letter(letters, i) != 'T' || type == c.inputs[0].type())
          continue;
        sample_call other = c;
        other.inputs[i] = retyped(c.inputs[i], type);
        INFO(fmt::format("{}.{}: input {} is {}", c.def->domain, c.name, i, to_string(type)));
        CHECK_FALSE(refusal_of(other).empty());
        ++refused;
      }
  }
  CHECK(refused > 1000);
}

TEST_CASE("a refusal of a type names node, input and types", "[ops]") {
  graph_builder b;
  const value_id bias = b.input("bias", {3}, dtype::int32);
  b.output(b.op("Conv", {b.input("x", {1, 2, 5, 5}), b.input("w", {3, 2, 3, 3}), bias}, {}, "filter"));
  const error why = thrown_by([&] { inferred(b.g); });
  CHECK(why.code() == errc::invalid_model);
  CHECK_THAT(why.what(), Catch::Contains("filter") &&
                             Catch::Contains("input 2 ('bias') is int32, but must be float32, as input 0 is"));
}

TEST_CASE("attention takes both caches of one type", "[ops]") {
  for (const sample_call& c : read_sample_calls(false))
    if (c.def->domain == "troupe" && c.def->name == "Attention" && c.inputs.size() == 6 &&
        c.inputs[0].type() == dtype::float16) {
      sample_call wide = c;
      wide.inputs[4] = retyped(c.inputs[4], dtype::float32);
      CHECK_THAT(refusal_of(wide), Catch::Contains("input 5 ('x5') is float16, but must be float32, as input 4 is"));
      wide.inputs[5] = retyped(c.inputs[5], dtype::float32);
      CHECK(refusal_of(wide).empty());
      return;
    }
  FAIL("there is no such call");
}

namespace {

/// Runs a call on an engine; empty if it is refused or fails.
std::vector<tensor> results_of(engine& e, const sample_call& c) {
  try {
    const session s = e.load(graph_of(c, dims_of(c)));
    named_tensors inputs;
    for (size_t i = 0; i < c.inputs.size(); ++i)
      if (c.inputs[i].defined() && (c.def->host_inputs >> i & 1) == 0)
        inputs[fmt::format("x{}", i)] = c.inputs[i];
    named_tensors all = s.run(inputs).outputs;
    std::vector<tensor> results;
    for (size_t i = 0; i < c.outputs; ++i)
      results.push_back(all.at(fmt::format("y{}", i)));
    return results;
  } catch (const error& e) {
    CHECK(e.code() != errc::internal);
    return {};
  }
}

bool are_near(const tensor& a, const tensor& b) {
  if (a.type() != b.type() || a.dims() != b.dims())
    return false;
  if (!(types::numeric & set_of(a.type())))
    return true;
  const std::vector<double> x = to_double(a.view()), y = to_double(b.view());
  const double steps = types::integers & set_of(a.type()) ? 1.01 : 0.02;
  return std::equal(x.begin(), x.end(), y.begin(), [&](double p, double q) {
    return p == q || std::isnan(p) || std::isnan(q) || std::abs(p - q) <= steps + 0.02 * std::abs(q);
  });
}

} // namespace

TEST_CASE("operands of mixed types that are taken give the same on a GPU", "[ops][vulkan][slow]") {
  engine cpu({.devices = {"cpu"}}), gpu({.devices = {"vulkan:0", "cpu"}});
  std::set<const op_def*> peers;
  for (const sample_call& c : read_sample_calls(true)) {
    const bool own = c.def->domain.empty() || c.def->domain == "troupe";
    if (c.def->draws || c.inputs.size() < 2 || (!own && !peers.insert(c.def).second))
      continue;
    for (size_t i = 0; i < c.inputs.size(); ++i)
      for (const dtype type : all_types) {
        if (!c.inputs[i].defined() || type == c.inputs[i].type())
          continue;
        sample_call other = c;
        other.inputs[i] = retyped(c.inputs[i], type);
        if (!refusal_of(other).empty())
          continue;
        INFO(fmt::format("{}.{}: input {} is {}", c.def->domain, c.name, i, to_string(type)));
        const std::vector<tensor> a = results_of(cpu, other), b = results_of(gpu, other);
        CHECK(std::equal(a.begin(), a.end(), b.begin(), b.end(), are_near));
      }
  }
}

// Cases of the operators in experimental.mjs that ONNX Runtime cannot give: other element types, dims that are known
// only in the run, and calls that are refused.
#include "actors/engine_access.hpp"
#include "contrib/contrib_calls.hpp"
#include "troupe/model_builder.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Contains;

namespace {

std::string refused(std::string_view op, const attributes& attrs, const tensor& x) {
  return test::thrown_by([&] { run_op(op, 9, attrs, {x}); }).what();
}

} // namespace

TEST_CASE("Experiments of ai.onnx compute in the type of their operand", "[ops][contrib]") {
  const attributes both = attrs_of({{"alpha", 2.f}, {"beta", 0.5f}});
  const attributes image = attrs_of({{"scale", 2.f}, {"bias", std::vector<float>{0.5f, -1}}});
  const tensor x = noise({1, 2, 3, 4}, 1);
  for (const auto& [op, attrs] : {std::pair{"Affine", both},
                                  {"ParametricSoftplus", both},
                                  {"ScaledTanh", both},
                                  {"Scale", image},
                                  {"ImageScaler", image},
                                  {"ThresholdedRelu", both}}) {
    INFO(op);
    const auto want = elements(run_op(op, 9, attrs, {x})[0]);
    for (const dtype type : {dtype::float16, dtype::float64}) {
      const tensor got = run_op(op, 9, attrs, {converted(x, type)})[0];
      REQUIRE(got.type() == type);
      for (size_t i = 0; i < want.size(); ++i)
        CHECK(elements(got)[i] == Approx(want[i]).margin(type == dtype::float16 ? 4e-3 : 1e-5));
    }
  }
  const attributes border = attrs_of({{"border", int_list{1, 0, 1, 1}}});
  const tensor cut = converted(run_op("Crop", 9, border, {x})[0], dtype::float16);
  CHECK(elements(run_op("Crop", 9, border, {converted(x, dtype::float16)})[0]) == elements(cut));
}

TEST_CASE("Crop and ImageScaler take images whose size only the run tells", "[ops][contrib]") {
  engine e = make_engine({.devices = {"cpu"}}, {});
  model_builder m;
  const variable x = m.input("x", dtype::float32, {dim::symbol("n"), 2, dim::symbol("h"), dim::symbol("w")});
  const variable cut = m.call("Crop", {x}, {{"border", int_list{1, 0, 0, 2}}});
  m.output("y", m.call("ImageScaler", {cut}, {{"scale", 2.f}, {"bias", std::vector<float>{1, 2}}}));
  session s = e.load(m.build());
  for (const auto& [height, width] : {std::pair<int64_t, int64_t>{4, 3}, {3, 6}}) {
    const tensor image = noise({2, 2, height, width}, 1);
    const tensor y = s.run({{"x", image}}).outputs.at("y");
    REQUIRE(y.dims() == shape{2, 2, height - 2, width - 1});
    CHECK(elements(y)[0] == Approx(2 * elements(image)[1] + 1));
  }
}

TEST_CASE("Experiments of ai.onnx refuse attributes that are missing or do not fit", "[ops][contrib]") {
  const tensor x = noise({1, 2, 3, 4}, 1), flat = noise({3, 4}, 1);
  for (const char* op : {"ParametricSoftplus", "ScaledTanh"}) {
    CHECK_THAT(refused(op, {}, x), Contains("alpha"));
    CHECK_THAT(refused(op, attrs_of({{"alpha", 1.f}}), x), Contains("beta"));
  }
  CHECK_THAT(refused("ImageScaler", {}, x), Contains("channels and elements of attribute 'bias': 2 and 0 differ"));
  CHECK_THAT(refused("ImageScaler", attrs_of({{"bias", std::vector<float>{1}}}), flat), Contains("rank 4"));
  const auto crop = [](int_list border, int_list sizes) {
    return attrs_of({{"border", std::move(border)}, {"scale", std::move(sizes)}});
  };
  CHECK_THAT(refused("Crop", {}, x), Contains("'border' is []; 4 sizes are needed"));
  CHECK_THAT(refused("Crop", attrs_of({{"border", int_list{0, 0, -1, 0}}}), x), Contains("4 sizes are needed"));
  CHECK_THAT(refused("Crop", crop({0, 0, 0, 0}, {1}), x), Contains("'scale' is [1]; 2 sizes are needed"));
  CHECK_THAT(refused("Crop", crop({0, 0, 0, 0}, {1, -1}), x), Contains("2 sizes are needed"));
  CHECK_THAT(refused("Crop", attrs_of({{"border", int_list{0, 2, 0, 2}}}), x), Contains("an axis of 3 elements"));
  CHECK_THAT(refused("Crop", crop({2, 0, 0, 0}, {3, 3}), x), Contains("an axis of 4 elements"));
  CHECK_THAT(refused("Crop", attrs_of({{"border", int_list{0, 0, 0, 0}}}), flat), Contains("rank 4"));
}

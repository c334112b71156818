// Operators of ai.onnx.ml against ONNX Runtime (the cases that generate.mjs wrote), and by hand where the operators'
// text says more, or says otherwise.
#include "actors/engine_access.hpp"
#include "ops/evaluate.hpp"
#include "ops/registry.hpp"
#include "ops/run_op.hpp"
#include "support/catch.hpp"
#include "support/gpu.hpp"
#include "support/peer_cases.hpp"
#include "support/thrown.hpp"

using namespace troupe;
using namespace troupe::test;
using namespace troupe::testing;
using Catch::Contains;

namespace {

constexpr std::string_view ml = "ai.onnx.ml";
using reals = std::vector<float>;
using texts = std::vector<std::string>;

attributes attributes_of(const peer_case& c) {
  attributes attrs;
  for (const auto& [name, value] : c.attrs)
    attrs.set(name, value);
  return attrs;
}

void check_on(const std::vector<std::string>& devices) {
  engine e = make_engine({.devices = devices}, {.gpu_validation = gpus_are_validated()});
  for (const peer_case& c : read_peer_cases("ml/cases.jsonl")) {
    const op_def* def = find_op(ml, c.op, c.version);
    REQUIRE(def != nullptr);
    std::string problem;
    try {
      const bool newest = def == find_op(ml, c.op, newest_opset(ml)); // models built in code have that
      problem = peer_difference(c, newest ? run_peer_case(e, c)
                                          : evaluate(*def, attributes_of(c), c.inputs, c.outputs.size()));
    } catch (const error& e) {
      problem = e.what();
    }
    if (!problem.empty())
      FAIL_CHECK(c.name << " on " << devices.front() << ": " << problem);
  }
  CHECK(gpu_messages(e).empty());
}

std::vector<tensor> call(std::string_view op, const attributes& attrs, const std::vector<tensor>& inputs,
                         size_t outputs = 1, int64_t version = 5) {
  return evaluate(*find_op(ml, op, version), attrs, inputs, outputs);
}

tensor strings(const texts& list) {
  return tensor::of<std::string>({std::ssize(list)}, list);
}

/// One tree over one feature: x ≤ 0 ? leaf 1 : leaf 2, each with a vote for every class.
attributes stump(const reals& weights, const std::string& prefix) {
  const auto classes = static_cast<int64_t>(weights.size() / 2);
  int_list nodes, trees(weights.size(), 0), ids;
  for (int64_t leaf = 1; leaf <= 2; ++leaf)
    for (int64_t k = 0; k < classes; ++k) {
      nodes.push_back(leaf);
      ids.push_back(k);
    }
  return attrs_of({{"nodes_treeids", int_list{0, 0, 0}},
                   {"nodes_nodeids", int_list{0, 1, 2}},
                   {"nodes_featureids", int_list{0, 0, 0}},
                   {"nodes_modes", texts{"BRANCH_LEQ", "LEAF", "LEAF"}},
                   {"nodes_truenodeids", int_list{1, 0, 0}},
                   {"nodes_falsenodeids", int_list{2, 0, 0}},
                   {"nodes_values", reals{0, 0, 0}},
                   {prefix + "_ids", ids},
                   {prefix + "_nodeids", nodes},
                   {prefix + "_treeids", trees},
                   {prefix + "_weights", weights}});
}

std::string message(std::string_view op, const attributes& attrs, const std::vector<tensor>& inputs) {
  return thrown_by([&] { call(op, attrs, inputs); }).what();
}

} // namespace

TEST_CASE("operators of ai.onnx.ml give ONNX Runtime's results", "[ops][ml]") {
  check_on({"cpu"});
}

TEST_CASE("operators of ai.onnx.ml give that beside a GPU", "[ops][ml][vulkan][slow]") {
  check_on({"vulkan:0", "cpu"});
}

TEST_CASE("of two classes that both get votes the larger score wins, with base values of their own", "[ops][ml]") {
  attributes attrs = stump({0.7f, 0.3f, 0.2f, 0.8f}, "class"); // ONNX Runtime says class 1, whatever its label is
  attrs.set("classlabels_int64s", int_list{10, 20});
  const auto made = call("TreeEnsembleClassifier", attrs, {floats({2, 1}, {-1, 1})}, 2);
  CHECK(elements(made[0]) == std::vector<double>{10, 20});
  attrs.set("base_values", reals{0, 0.5f});
  const auto moved = call("TreeEnsembleClassifier", attrs, {floats({2, 1}, {-1, 1})}, 2);
  CHECK(elements(moved[0]) == std::vector<double>{20, 20});
  CHECK(elements(moved[1])[1] == Approx(0.8));
}

TEST_CASE("two classes with a base value each have both, whichever gets the votes", "[ops][ml]") {
  for (const int64_t voted : {0, 1}) {
    attributes attrs = stump({0.7f, -0.2f}, "class");
    attrs.set("class_ids", int_list{voted, voted});
    attrs.set("classlabels_int64s", int_list{10, 20});
    attrs.set("base_values", reals{0.3f, 0.1f});
    const auto made = call("TreeEnsembleClassifier", attrs, {floats({2, 1}, {-1, 1})}, 2);
    const auto scores = elements(made[1]);
    for (const size_t row : {0, 1}) {
      const double votes = row == 0 ? 0.7 : -0.2;
      CHECK(scores[2 * row] == Approx(0.3 + (voted == 0 ? votes : 0)));
      CHECK(scores[2 * row + 1] == Approx(0.1 + (voted == 1 ? votes : 0)));
      CHECK(elements(made[0])[row] == (scores[2 * row + 1] > scores[2 * row] ? 20 : 10));
    }
  }
}

TEST_CASE("the last of two equal keys counts from opset 4 on", "[ops][ml]") {
  const attributes attrs = attrs_of({{"keys_strings", texts{"a", "a"}}, {"values_int64s", int_list{5, 7}}});
  CHECK(elements(call("LabelEncoder", attrs, {strings({"a", "b"})})[0]) == std::vector<double>{7, -1});
  CHECK(elements(call("LabelEncoder", attrs, {strings({"a", "b"})}, 1, 2)[0]) == std::vector<double>{5, -1});
}

TEST_CASE("an int32 operand is encoded, and a number without a category is refused if it must have one", "[ops][ml]") {
  attributes attrs = attrs_of({{"cats_int64s", int_list{7, 3}}, {"zeros", int64_t{0}}});
  const tensor y = call("OneHotEncoder", attrs, {tensor::of<int32_t>({2}, std::vector<int32_t>{3, 7})})[0];
  CHECK(elements(y) == std::vector<double>{0, 1, 1, 0});
  CHECK_THAT(message("OneHotEncoder", attrs, {longs({4})}), Contains("'4' is not one of the 2 categories"));
}

TEST_CASE("NaN is not a category, not even 0", "[ops][ml]") {
  attributes attrs = attrs_of({{"cats_int64s", int_list{0, 1}}});
  const tensor x = floats({2}, {std::numeric_limits<float>::quiet_NaN(), 1});
  CHECK(elements(call("OneHotEncoder", attrs, {x})[0]) == std::vector<double>{0, 0, 0, 1});
  attrs.set("zeros", int64_t{0});
  CHECK_THAT(message("OneHotEncoder", attrs, {x}), Contains("'NaN' is not one of the 2 categories"));
}

TEST_CASE("trees of hostile files are refused", "[ops][ml]") {
  const tensor x = floats({1, 1}, {-1});
  const auto refused = [&](const char* name, const attribute& value) {
    attributes attrs = stump({1, 2}, "target");
    attrs.set(name, value);
    return message("TreeEnsembleRegressor", attrs, {x});
  };
  CHECK_THAT(refused("nodes_truenodeids", int_list{7, 0, 0}), Contains("tree 0 has no node 7"));
  CHECK_THAT(refused("nodes_nodeids", int_list{0, 1, 1}), Contains("has node 1 twice"));
  CHECK_THAT(refused("nodes_featureids", int_list{5, 0, 0}), Contains("asks for feature 5 of 1"));
  CHECK_THAT(refused("nodes_featureids", int_list{0}), Contains("'nodes_featureids' has 1 elements instead of 3"));
  CHECK_THAT(refused("target_ids", int_list{1, 0}), Contains("'target_ids' has 1"));
  CHECK_THAT(refused("n_targets", int64_t{INT64_MAX}), Contains("targets"));
  CHECK_THAT(refused("nodes_modes", texts{"BRANCH", "LEAF", "LEAF"}), Contains("'BRANCH', which is none"));
  CHECK_THAT(refused("nodes_falsenodeids", int_list{0, 0, 0}), Contains("has nodes that its root does not lead to"));
  CHECK_THAT(refused("nodes_modes", texts{"LEAF", "LEAF", "LEAF"}), Contains("tree 0 has 3 roots"));
  attributes circle = stump({1, 2}, "target"); // after the root
  circle.set("nodes_modes", texts{"BRANCH_LEQ", "BRANCH_LEQ", "LEAF"});
  circle.set("nodes_truenodeids", int_list{1, 1, 0});
  circle.set("nodes_falsenodeids", int_list{2, 2, 0});
  CHECK_THAT(message("TreeEnsembleRegressor", circle, {x}), Contains("in a circle"));
}

TEST_CASE("nodes of a TreeEnsemble that several roots or nodes lead to are refused", "[ops][ml]") {
  // node 0 leads to node 1, both to leaves
  attributes attrs = attrs_of({{"nodes_modes", tensor::of<uint8_t>({2}, std::vector<uint8_t>{0, 0})},
                               {"nodes_splits", floats({2}, {0, 1})},
                               {"nodes_featureids", int_list{0, 0}},
                               {"nodes_truenodeids", int_list{0, 1}},
                               {"nodes_falsenodeids", int_list{1, 2}},
                               {"nodes_trueleafs", int_list{1, 1}},
                               {"nodes_falseleafs", int_list{0, 1}},
                               {"leaf_targetids", int_list{0, 0, 0}},
                               {"leaf_weights", floats({3}, {5, 6, 7})},
                               {"tree_roots", int_list{0}}});
  const tensor x = floats({3, 1}, {-1, 0.5f, 2});
  CHECK(elements(call("TreeEnsemble", attrs, {x})[0]) == std::vector<double>{5, 6, 7});
  for (const int_list& roots : {int_list{0, 0}, int_list{0, 1}, int_list{1, 1}}) {
    attrs.set("tree_roots", roots);
    CHECK_THAT(message("TreeEnsemble", attrs, {x}), Contains("two roots or nodes lead to node"));
  }
  attrs.set("tree_roots", int_list{0});
  attrs.set("nodes_falseleafs", int_list{0, 0});
  attrs.set("nodes_falsenodeids", int_list{1, 0}); // and back again
  CHECK_THAT(message("TreeEnsemble", attrs, {x}), Contains("two roots or nodes lead to node 0"));
}

TEST_CASE("models whose numbers do not fit are refused", "[ops][ml]") {
  const tensor x = floats({1, 2}, {1, 2});
  const reals three{1, 2, 3};
  CHECK_THAT(message("LinearRegressor", attrs_of({{"coefficients", three}}), {x}),
             Contains("do not give 1 scores of 2"));
  CHECK_THAT(message("LinearClassifier", attrs_of({{"coefficients", three}}), {x}), Contains("must hold labels"));
  CHECK_THAT(message("LinearClassifier",
                     attrs_of({{"coefficients", three}, {"intercepts", three}, {"classlabels_ints", int_list{1, 2}}}),
                     {x}),
             Contains("3 intercepts are not for 2 classes"));
  CHECK_THAT(
      message("SVMRegressor",
              attrs_of(
                  {{"coefficients", three}, {"rho", reals{0}}, {"n_supports", int64_t{5}}, {"support_vectors", three}}),
              {x}),
      Contains("are not 5 vectors"));
  CHECK_THAT(message("SVMRegressor", attrs_of({{"coefficients", three}, {"rho", reals{0}}}), {x}),
             Contains("2 features for vectors of 3"));
  CHECK_THAT(message("Scaler", attrs_of({{"offset", three}}), {x}), Contains("'offset' has 3 elements"));
  CHECK_THAT(message("Normalizer", attrs_of({{"norm", std::string("L3")}}), {x}), Contains("not MAX, L1 or L2"));
  CHECK_THAT(message("LabelEncoder", attrs_of({{"keys_int64s", int_list{1}}, {"values_int64s", int_list{1}}}), {x}),
             Contains("keys of int64 cannot be found among elements of float32"));
  CHECK_THAT(message("LabelEncoder", attrs_of({{"keys_floats", three}, {"values_int64s", int_list{1}}}), {x}),
             Contains("3 keys, but 1 values"));
}

// BatchNormalization that no convolution takes in: a product and a sum with constants, in one chain with the nodes
// around them.
#include "support/catch.hpp"
#include "support/kernel_case.hpp"
#include "support/run_graph.hpp"

#include <cmath>
#include <set>

using namespace troupe;
using namespace troupe::test;

namespace {

/// A batch norm of a Concat, which two nodes read, with the changes that a test makes to it.
struct normed {
  symbolic_shape dims{2, 3, 4, 5}; // of each of the Concat's inputs
  shape given{2, 3, 4, 5};
  bool statistics_given = false, training = false;
  bool running_mean_read = false; // of opset 8, which has no training mode
  float mean_scale = 1;
  dtype type = dtype::float32;

  graph rewritten() const {
    const auto as = [&](const tensor& t) { return type == dtype::float32 ? t : to_type(t, type); };
    graph_builder b;
    if (running_mean_read)
      b.g.opsets[""] = 8;
    const value_id x = b.input("x", dims, type), other = b.input("other", dims, type);
    const value_id cat = b.op("Concat", {x, other}, attrs_of({{"axis", int64_t{1}}}));
    tensor variance = random_tensor({6}, 4);
    for (int64_t i = 0; i < 6; ++i)
      variance.mutable_data<float>()[i] = std::abs(variance.data<float>()[i]) + 0.1f;
    tensor means = random_tensor({6}, 3);
    for (int64_t i = 0; i < 6; ++i)
      means.mutable_data<float>()[i] *= mean_scale;
    const value_id mean = statistics_given ? b.input("mean", {6}, type) : b.constant("mean", as(means));
    const auto outputs =
        b.call("BatchNormalization",
               {cat, b.constant("scale", as(random_tensor({6}, 1))), b.constant("shift", as(random_tensor({6}, 2))),
                mean, b.constant("variance", as(variance))},
               training            ? std::vector<std::string>{"y", "running_mean", "running_variance"}
               : running_mean_read ? std::vector<std::string>{"y", "running_mean"}
                                   : std::vector<std::string>{"y"},
               running_mean_read ? attrs_of({{"epsilon", 1e-3f}})
                                 : attrs_of({{"training_mode", int64_t{training}}, {"epsilon", 1e-3f}}));
    b.output(b.op("Relu", {outputs[0]}));
    b.output(b.op("Abs", {cat}));
    if (running_mean_read)
      b.output(outputs[1]);
    std::vector<tensor> inputs{as(random_tensor(given, 5)), as(random_tensor(given, 6))};
    if (statistics_given)
      inputs.push_back(as(random_tensor({6}, 7)));
    return check_fusion(b.g, inputs, type == dtype::float16 ? 1e-2 : 1e-5);
  }

  bool scales() const {
    const graph g = rewritten();
    const bool gone = count_nodes(g, "BatchNormalization") == 0;
    if (gone)
      CHECK(count_nodes(g, "troupe.Elementwise") == 1); // with the Relu
    return gone;
  }
};

} // namespace

TEST_CASE("a batch norm that no convolution takes in joins the activation behind it", "[rewrite]") {
  CHECK(normed{}.scales());
  CHECK(normed{.dims = {dim::symbol("n"), 3, dim::symbol("h"), 5}}.scales());
  CHECK(normed{.dims = {2, 3}, .given = {2, 3}}.scales());
  CHECK(normed{.dims = {1, 3, 0, 5}, .given = {1, 3, 0, 5}}.scales());
  CHECK(normed{.type = dtype::float64}.scales());
}

TEST_CASE("a batch norm stays if it has no constants of its channels in wide floats", "[rewrite]") {
  CHECK_FALSE(normed{.statistics_given = true}.scales());
  CHECK_FALSE(normed{.training = true}.scales());
  CHECK_FALSE(normed{.running_mean_read = true}.scales());
  CHECK_FALSE(normed{.mean_scale = 1e6f}.scales()); // beyond float16
  CHECK_FALSE(normed{.type = dtype::float16}.scales());
  CHECK_FALSE(normed{.dims = {2, dim::symbol("c"), 4, 5}}.scales());
}

TEST_CASE("batch norms of equal parameters share their constants", "[rewrite]") {
  graph_builder b;
  value_id y = b.input("x", {2, 4, 3});
  const value_id scale = b.constant("scale", random_tensor({4}, 1)), shift = b.constant("shift", random_tensor({4}, 2)),
                 mean = b.constant("mean", random_tensor({4}, 3)),
                 variance = b.constant("variance", floats({4}, {1, 2, 3, 4}));
  for (int i = 0; i < 5; ++i)
    y = b.op("Softmax", {b.op("BatchNormalization", {y, scale, shift, mean, variance})});
  b.output(y);
  const graph g = check_fusion(b.g, {random_tensor({2, 4, 3}, 4)}, 1e-5);
  CHECK(count_nodes(g, "BatchNormalization") == 0);
  std::set<value_id> constants;
  for (const node& n : g.nodes)
    for (const value_id v : n.inputs)
      if (v != no_value && g.values[v].constant)
        constants.insert(v);
  CHECK(constants.size() == 2);
}

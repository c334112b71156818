// BatchNormalization that no convolution takes in: a product and a sum with constants, in one chain with what is around them.
#include "support/catch.hpp"
#include "support/kernel_case.hpp"
#include "support/run_graph.hpp"

#include <cmath>

using namespace troupe;
using namespace troupe::test;

namespace {

/// A batch norm of a Concat, which two nodes read, and what a test changes of it.
struct normed {
  symbolic_shape dims{2, 3, 4, 5}; // of each of the Concat's inputs
  shape given{2, 3, 4, 5};
  bool statistics_given = false, training = false, running_mean_read = false;
  dtype type = dtype::float32;

  graph rewritten() const {
    const auto as = [&](const tensor& t) { return type == dtype::float32 ? t : to_type(t, type); };
    graph_builder b;
    const value_id x = b.input("x", dims, type), other = b.input("other", dims, type);
    const value_id cat = b.op("Concat", {x, other}, attrs_of({{"axis", int64_t{1}}}));
    tensor variance = random_tensor({6}, 4);
    for (int64_t i = 0; i < 6; ++i)
      variance.mutable_data<float>()[i] = std::abs(variance.data<float>()[i]) + 0.1f;
    const value_id mean = statistics_given ? b.input("mean", {6}, type) : b.constant("mean", as(random_tensor({6}, 3)));
    const auto outputs = b.call(
        "BatchNormalization",
        {cat, b.constant("scale", as(random_tensor({6}, 1))), b.constant("shift", as(random_tensor({6}, 2))), mean,
         b.constant("variance", as(variance))},
        training ? std::vector<std::string>{"y", "running_mean", "running_variance"} : std::vector<std::string>{"y"},
        attrs_of({{"training_mode", int64_t{training}}, {"epsilon", 1e-3f}}));
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
  CHECK_FALSE(normed{.training = true, .running_mean_read = true}.scales());
  CHECK_FALSE(normed{.type = dtype::float16}.scales());
  CHECK_FALSE(normed{.dims = {2, dim::symbol("c"), 4, 5}}.scales());
}

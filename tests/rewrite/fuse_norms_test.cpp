// Norms of channels: written as several nodes, and with the activation after them.
#include "support/catch.hpp"
#include "support/kernel_case.hpp"
#include "support/run_graph.hpp"

using namespace troupe;
using namespace troupe::test;

TEST_CASE("group norm written with InstanceNormalization becomes one node", "[rewrite][A4]") {
  graph_builder b;
  const value_id x = b.input("x", {2, 6, 5, 7});
  const value_id grouped = b.op("Reshape", {x, b.integers({0, 3, -1})});
  const std::vector<float> ones(3, 1), zeros(3, 0);
  const value_id unit = b.op("InstanceNormalization", {grouped, b.constant("one", tensor::of<float>({3}, ones)),
                                                       b.constant("zero", tensor::of<float>({3}, zeros))});
  const value_id back = b.op("Reshape", {unit, b.op("Shape", {x})});
  const value_id scaled = b.op("Mul", {back, b.constant("s", random_tensor({6, 1, 1}, 1))});
  b.output(b.op("Add", {scaled, b.constant("b", random_tensor({6, 1, 1}, 2))}));
  const graph fused = check_fusion(b.g, {random_tensor({2, 6, 5, 7}, 3)});
  CHECK(fused.nodes.size() == 1);
  CHECK(count_nodes(fused, "GroupNormalization") == 1);
}

TEST_CASE("Norms of channels take in the activation after them", "[rewrite][A4]") {
  for (const int64_t opset : {18, 21}) {
    graph_builder b(opset);
    const value_id x = b.input("x", {2, 6, dim::symbol("height"), 7});
    attributes groups = attrs_of({{"num_groups", int64_t{2}}});
    const int64_t vectors = opset < 21 ? 2 : 6;
    value_id y =
        b.op("GroupNormalization",
             {x, b.constant("s", random_tensor({vectors}, 1)), b.constant("b", random_tensor({vectors}, 2))}, groups);
    y = b.op("Mul", {y, b.op("Sigmoid", {y})});
    y = b.op("InstanceNormalization",
             {y, b.constant("si", random_tensor({6}, 3)), b.constant("bi", random_tensor({6}, 4))});
    b.output(b.op("Clip", {y, b.scalar(-0.5f), b.scalar(0.25f)}));
    const graph fused = check_fusion(b.g, {random_tensor({2, 6, 5, 7}, 5)});
    CHECK(fused.nodes.size() == 2);
    CHECK(count_nodes(fused, "troupe.GroupNormalization") == 1);
    CHECK(count_nodes(fused, "troupe.InstanceNormalization") == 1);
  }
}

TEST_CASE("A norm of channels that other nodes read too keeps its activation apart", "[rewrite]") {
  for (const bool is_output : {false, true}) {
    graph_builder b;
    const value_id x = b.input("x", {1, 4, 5, 3});
    const value_id y = b.op("InstanceNormalization",
                            {x, b.constant("s", random_tensor({4}, 1)), b.constant("b", random_tensor({4}, 2))});
    const value_id relu = b.op("Relu", {y});
    b.output(is_output ? relu : b.op("Concat", {y, relu}, attrs_of({{"axis", int64_t{1}}})));
    if (is_output)
      b.output(y);
    const graph fused = check_fusion(b.g, {random_tensor({1, 4, 5, 3}, 3)});
    CHECK(count_nodes(fused, "InstanceNormalization") == 1);
    CHECK(count_nodes(fused, "Relu") == 1);
  }
}

TEST_CASE("A float64 norm is fused only with an epsilon that a float32 attribute keeps", "[rewrite]") {
  for (const bool centred : {false, true})
    for (const double epsilon : {1e-6, 0x1p-20}) {
      graph_builder b;
      const auto number = [&](const char* name, double v) {
        return b.constant(name, to_type(tensor::scalar(v), dtype::float64));
      };
      const value_id x = b.input("x", {2, 3, 8}, dtype::float64);
      const attributes last = attrs_of({{"axes", std::vector<int64_t>{-1}}, {"keepdims", int64_t{1}}});
      const value_id centre = centred ? b.op("Sub", {x, b.op("ReduceMean", {x}, last)}) : x;
      const value_id square = b.op("ReduceMean", {b.op("Mul", {centre, centre})}, last);
      const value_id deviation = b.op("Sqrt", {b.op("Add", {square, number("epsilon", epsilon)})});
      const tensor scale = to_type(random_tensor({8}, 1), dtype::float64);
      b.output(b.op("Mul", {b.op("Div", {centre, deviation}), b.constant("scale", scale)}));
      // Elements so small that epsilon is most of the deviation.
      tensor values = to_type(random_tensor({2, 3, 8}, 2), dtype::float64);
      for (int64_t i = 0; i < values.size(); ++i)
        values.mutable_data<double>()[i] *= 1e-4;
      const graph fused = check_fusion(b.g, {values}, 1e-13);
      const size_t norms = count_nodes(fused, "LayerNormalization") + count_nodes(fused, "RMSNormalization");
      CHECK(norms == (epsilon == 1e-6 ? 0 : 1));
    }
}

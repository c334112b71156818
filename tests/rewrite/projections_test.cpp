// Norms and products that become troupe.Projections: as the parts on random data, and only where no other node reads a
// value in between.
#include "ops/composed/projections.hpp"
#include "support/catch.hpp"
#include "support/run_graph.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr int64_t hidden = 24;

/// Rows of a decoder: one or more, not known.
value_id rows_of(graph_builder& b) {
  return b.input("x", {dim(1), dim::symbol("seq"), hidden});
}

tensor rows() {
  return random_tensor({1, 3, hidden}, 1);
}

value_id weights(graph_builder& b, const std::string& name, int64_t k, int64_t n) {
  return b.constant(name, random_tensor({k, n}, static_cast<uint32_t>(n) + name.back()));
}

value_id layer_norm(graph_builder& b, value_id x, bool biased = true) {
  std::vector<value_id> operands{x, b.constant("scale", random_tensor({hidden}, 2))};
  if (biased)
    operands.push_back(b.constant("shift", random_tensor({hidden}, 3)));
  return b.op("LayerNormalization", operands, attrs_of({{"axis", int64_t{2}}, {"epsilon", 1e-3f}}));
}

value_id rms_norm(graph_builder& b, value_id x) {
  return b.op("RMSNormalization", {x, b.constant("scale", random_tensor({hidden}, 2))});
}

/// A product by made-up codes of 4 bits in blocks of 16.
value_id packed_product(graph_builder& b, value_id x, const std::string& name, int64_t k, int64_t n) {
  const int64_t blocks = (k + 15) / 16;
  tensor codes(dtype::uint8, {n, blocks, 8});
  for (int64_t i = 0; i < codes.size(); ++i)
    codes.mutable_data<uint8_t>()[i] = static_cast<uint8_t>(i * 37 + n + name.front());
  b.g.opsets["com.microsoft"] = 1;
  return b.call("MatMulNBits",
                {x, b.constant(name + ".codes", codes), b.constant(name + ".scales", random_tensor({n, blocks}, 4))},
                {name}, attrs_of({{"K", k}, {"N", n}, {"bits", int64_t{4}}, {"block_size", int64_t{16}}}),
                "com.microsoft")[0];
}

const node& projections_in(const graph& g, size_t which = 0) {
  size_t found = 0;
  for (const node& n : g.nodes)
    if (n.op_type == "Projections" && found++ == which)
      return n;
  FAIL("there is no such node of projections");
  return g.nodes[0];
}

graph joined(const graph_builder& b, const std::vector<tensor>& inputs) {
  return check_fusion(b.g, inputs, 1e-3, true);
}

} // namespace

TEST_CASE("queries, keys and values take in the norm before them", "[rewrite][projections]") {
  for (const bool centred : {true, false}) {
    graph_builder b(23);
    const value_id x = rows_of(b), v = centred ? layer_norm(b, x) : rms_norm(b, x);
    for (const auto& [name, columns] : {std::pair{"q", 16}, {"k", 8}, {"v", 9}})
      b.output(b.op("Add",
                    {b.op("MatMul", {v, weights(b, std::string("w") + name, hidden, columns)}),
                     b.constant(std::string("b") + name, random_tensor({columns}, 5))},
                    {}, name));
    const graph g = joined(b, {rows()});
    REQUIRE(g.nodes.size() == 1);
    const node& n = projections_in(g);
    CHECK(n.outputs.size() == 3);
    CHECK(n.attrs.text("norm", "") == (centred ? "LayerNormalization" : "RMSNormalization"));
    CHECK(n.attrs.real("epsilon.norm") == Approx(centred ? 1e-3 : 1e-5));
  }
}

TEST_CASE("one product takes in its norm with bias, activation and residual", "[rewrite][projections]") {
  graph_builder b;
  const value_id x = rows_of(b);
  const value_id h = b.op("Relu", {b.op("MatMul", {layer_norm(b, x, false), weights(b, "w", hidden, 40)})});
  b.output(b.op("Add", {x, b.op("MatMul", {h, weights(b, "back", 40, hidden)})}));
  const value_id y = b.op("MatMul", {layer_norm(b, x), weights(b, "w2", hidden, hidden)});
  b.output(b.op("Add", {y, x}));
  const graph g = joined(b, {rows()});
  CHECK(count_nodes(g, "troupe.Projections") == 2);
  CHECK(count_nodes(g, "troupe.MatMul") == 1); // no norm before it
  CHECK(g.nodes.size() == 3);
}

TEST_CASE("gate and up become one result, with the norm before them or without", "[rewrite][projections]") {
  for (const bool normed : {true, false})
    for (const bool packed : {true, false})
      for (const bool swapped : {true, false}) {
        INFO(normed << packed << swapped);
        graph_builder b(23);
        const value_id x = rows_of(b), v = normed ? rms_norm(b, x) : x;
        const auto product = [&](const std::string& name) {
          return packed ? packed_product(b, v, name, hidden, 32)
                        : b.op("MatMul", {v, weights(b, "w" + name, hidden, 32)});
        };
        const value_id up = swapped ? product("up") : no_value, gate = product("gate");
        const value_id silu = b.op("Mul", {gate, b.op("Sigmoid", {gate})});
        const value_id other = swapped ? up : product("up");
        b.output(b.op("Mul", swapped ? std::vector{other, silu} : std::vector{silu, other}));
        const graph g = joined(b, {rows()});
        REQUIRE(g.nodes.size() == 1);
        const node& n = projections_in(g);
        CHECK(n.outputs.size() == 1);
        CHECK(n.attrs.integer("gated") == 1);
        CHECK(n.attrs.text("activation.0", "") == "Swish");
      }
}

TEST_CASE("packed products take in terms that are added to them, and their activation", "[rewrite][projections]") {
  graph_builder b;
  const value_id x = rows_of(b), h = b.op("Relu", {packed_product(b, x, "wide", hidden, 40)});
  b.output(b.op("Add", {x, packed_product(b, h, "back", 40, hidden)}));
  b.output(packed_product(b, x, "alone", hidden, 17));
  const graph g = joined(b, {rows()});
  CHECK(count_nodes(g, "troupe.Projections") == 2);
  CHECK(count_nodes(g, "com.microsoft.MatMulNBits") == 1);
  CHECK(g.nodes.size() == 3);
}

TEST_CASE("values that other nodes read stay outside projections", "[rewrite][projections]") {
  const auto model = [](auto&& more) {
    graph_builder b;
    const value_id x = rows_of(b), v = layer_norm(b, x);
    const value_id y = b.op("MatMul", {v, weights(b, "w", hidden, 16)}, {}, "y");
    b.output(y);
    more(b, v, y);
    return count_nodes(joined(b, {rows()}), "troupe.Projections");
  };
  CHECK(model([](auto&, value_id, value_id) {}) == 1);
  CHECK(model([](auto& b, value_id v, value_id) { b.output(b.op("Tanh", {v})); }) == 0);
  CHECK(model([](auto& b, value_id v, value_id) { b.output(v); }) == 0);
  CHECK(model([](auto& b, value_id v, value_id) {
          b.output(b.op("MatMul", {v, b.op("Transpose", {v}, attrs_of({{"perm", std::vector<int64_t>{0, 2, 1}}}))}));
        }) == 0);
  CHECK(model([](auto& b, value_id v, value_id) { // the product of the normed rows with a matrix that is given
          b.output(b.op("MatMul", {v, b.op("Abs", {weights(b, "w3", hidden, 8)})}));
        }) == 1);
}

TEST_CASE("an output of a gated product stays an output", "[rewrite][projections]") {
  graph_builder b(23);
  const value_id x = rows_of(b), v = rms_norm(b, x);
  const value_id gate = b.op("MatMul", {v, weights(b, "wgate", hidden, 32)}, {}, "gate");
  const value_id up = b.op("MatMul", {v, weights(b, "wup", hidden, 32)});
  b.output(gate);
  b.output(b.op("Mul", {gate, up}));
  const graph g = joined(b, {rows()});
  CHECK(count_nodes(g, "troupe.Projections") == 1);
  CHECK_FALSE(projections_in(g).attrs.has("gated"));
  CHECK(count_nodes(g, "Mul") == 1);
}

TEST_CASE("products of rows that are known to be many stay as they are", "[rewrite][projections]") {
  for (const int64_t count : {1, 15, 16, 197}) {
    graph_builder b;
    const value_id x = b.input("x", {dim(1), count, hidden});
    b.output(b.op("MatMul", {layer_norm(b, x), weights(b, "w", hidden, 16)}));
    const graph g = joined(b, {random_tensor({1, count, hidden}, 1)});
    CHECK(count_nodes(g, "troupe.Projections") == (count < 16 ? 1 : 0));
  }
}

TEST_CASE("norms that projections do not have stay nodes", "[rewrite][projections]") {
  const auto joins = [](std::vector<value_id> (*operands)(graph_builder&), int64_t axis) {
    graph_builder b;
    const value_id x = rows_of(b);
    std::vector<value_id> all = operands(b);
    all.insert(all.begin(), x);
    const value_id v = b.op("LayerNormalization", all, attrs_of({{"axis", axis}}));
    b.output(b.op("MatMul", {v, weights(b, "w", hidden, 16)}));
    return count_nodes(joined(b, {rows()}), "troupe.Projections") == 1;
  };
  CHECK(joins([](auto& b) { return std::vector{b.constant("s", random_tensor({hidden}, 2))}; }, -1));
  CHECK_FALSE(joins([](auto& b) { return std::vector{b.constant("s", random_tensor({3, hidden}, 2))}; }, 1));
  CHECK_FALSE(joins([](auto& b) { return std::vector{b.constant("s", random_tensor({1}, 2))}; }, -1));
}

TEST_CASE("five products of the same rows are too many for one node", "[rewrite][projections]") {
  for (const int count : {4, 5}) {
    graph_builder b;
    const value_id v = layer_norm(b, rows_of(b));
    for (int i = 0; i < count; ++i)
      b.output(b.op("MatMul", {v, weights(b, "w" + std::to_string(i), hidden, 8 + i)}));
    CHECK(count_nodes(joined(b, {rows()}), "troupe.Projections") == (count == 4 ? 1 : 0));
  }
}

namespace {

/// A decoder whose queries and keys are rotated, with the changes that a test makes to it.
struct decoder {
  dim positions = dim::symbol("seq");
  bool reads_heads = false; // another node reads the queries before they are rotated
  bool from_values = false; // the angles depend on the values
  bool own_angles = false;  // the keys have other angles than the queries
  bool packed = false;

  static constexpr int64_t heads = 4, width = 6;

  /// The same by ONNX's operator.
  graph_builder with_operator(int64_t interleaved) const {
    graph_builder b(23);
    const auto [v, cos, sin] = begin(b, dim::symbol("rows"), width / 2);
    const value_id ids = b.input("ids", {dim(1), positions}, dtype::int64);
    for (const char* name : {"q", "k"})
      b.output(b.op("RotaryEmbedding", {product(b, v, name), cos, sin, ids},
                    attrs_of({{"num_heads", heads}, {"interleaved", interleaved}}), std::string("turned_") + name));
    b.output(product(b, v, "v"));
    return b;
  }

  graph_builder build(bool heads_first) const {
    graph_builder b(23);
    const auto [v, cos, sin] = begin(b, positions, width);
    const value_id values = product(b, v, "v");
    b.output(values);
    const value_id shift = from_values ? b.op("ReduceMax", {values}) : b.scalar(1);
    for (const char* name : {"q", "k"}) {
      const value_id x = product(b, v, name);
      if (reads_heads && *name == 'q')
        b.output(b.op("Relu", {x}));
      const value_id apart = b.op("Reshape", {x, b.integers({1, -1, heads, width})});
      const value_id own = own_angles && *name == 'k' ? b.scalar(2) : shift;
      const auto angle = [&](value_id a) { return b.op("Unsqueeze", {b.op("Mul", {a, own}), b.integers({1})}); };
      const value_id front = b.op("Transpose", {apart}, attrs_of({{"perm", std::vector<int64_t>{0, 2, 1, 3}}}));
      const value_id y = rotary(b, front, angle(cos), angle(sin));
      b.output(heads_first ? y : b.op("Transpose", {y}, attrs_of({{"perm", std::vector<int64_t>{0, 2, 1, 3}}})));
    }
    return b;
  }

private:
  std::array<value_id, 3> begin(graph_builder& b, const dim& rows, int64_t columns) const {
    const value_id x = b.input("x", {dim(1), positions, hidden});
    const bool tables = columns < width;
    const symbolic_shape angles = tables ? symbolic_shape{rows, columns} : symbolic_shape{dim(1), rows, columns};
    const value_id cos = b.input("cos", angles), sin = b.input("sin", angles);
    return {rms_norm(b, x), cos, sin};
  }

  value_id product(graph_builder& b, value_id v, const std::string& name) const {
    return packed ? packed_product(b, v, name, hidden, heads * width)
                  : b.op("MatMul", {v, weights(b, "w" + name, hidden, heads * width)}, {}, name);
  }

  static value_id rotary(graph_builder& b, value_id x, value_id cos, value_id sin) {
    const auto part = [&](int64_t from, int64_t to) {
      return b.op("Slice", {x, b.integers({from}), b.integers({to}), b.integers({3}), b.integers({1})});
    };
    const value_id turned = b.op("Concat", {b.op("Neg", {part(width / 2, INT64_MAX)}), part(0, width / 2)},
                                 attrs_of({{"axis", int64_t{-1}}}));
    return b.op("Add", {b.op("Mul", {x, cos}), b.op("Mul", {turned, sin})});
  }
};

std::vector<int64_t> rotated_heads(const graph& g) {
  return projections_in(g).attrs.integers("rotary_heads", {});
}

std::vector<tensor> decoder_inputs(int64_t positions) {
  return {random_tensor({1, positions, hidden}, 1), random_tensor({1, positions, decoder::width}, 2),
          random_tensor({1, positions, decoder::width}, 3)};
}

} // namespace

TEST_CASE("projections rotate queries and keys", "[rewrite][projections]") {
  for (const bool packed : {false, true})
    for (const bool heads_first : {false, true})
      for (const bool one : {false, true}) {
        INFO(packed << heads_first << one);
        const decoder d{.positions = one ? dim(1) : dim::symbol("seq"), .packed = packed};
        const graph g = joined(d.build(heads_first), decoder_inputs(one ? 1 : 3));
        CHECK(count_nodes(g, "troupe.Rotary") == 0);
        REQUIRE(count_nodes(g, "troupe.Projections") == 1);
        CHECK(rotated_heads(g) == std::vector<int64_t>{0, 4, 4});
        CHECK(projections_in(g).attrs.text("norm", "") == "RMSNormalization");
      }
}

TEST_CASE("projections rotate as ONNX's operator does, by position", "[rewrite][projections]") {
  for (const int64_t interleaved : {0, 1})
    for (const bool packed : {false, true}) {
      const decoder d{.packed = packed};
      const graph g = joined(d.with_operator(interleaved),
                             {random_tensor({1, 3, hidden}, 1), random_tensor({9, 3}, 2), random_tensor({9, 3}, 3),
                              tensor::of<int64_t>({1, 3}, std::vector<int64_t>{8, 0, 5})});
      REQUIRE(g.nodes.size() == 1);
      CHECK(rotated_heads(g) == std::vector<int64_t>{4, 4, 0});
      CHECK(projections_in(g).attrs.integer("interleaved.rotary") == interleaved);
    }
}

TEST_CASE("rotations that projections cannot do stay nodes", "[rewrite][projections]") {
  const auto heads = [](const decoder& d, int64_t positions = 3) {
    const graph g = joined(d.build(true), decoder_inputs(positions));
    const std::vector<int64_t> found = rotated_heads(g);
    CHECK(count_nodes(g, "troupe.Rotary") == static_cast<size_t>(2 - (found.empty() ? 0 : (found[1] + found[2]) / 4)));
    return found;
  };
  CHECK(heads({.reads_heads = true}) == std::vector<int64_t>{0, 0, 4});
  CHECK(heads({.own_angles = true}) == std::vector<int64_t>{0, 4, 0});
  CHECK(heads({.from_values = true}).empty()); // which are projections too
  const graph many = joined(decoder{.positions = 20}.build(true), decoder_inputs(20));
  CHECK(count_nodes(many, "troupe.Projections") == 0);
  CHECK(count_nodes(many, "troupe.Rotary") == 2);
}

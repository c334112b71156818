// Attention that reads its operands where one projection wrote them: which copies go, which stay, and that the result
// is the same.
#include "support/catch.hpp"
#include "support/run_graph.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr int64_t batch = 2, positions = 19, width = 8;

/// A model of one attention. `parts` gives Q, K and V as something of [B, S, heads · width] elements.
struct model {
  graph_builder b;
  int64_t heads = 3, kv_heads = 3;
  dim rows{positions};

  /// x · W + bias, [B, S, columns].
  value_id projection(int64_t columns) {
    const value_id x = b.input("x", {batch, rows, 12});
    const value_id product = b.op("MatMul", {x, b.constant("w", random_tensor({12, columns}, 1))});
    return b.op("Add", {product, b.constant("bias", random_tensor({columns}, 2))});
  }

  value_id view(value_id x, std::vector<int64_t> dims) { return b.op("Reshape", {x, b.integers(dims)}); }
  value_id transpose(value_id x, std::vector<int64_t> perm) {
    return b.op("Transpose", {x}, attrs_of({{"perm", std::move(perm)}}));
  }
  value_id heads_first(value_id x, int64_t count) {
    return transpose(view(x, {batch, -1, count, width}), {0, 2, 1, 3});
  }
  value_id gather(value_id x, int64_t axis, int64_t i) {
    return b.op("Gather", {x, b.integer(i)}, attrs_of({{"axis", axis}}));
  }
  value_id slice(value_id x, int64_t begin, int64_t end, int64_t step = 1) {
    return b.op("Slice", {x, b.integers({begin}), b.integers({end}), b.integers({-1}), b.integers({step})});
  }
  std::vector<value_id> split(value_id x, std::vector<int64_t> sizes) {
    return b.call("Split", {x, b.integers(sizes)}, {"q", "k", "v"}, attrs_of({{"axis", int64_t{-1}}}));
  }

  /// For operands [B, heads, S, width]; adds the output.
  void attend(value_id q, value_id k, value_id v) {
    const auto repeated = [&](value_id x) {
      if (heads == kv_heads)
        return x;
      const value_id five = view(x, {batch, kv_heads, 1, positions, width});
      const std::vector<int64_t> dims{batch, kv_heads, heads / kv_heads, positions, width};
      return view(b.op("Expand", {five, b.integers(dims)}), {batch, heads, positions, width});
    };
    const value_id scores = b.op("MatMul", {q, transpose(repeated(k), {0, 1, 3, 2})});
    const value_id weights = b.op("Softmax", {scores}, attrs_of({{"axis", int64_t{-1}}}));
    b.output(transpose(b.op("MatMul", {weights, repeated(v)}), {0, 2, 1, 3}));
  }
  void attend(const std::vector<value_id>& parts) {
    attend(heads_first(parts.at(0), heads), heads_first(parts.at(1), kv_heads), heads_first(parts.at(2), kv_heads));
  }

  graph fused() { return check_fusion(b.g, {random_tensor({batch, positions, 12}, 3)}); }
};

size_t copies(const graph& g) {
  return count_nodes(g, "Gather") + count_nodes(g, "Slice") + count_nodes(g, "Split") + count_nodes(g, "Transpose");
}

using ranges = std::vector<std::vector<int64_t>>;

/// The heads that the one attention reads of each operand, none for whole ones.
ranges heads_read_by(const graph& g) {
  REQUIRE(count_nodes(g, "troupe.Attention") == 1);
  ranges found;
  for (const node& n : g.nodes)
    if (n.op_type == "Attention")
      for (const char* name : {"q_heads", "k_heads", "v_heads"})
        found.push_back(n.attrs.integers(name, {}));
  return found;
}

/// All three operands are one value of `total` heads, and nothing is copied.
void check_packed(const graph& g, const ranges& wanted, int64_t total) {
  CHECK(heads_read_by(g) == wanted);
  CHECK(copies(g) == 0);
  for (const node& n : g.nodes)
    if (n.op_type == "Attention") {
      CHECK((n.inputs[0] == n.inputs[1] && n.inputs[0] == n.inputs[2]));
      CHECK((*g.values[n.inputs[0]].dims)[2].is(total));
    }
}

const ranges thirds{{0, 3}, {3, 3}, {6, 3}};

} // namespace

TEST_CASE("attention reads parts of a projection that Gathers took out", "[rewrite]") {
  for (const auto& order : {std::array<int64_t, 3>{0, 1, 2}, {-1, 0, 1}}) {
    model m;
    const value_id view = m.view(m.projection(72), {batch, positions, 3, 24});
    m.attend({m.gather(view, 2, order[0]), m.gather(view, -2, order[1]), m.gather(view, 2, order[2])});
    check_packed(m.fused(), order[0] == 0 ? thirds : ranges{{6, 3}, {0, 3}, {3, 3}}, 9);
  }
}

TEST_CASE("attention reads parts of a projection that a transpose brought forward", "[rewrite]") {
  model m;
  const value_id turned = m.transpose(m.view(m.projection(72), {batch, positions, 3, 3, width}), {2, 0, 3, 1, 4});
  m.attend(m.gather(turned, 0, 0), m.gather(turned, 0, 1), m.gather(turned, 0, 2));
  check_packed(m.fused(), thirds, 9);
}

TEST_CASE("attention reads parts of a projection that a Split or Slices took out", "[rewrite]") {
  for (const bool symbolic : {false, true})
    for (const bool slices : {false, true}) {
      model m;
      if (symbolic)
        m.rows = dim::symbol("seq");
      const value_id all = m.projection(72);
      m.attend(slices ? std::vector{m.slice(all, 0, 24), m.slice(all, 24, -24), m.slice(all, 48, INT64_MAX)}
                      : m.split(all, {24, 24, 24}));
      check_packed(m.fused(), thirds, 9);
    }
}

TEST_CASE("attention reads parts whose heads are shared", "[rewrite]") {
  model m;
  m.heads = 4;
  m.kv_heads = 2;
  m.attend(m.split(m.projection(64), {32, 16, 16}));
  check_packed(m.fused(), {{0, 4}, {4, 2}, {6, 2}}, 8);
}

TEST_CASE("attention reads one operand of a larger value beside whole ones", "[rewrite]") {
  model m;
  const value_id all = m.projection(72);
  const value_id q = m.b.op("Tanh", {m.slice(all, 0, 24)}), k = m.b.op("Exp", {m.slice(all, 24, 48)});
  m.attend({q, k, m.slice(all, 48, 72)});
  const graph g = m.fused();
  CHECK(heads_read_by(g) == ranges{{}, {}, {6, 3}});
  CHECK(count_nodes(g, "Slice") == 2);
}

TEST_CASE("attention does not read parts that are copied all the same", "[rewrite]") {
  enum class reader { another, output, of_the_split };
  for (const reader who : {reader::another, reader::output, reader::of_the_split}) {
    INFO(static_cast<int>(who));
    model m;
    const value_id all = m.projection(72);
    if (who == reader::of_the_split) {
      const std::vector<value_id> parts = m.split(all, {24, 24, 24});
      m.attend({parts[0], m.b.op("Tanh", {parts[1]}), parts[2]});
    } else {
      const std::array q{m.slice(all, 0, 24), m.slice(all, 24, 48), m.slice(all, 48, 72)};
      m.attend({q[0], q[1], q[2]});
      for (const value_id part : q)
        m.b.output(who == reader::output ? part : m.b.op("Tanh", {part}));
    }
    const graph g = m.fused();
    CHECK(heads_read_by(g) == ranges{{}, {}, {}});
    CHECK(copies(g) == (who == reader::of_the_split ? 1 : 3));
  }
}

TEST_CASE("attention does not read parts that are not whole heads", "[rewrite]") {
  enum class odd { offset, rest, step, inside_heads };
  for (const odd what : {odd::offset, odd::rest, odd::step, odd::inside_heads}) {
    INFO(static_cast<int>(what));
    model m;
    const auto parts = [&]() -> std::vector<value_id> {
      if (what == odd::offset) { // 80 columns are whole heads
        const value_id all = m.projection(80);
        return {m.slice(all, 4, 28), m.slice(all, 28, 52), m.slice(all, 52, 76)};
      }
      if (what == odd::rest) {
        const value_id all = m.projection(76);
        return {m.slice(all, 0, 24), m.slice(all, 24, 48), m.slice(all, 48, 72)};
      }
      if (what == odd::step) {
        const value_id all = m.projection(144);
        return {m.slice(all, 0, 48, 2), m.slice(all, 48, 96, 2), m.slice(all, 96, 144, 2)};
      }
      const value_id all = m.view(m.projection(72), {batch, positions, 3, 3, width});
      return {m.gather(all, 3, 0), m.gather(all, 3, 1), m.gather(all, 3, 2)};
    };
    m.attend(parts());
    const graph g = m.fused();
    CHECK(heads_read_by(g) == ranges{{}, {}, {}});
    CHECK(copies(g) == 3);
  }
}

TEST_CASE("attention beside a cache reads its operands as they are", "[rewrite]") {
  model m;
  const std::vector<value_id> parts = m.split(m.projection(72), {24, 24, 24});
  const auto joined = [&](const char* name, value_id x) {
    const value_id past = m.b.input(name, {batch, 3, dim::symbol("past"), width});
    return m.b.op("Concat", {past, m.heads_first(x, 3)}, attrs_of({{"axis", int64_t{2}}}));
  };
  m.attend(m.heads_first(parts[0], 3), joined("ck", parts[1]), joined("cv", parts[2]));
  const graph g = check_fusion(m.b.g, {random_tensor({batch, positions, 12}, 3), random_tensor({batch, 3, 5, width}, 4),
                                       random_tensor({batch, 3, 5, width}, 5)});
  CHECK(heads_read_by(g) == ranges{{}, {}, {}});
  CHECK(count_nodes(g, "Split") == 1);
}

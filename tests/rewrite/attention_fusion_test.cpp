// Attention as exporters write it, and its caches: fused = unfused on random data, and the pattern is found.
#include "support/catch.hpp"
#include "support/kernel_case.hpp"
#include "support/run_graph.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

const std::vector<int64_t> swap_heads{0, 2, 1, 3};

value_id transpose(graph_builder& b, value_id x, std::vector<int64_t> perm) {
  return b.op("Transpose", {x}, attrs_of({{"perm", std::move(perm)}}));
}

} // namespace

TEST_CASE("attention as BERT's exporter writes it", "[rewrite][A4]") {
  graph_builder b;
  const dim n = dim::symbol("batch"), s = dim::symbol("seq");
  const value_id q = b.input("q", {n, s, 3, 8}), k = b.input("k", {n, s, 3, 8}), v = b.input("v", {n, s, 3, 8}),
                 mask = b.input("mask", {n, 1, 1, s});
  const float root = std::sqrt(std::sqrt(1 / 8.f));
  const value_id qs = b.op("Mul", {transpose(b, q, swap_heads), b.scalar(root)});
  const value_id kt = b.op("Mul", {transpose(b, k, {0, 2, 3, 1}), b.scalar(root)});
  const value_id p =
      b.op("Softmax", {b.op("Add", {b.op("MatMul", {qs, kt}), mask})}, attrs_of({{"axis", int64_t{-1}}}));
  b.output(transpose(b, b.op("MatMul", {p, transpose(b, v, swap_heads)}), swap_heads));
  const graph fused = check_fusion(b.g, {random_tensor({2, 5, 3, 8}, 1), random_tensor({2, 5, 3, 8}, 2),
                                         random_tensor({2, 5, 3, 8}, 3), random_tensor({2, 1, 1, 5}, 4)});
  REQUIRE(fused.nodes.size() == 1);
  CHECK(count_nodes(fused, "troupe.Attention") == 1);
  CHECK(fused.nodes[0].attrs.real("scale") == Approx(1 / std::sqrt(8.f)));
}

TEST_CASE("float64 attention is fused only with a scale that a float32 attribute keeps", "[rewrite]") {
  for (const double scale : {1 / std::sqrt(8.0), 0.25}) {
    graph_builder b;
    const auto input = [&](const char* name) { return b.input(name, {1, 2, 5, 8}, dtype::float64); };
    const value_id q = input("q"), k = input("k"), v = input("v");
    const value_id scores = b.op("MatMul", {q, transpose(b, k, {0, 1, 3, 2})});
    const value_id scaled = b.op("Mul", {scores, b.constant("scale", to_type(tensor::scalar(scale), dtype::float64))});
    b.output(b.op("MatMul", {b.op("Softmax", {scaled}, attrs_of({{"axis", int64_t{-1}}})), v}));
    std::vector<tensor> inputs;
    for (uint32_t seed = 1; seed <= 3; ++seed)
      inputs.push_back(to_type(random_tensor({1, 2, 5, 8}, seed), dtype::float64));
    CHECK(count_nodes(check_fusion(b.g, inputs, 1e-13), "troupe.Attention") == (scale == 0.25 ? 1 : 0));
  }
}

namespace {

/// The one attention reads past keys from `cache` itself, and waits for neither Concat nor Transpose.
void check_reads_cache(const graph& fused, const std::string& cache) {
  REQUIRE(count_nodes(fused, "troupe.Attention") == 1);
  for (const node& n : fused.nodes)
    if (n.op_type == "Attention") {
      REQUIRE(n.inputs.size() == 6);
      CHECK(fused.values[n.inputs[4]].name == cache);
      CHECK(n.attrs.text("kv_layout", "bhsd") == "bshd");
    }
}

} // namespace

TEST_CASE("grouped attention with a cache and rotary embedding as Llama's exporter writes it", "[rewrite][A4]") {
  graph_builder b;
  const dim s = dim::symbol("seq"), past = dim::symbol("past");
  const int64_t H = 4, G = 2, D = 8;
  const value_id q = b.input("q", {1, s, H, D}), k = b.input("k", {1, s, G, D}), v = b.input("v", {1, s, G, D}),
                 cache_k = b.input("ck", {1, G, past, D}), cache_v = b.input("cv", {1, G, past, D}),
                 cos = b.input("cos", {1, s, D}), sin = b.input("sin", {1, s, D}),
                 mask = b.input("mask", {1, 1, s, dim::symbol("total")});
  const auto rotary = [&](value_id x) {
    const auto half = [&](int64_t from, int64_t to) {
      return b.op("Slice", {x, b.integers({from}), b.integers({to}), b.integers({3}), b.integers({1})});
    };
    const value_id turned =
        b.op("Concat", {b.op("Neg", {half(D / 2, INT64_MAX)}), half(0, D / 2)}, attrs_of({{"axis", int64_t{-1}}}));
    const value_id c = b.op("Unsqueeze", {cos, b.integers({1})}), d = b.op("Unsqueeze", {sin, b.integers({1})});
    return b.op("Add", {b.op("Mul", {x, c}), b.op("Mul", {turned, d})});
  };
  const auto join = [&](value_id cache, value_id x, const std::string& name) {
    return b.op("Concat", {cache, x}, attrs_of({{"axis", int64_t{-2}}}), name);
  };
  const value_id keys = join(cache_k, rotary(transpose(b, k, swap_heads)), "present_k");
  const value_id values = join(cache_v, transpose(b, v, swap_heads), "present_v");
  b.output(keys);
  b.output(values);
  const auto repeat = [&](value_id x) {
    const value_id five = b.op("Unsqueeze", {x, b.integers({2})});
    const value_id shape = b.op("Shape", {x});
    const auto part = [&](int64_t from, int64_t to) {
      return b.op("Slice", {shape, b.integers({from}), b.integers({to}), b.integers({0})});
    };
    const value_id wide =
        b.op("Concat", {part(0, 2), b.integers({H / G}), part(2, 4)}, attrs_of({{"axis", int64_t{0}}}));
    const value_id flat = b.op("Concat", {part(0, 1), b.integers({H}), part(2, 4)}, attrs_of({{"axis", int64_t{0}}}));
    return b.op("Reshape", {b.op("Expand", {five, wide}), flat});
  };
  const value_id scores =
      b.op("MatMul", {rotary(transpose(b, q, swap_heads)), transpose(b, repeat(keys), {0, 1, 3, 2})});
  const value_id p =
      b.op("Softmax", {b.op("Add", {b.op("Mul", {scores, b.scalar(0.4f)}), mask})}, attrs_of({{"axis", int64_t{-1}}}));
  b.output(transpose(b, b.op("MatMul", {p, repeat(values)}), swap_heads));
  const graph fused =
      check_fusion(b.g, {random_tensor({1, 3, H, D}, 1), random_tensor({1, 3, G, D}, 2), random_tensor({1, 3, G, D}, 3),
                         random_tensor({1, G, 5, D}, 4), random_tensor({1, G, 5, D}, 5), random_tensor({1, 3, D}, 6),
                         random_tensor({1, 3, D}, 7), random_tensor({1, 1, 3, 8}, 8)});
  check_reads_cache(fused, "ck");
  CHECK(count_nodes(fused, "troupe.Rotary") == 2);
  CHECK(count_nodes(fused, "troupe.Append") == 2); // which bring the new rows to the caches' order
  CHECK(count_nodes(fused, "Transpose") + count_nodes(fused, "Expand") == 0);
  CHECK(fused.nodes.size() == 5);
}

namespace {

/// Other nodes beside a model's cache: readers of the past, of the present, or a past that is computed.
enum class beside_cache : uint8_t { nothing, reads_past, reads_present, makes_past };

/// Attention over cached keys and values, whose presents are outputs.
graph cached_attention(beside_cache what) {
  graph_builder b;
  const dim s = dim::symbol("seq"), past = dim::symbol("past");
  const value_id q = b.input("q", {1, 2, s, 8}), k = b.input("k", {1, 2, s, 8}), v = b.input("v", {1, 2, s, 8}),
                 given = b.input("ck", {1, 2, past, 8}), cache_v = b.input("cv", {1, 2, past, 8});
  const value_id cache_k = what == beside_cache::makes_past ? b.op("Softmax", {given}) : given;
  const auto join = [&](value_id cache, value_id x, const std::string& name) {
    return b.op("Concat", {cache, x}, attrs_of({{"axis", int64_t{2}}}), name);
  };
  const value_id keys = join(cache_k, k, "present_k"), values = join(cache_v, v, "present_v");
  const value_id p =
      b.op("Softmax", {b.op("MatMul", {q, transpose(b, keys, {0, 1, 3, 2})})}, attrs_of({{"axis", int64_t{-1}}}));
  b.g.outputs = {keys, values, b.op("MatMul", {p, values}, {}, "y")};
  const auto beside = [&](value_id key, value_id value) {
    b.output(b.op("ReduceMean", {key}, {}, "mean_k"));
    b.output(b.op("ReduceMean", {value}, {}, "mean_v"));
  };
  if (what == beside_cache::reads_past)
    beside(cache_k, cache_v);
  if (what == beside_cache::reads_present)
    beside(keys, values);
  return b.g;
}

} // namespace

TEST_CASE("keys and values that are joined for the next step alone are appended to their cache", "[rewrite][A4]") {
  using enum beside_cache;
  for (const auto& [what, appends] :
       std::map<beside_cache, size_t>{{nothing, 2}, {reads_past, 0}, {reads_present, 0}, {makes_past, 1}}) {
    INFO(static_cast<int>(what));
    const graph fused =
        check_fusion(cached_attention(what),
                     {random_tensor({1, 2, 3, 8}, 1), random_tensor({1, 2, 3, 8}, 2), random_tensor({1, 2, 3, 8}, 3),
                      random_tensor({1, 2, 5, 8}, 4), random_tensor({1, 2, 5, 8}, 5)});
    CHECK(count_nodes(fused, "troupe.Append") == appends);
    CHECK(count_nodes(fused, "Concat") == 2 - appends);
  }
}

namespace {

/// The same for ONNX's Attention with a cache.
enum class beside_operator : uint8_t { nothing, reads_past, reads_present, makes_past, wants_scores, odd_width };

/// Operands of attention with caches, [1, 2, past, width], whose results are called y, present_k and present_v.
struct cached_operands {
  graph_builder b{23};
  int64_t width;
  std::vector<tensor> given; // by input
  value_id past_k, past_v;

  explicit cached_operands(int64_t width_of_heads = 8)
      : width(width_of_heads), past_k(cache("past_k")), past_v(cache("past_v")) {}

  value_id cache(const std::string& name) {
    given.push_back(random_tensor({1, 2, 5, width}, 20 + static_cast<uint32_t>(given.size())));
    return b.input(name, {1, 2, dim::symbol("past"), width});
  }

  value_id rows(const std::string& name, int64_t heads, bool flat = true) {
    given.push_back(random_tensor(flat ? shape{1, 3, heads * width} : shape{1, heads, 3, width},
                                  1 + static_cast<uint32_t>(given.size())));
    const dim s = dim::symbol("seq");
    return b.input(name, flat ? symbolic_shape{1, s, heads * width} : symbolic_shape{1, heads, s, width});
  }

  std::vector<value_id> call(const std::string& type, std::vector<value_id> inputs, const attributes& attrs,
                             const std::string& domain = "") {
    return b.g.outputs = b.call(type, std::move(inputs), {"y", "present_k", "present_v"}, attrs, domain);
  }
};

graph by_operator(bool flat, beside_operator what) {
  using enum beside_operator;
  cached_operands c(what == odd_width ? 12 : 8);
  attributes attrs = attrs_of({{"is_causal", int64_t{1}}});
  if (flat) {
    attrs.set("q_num_heads", int64_t{4});
    attrs.set("kv_num_heads", int64_t{2});
  }
  const value_id q = c.rows("q", 4, flat), k = c.rows("k", 2, flat), v = c.rows("v", 2, flat);
  const value_id past_v = what == makes_past ? c.b.op("Neg", {c.past_v}) : c.past_v;
  const auto made = c.call("Attention", {q, k, v, no_value, c.past_k, past_v}, attrs);
  if (what == wants_scores) {
    c.b.g.nodes.back().outputs.push_back(c.b.g.add_value({.name = "scores"}));
    c.b.output(c.b.g.nodes.back().outputs.back());
  }
  if (what == reads_past)
    c.b.output(c.b.op("Relu", {c.past_v}));
  if (what == reads_present)
    c.b.output(c.b.op("Relu", {made[2]}));
  return check_fusion(c.b.g, c.given);
}

} // namespace

TEST_CASE("present keys and values of ONNX's Attention are appended to its caches", "[rewrite][A4]") {
  using enum beside_operator;
  for (const bool flat : {false, true})
    for (const beside_operator what : {nothing, reads_past, reads_present, makes_past, wants_scores, odd_width}) {
      INFO(flat << static_cast<int>(what));
      const graph fused = by_operator(flat, what);
      CHECK(count_nodes(fused, "troupe.Append") == (what == nothing ? 2 : 0));
      CHECK(count_nodes(fused, "Attention") == 1);
      for (const node& n : fused.nodes)
        if (n.op_type == "Attention")
          CHECK(n.outputs.size() == (what == nothing ? 1 : what == wants_scores ? 4 : 3));
    }
}

TEST_CASE("so are those of com.microsoft's attention", "[rewrite][A4]") {
  const bool grouped = GENERATE(false, true);
  cached_operands c;
  c.b.g.opsets["com.microsoft"] = 1;
  const value_id q = c.rows("q", grouped ? 4 : 2), k = c.rows("k", 2), v = c.rows("v", 2);
  if (grouped) {
    const auto extent = [&](value_id of, int64_t axis) {
      return c.b.op("Shape", {of}, attrs_of({{"start", axis}, {"end", axis + 1}}));
    };
    const value_id lengths = c.b.input("lengths", {1}, dtype::int32),
                   sum = c.b.op("Add", {extent(c.past_k, 2), extent(k, 1)}),
                   total = c.b.op("Cast", {sum}, attrs_of({{"to", int64_t{6}}})); // int32
    c.given.push_back(tensor::of<int32_t>({1}, std::vector<int32_t>{7}));
    c.call("GroupQueryAttention", {q, k, v, c.past_k, c.past_v, lengths, total},
           attrs_of({{"num_heads", int64_t{4}}, {"kv_num_heads", int64_t{2}}}), "com.microsoft");
  } else {
    c.call("MultiHeadAttention", {q, k, v, no_value, no_value, no_value, c.past_k, c.past_v},
           attrs_of({{"num_heads", int64_t{2}}}), "com.microsoft");
  }
  const graph fused = check_fusion(c.b.g, c.given);
  CHECK(count_nodes(fused, "troupe.Append") == 2);
  CHECK(count_nodes(fused, "Attention") == 1);
}

// Operands that decide shapes and are computed, from dims by arithmetic that symbols cannot follow or from data. The
// oracle is the same model with a constant in the operand's place.
#include "support/bound_values.hpp"

#include <cmath>
#include <functional>
#include <numeric>

using namespace troupe;
using namespace troupe::test;

namespace {

/// Makes one int64, between 1 and 3, of the graph's input `d` of shape [1, n], which holds 0, 1 … n − 1 modulo 3.
struct operand_source {
  const char* name;
  std::function<value_id(graph_builder&, value_id d)> make;
  std::function<int64_t(int64_t n)> expected;
};

value_id length_of(graph_builder& b, value_id d) {
  return b.op("Slice", {b.op("Shape", {d}), b.integers({1}), b.integers({2})});
}

value_id cast(graph_builder& b, value_id v, dtype to) {
  return b.op("Cast", {v}, attrs_of({{"to", static_cast<int64_t>(to)}}));
}

value_id clipped(graph_builder& b, value_id v) {
  return b.op("Clip", {v, b.integer(1), b.integer(3)});
}

const std::vector<operand_source> sources{
    {"a quarter of a dim, rounded up, in floats",
     [](graph_builder& b, value_id d) {
       const value_id quarter = b.op("Mul", {cast(b, length_of(b, d), dtype::float32), b.scalar(0.25F)});
       return clipped(b, cast(b, b.op("Ceil", {quarter}), dtype::int64));
     },
     [](int64_t n) { return std::clamp<int64_t>((n + 3) / 4, 1, 3); }},
    {"the root of a dim",
     [](graph_builder& b, value_id d) {
       return clipped(b, cast(b, b.op("Sqrt", {cast(b, length_of(b, d), dtype::float32)}), dtype::int64));
     },
     [](int64_t n) { return std::clamp<int64_t>(static_cast<int64_t>(std::sqrt(n)), 1, 3); }},
    {"a dim, clipped", [](graph_builder& b, value_id d) { return clipped(b, length_of(b, d)); },
     [](int64_t n) { return std::clamp<int64_t>(n, 1, 3); }},
    {"where the largest element is",
     [](graph_builder& b, value_id d) {
       const value_id at = b.op("ArgMax", {d}, attrs_of({{"axis", int64_t{1}}, {"keepdims", int64_t{0}}}));
       return clipped(b, b.op("Add", {at, b.integer(1)}));
     },
     [](int64_t n) { return std::min<int64_t>(n, 3); }},
    {"how many elements are not zero",
     [](graph_builder& b, value_id d) { return clipped(b, length_of(b, b.op("NonZero", {d}))); },
     [](int64_t n) { return std::clamp<int64_t>(n - (n + 2) / 3, 1, 3); }},
};

/// Reads `k` as an operand that decides shapes; `x` has shape [8, 4].
struct operand_sink {
  const char* name;
  std::function<value_id(graph_builder&, value_id x, value_id k)> use;
};

value_id both(graph_builder& b, value_id first, value_id second) {
  return b.op("Concat", {first, second}, attrs_of({{"axis", int64_t{0}}}));
}

const std::vector<operand_sink> sinks{
    {"Slice, start",
     [](auto& b, auto x, auto k) {
       return b.op("Slice", {x, k, b.integers({100}), b.integers({0})});
     }},
    {"Slice, end, then more",
     [](auto& b, auto x, auto k) {
       const value_id rows = b.op("Relu", {b.op("Slice", {x, b.integers({0}), k, b.integers({0})})});
       return b.op("Reshape", {b.op("Add", {rows, rows}), both(b, b.integers({4}), k)});
     }},
    {"Slice, axis and step",
     [](auto& b, auto x, auto k) {
       const value_id zero = b.op("Sub", {k, k}), one = b.op("Add", {zero, b.integers({1})});
       return b.op("Slice", {x, b.integers({1}), b.integers({3}), zero, one});
     }},
    {"TopK",
     [](auto& b, auto x, auto k) {
       return b.call("TopK", {x, k}, {"top", "at"})[0];
     }},
    {"Tile",
     [](auto& b, auto x, auto k) {
       return b.op("Tile", {x, both(b, k, b.integers({1}))});
     }},
    {"Expand",
     [](auto& b, auto x, auto k) {
       return b.op("Expand", {x, both(b, k, b.integers({8, 4}))});
     }},
    {"Pad",
     [](auto& b, auto x, auto k) {
       return b.op("Pad", {x, both(b, both(b, k, k), both(b, k, k))});
     }},
    {"Resize, sizes",
     [](auto& b, auto x, auto k) {
       return b.op("Resize", {x, no_value, no_value, both(b, b.integers({8}), k)});
     }},
    {"Resize, scales",
     [](auto& b, auto x, auto k) {
       return b.op("Resize", {x, no_value, cast(b, both(b, b.integers({1}), k), dtype::float32)});
     }},
    {"ConstantOfShape, then a product",
     [](auto& b, auto x, auto k) {
       return b.op("MatMul", {b.op("ConstantOfShape", {both(b, k, b.integers({8}))}), x});
     }},
    {"Split",
     [](auto& b, auto x, auto k) {
       const value_id rest = b.op("Sub", {b.integers({8}), k});
       return b.call("Split", {x, both(b, k, rest)}, {"left", "right"}, attrs_of({{"axis", int64_t{0}}}))[1];
     }},
    {"CenterCropPad",
     [](auto& b, auto x, auto k) {
       return b.op("CenterCropPad", {x, k}, attrs_of({{"axes", std::vector<int64_t>{0}}}));
     }},
    {"ReduceSum, axes",
     [](auto& b, auto x, auto k) {
       return b.op("ReduceSum", {x, b.op("Sub", {k, k})});
     }},
    {"Unsqueeze",
     [](auto& b, auto x, auto k) {
       return b.op("Unsqueeze", {x, b.op("Sub", {k, k})});
     }},
};

tensor counting(int64_t n) {
  std::vector<float> values;
  for (int64_t i = 0; i < n; ++i)
    values.push_back(static_cast<float>(i % 3));
  return floats({1, n}, values);
}

/// Runs the sink's model with `k` as a constant.
tensor run_constant(engine& e, const operand_sink& sink, const tensor& x, int64_t k) {
  graph_builder b(18);
  const value_id in = b.input("x", {8, 4});
  const value_id out = sink.use(b, in, b.integers({k}));
  b.output(b.op("Identity", {out}, {}, "y"));
  return e.load(b.g).run({{"x", x}}).outputs.at("y");
}

void check_equal(const tensor& found, const tensor& expected) {
  REQUIRE(found.dims() == expected.dims());
  CHECK(values_of(found) == values_of(expected));
}

void check_computed(const engine_options& devices, const session_options& how) {
  engine e(devices);
  const tensor x = random_tensor({8, 4}, 7);
  for (const operand_source& source : sources)
    for (const operand_sink& sink : sinks) {
      INFO(source.name << " -> " << sink.name);
      graph_builder b(18);
      const value_id in = b.input("x", {8, 4}), d = b.input("d", {1, dim::symbol("n")});
      const value_id out = sink.use(b, in, source.make(b, d));
      b.output(b.op("Identity", {out}, {}, "y"));
      const session s = e.load(b.g, how);
      for (const int64_t n : {1, 9, 4, 9})
        check_equal(s.run({{"x", x}, {"d", counting(n)}}).outputs.at("y"),
                    run_constant(e, sink, x, source.expected(n)));
    }
}

/// x[start:end] on axis 0.
value_id slice_of(graph_builder& b, value_id x, const std::pair<int64_t, int64_t>& range) {
  return b.op("Slice", {x, b.integers({range.first}), b.integers({range.second})});
}

/// First index and number of elements of NumPy's [start:end] of `n` elements.
std::pair<int64_t, int64_t> numpy_slice(int64_t n, int64_t start, int64_t end) {
  const auto clamped = [n](int64_t bound) { return std::clamp<int64_t>(bound < 0 ? bound + n : bound, 0, n); };
  return {clamped(start), std::max<int64_t>(clamped(end) - clamped(start), 0)};
}

} // namespace

TEST_CASE("operands that decide shapes may be computed", "[actors][computed_shapes]") {
  check_computed({.devices = {"cpu"}}, {});
  check_computed({.devices = {"cpu*2"}}, {.policy = placement_policy::round_robin, .fuse = false});
}

TEST_CASE("a model for which dims decide shapes runs with more dims than are kept", "[actors][computed_shapes]") {
  engine e({.devices = {"cpu"}});
  graph_builder b(18);
  const value_id x = b.input("x", {1, dim::symbol("n")});
  const value_id half = b.op("Floor", {b.op("Mul", {cast(b, length_of(b, x), dtype::float32), b.scalar(0.5F)})});
  b.output(b.op("Slice", {x, b.integers({0}), cast(b, half, dtype::int64), b.integers({1})}, {}, "y"));
  const session s = e.load(b.g);
  for (int64_t n = 2; n < 16; ++n)
    check_equal(s.run({{"x", counting(n)}}).outputs.at("y"), counting(n / 2));
  check_equal(s.run({{"x", counting(3)}}).outputs.at("y"), counting(1));
}

TEST_CASE("rules that need numbers get those of a run", "[actors][computed_shapes]") {
  engine e({.devices = {"cpu"}});
  graph_builder b(18);
  const value_id x = b.input("x", {dim::symbol("n"), dim::symbol("m")});
  b.output(b.op("Squeeze", {x}, {}, "y"));
  const session s = e.load(b.g);
  CHECK(s.run({{"x", floats({1, 3}, {1, 2, 3})}}).outputs.at("y").dims() == shape{3});
  CHECK(s.run({{"x", floats({3, 1}, {1, 2, 3})}}).outputs.at("y").dims() == shape{3});
  CHECK(s.run({{"x", floats({1, 1}, {1})}}).outputs.at("y").dims().empty());
}

TEST_CASE("a slice in a loop may begin where the iteration computes", "[actors][computed_shapes]") {
  engine e({.devices = {"cpu"}});
  graph_builder b(18);
  const value_id x = b.input("x", {8, dim::symbol("m")});
  const value_id sum = add_loop(
      b, "loop", b.integer(3), b.constant("go", tensor::scalar(true)), b.constant("zero", floats({4}, {0, 0, 0, 0})),
      [&](body_builder& body, value_id, value_id go, value_id carried) {
        const value_id rows = body.capture(x);
        const value_id at = body.op("ArgMax", {rows}, attrs_of({{"axis", int64_t{0}}, {"keepdims", int64_t{0}}}));
        const value_id start = body.op("Slice", {at, body.integers({0}), body.integers({1})});
        const value_id row = body.op("Slice", {rows, start, body.op("Add", {start, body.integers({1})})});
        const value_id added = body.op("Add", {carried, body.op("Squeeze", {row, body.integers({0})})});
        return std::pair(body.op("Identity", {go}), added);
      });
  b.output(b.op("Identity", {sum}, {}, "y"));
  std::vector<float> values(32, 0.F);
  values[20] = 5; // row 5 has the largest first element
  values[21] = 2;
  CHECK(values_of(e.load(b.g).run({{"x", floats({8, 4}, values)}}).outputs.at("y")) == std::vector<float>{15, 6, 0, 0});
}

TEST_CASE("an operand that is wrong only in a run is an error that names operator and node",
          "[actors][computed_shapes]") {
  engine e({.devices = {"cpu"}});
  graph_builder b(18);
  const value_id x = b.input("x", {2, dim::symbol("m")});
  const value_id k = cast(b, b.op("ReduceMax", {x}, attrs_of({{"keepdims", int64_t{0}}})), dtype::int64);
  const value_id count = b.op("Reshape", {k, b.integers({1})});
  b.output(b.call("TopK", {x, count}, {"top", "at"})[0]);
  const session s = e.load(b.g);
  CHECK(s.run({{"x", floats({2, 4}, {1, 2, 1, 2, 1, 2, 1, 2})}}).outputs.at("top").dims() == shape{2, 2});
  const error wrong = thrown_by([&] { s.run({{"x", floats({2, 4}, {1, 9, 1, 2, 1, 2, 1, 2})}}); });
  CHECK(wrong.code() == errc::invalid_input);
  CHECK(std::string(wrong.what()).find("TopK takes 9 elements of a dim of 4") != std::string::npos);
  CHECK(std::string(wrong.what()).find("TopK_top") != std::string::npos);
}

TEST_CASE("slices of empty dims are empty", "[actors][computed_shapes]") {
  engine e({.devices = {"cpu"}});
  graph_builder b(18);
  const value_id x = b.input("x", {2, dim::symbol("n")});
  const auto slice = [&](value_id from, int64_t start, const std::string& name) {
    b.output(b.op("Slice", {from, b.integers({start}), b.integers({INT64_MAX}), b.integers({1})}, {}, name));
  };
  slice(x, 1, "rest");
  slice(x, -1, "last");
  slice(b.op("NonZero", {x}), 1, "others");
  const session s = e.load(b.g);
  for (const int64_t n : {3, 0, 1, 0, 2}) {
    const named_tensors y = s.run({{"x", floats({2, n}, std::vector<float>(static_cast<size_t>(2 * n), 1.F))}}).outputs;
    CHECK(y.at("rest").dims() == shape{2, std::max<int64_t>(n - 1, 0)});
    CHECK(y.at("last").dims() == shape{2, std::min<int64_t>(n, 1)});
    CHECK(y.at("others").dims() == shape{2, std::max<int64_t>(2 * n - 1, 0)});
  }
}

TEST_CASE("slices of slices follow NumPy whatever the size", "[actors][computed_shapes]") {
  engine e({.devices = {"cpu"}});
  constexpr std::pair<int64_t, int64_t> firsts[] = {{4, INT64_MAX}, {0, -4}, {-3, INT64_MAX}, {0, 2}};
  constexpr std::pair<int64_t, int64_t> seconds[] = {{-3, 1}, {1, INT64_MAX}, {-1, INT64_MAX}, {-2, 1}};
  for (const auto& first : firsts)
    for (const auto& second : seconds) {
      graph_builder b(18);
      const value_id once = slice_of(b, b.input("x", {dim::symbol("n")}), first);
      b.output(b.op("Neg", {slice_of(b, once, second)}, {}, "y"));
      const session s = e.load(b.g);
      for (const int64_t n : {7, 1, 6, 3, 0, 4, 5, 12}) {
        INFO(first.first << ':' << first.second << ", " << second.first << ':' << second.second << " of " << n);
        const auto [skipped, left] = numpy_slice(n, first.first, first.second);
        const auto [begin, count] = numpy_slice(left, second.first, second.second);
        std::vector<float> x(static_cast<size_t>(n)), expected;
        std::iota(x.begin(), x.end(), 0.F);
        for (int64_t i = 0; i < count; ++i)
          expected.push_back(-x[static_cast<size_t>(skipped + begin + i)]);
        const tensor y = s.run({{"x", floats({n}, x)}}).outputs.at("y");
        CHECK(y.dims() == shape{count});
        CHECK(values_of(y) == expected);
      }
    }
}

TEST_CASE("a slice begins and ends at any computed element", "[actors][computed_shapes]") {
  engine e({.devices = {"cpu"}});
  for (const int64_t rows : {1, 8}) {
    graph_builder b(18);
    const value_id x = b.input("x", {rows, 3}), k = cast(b, b.input("k", {1}), dtype::int64);
    const auto add = [&](value_id start, value_id end, const std::string& name) {
      b.output(b.op("Neg", {b.op("Slice", {x, start, end})}, {}, name));
    };
    add(k, b.integers({1}), "to one");
    add(k, b.integers({INT64_MAX}), "to the end");
    add(b.integers({0}), k, "from the beginning");
    const session s = e.load(b.g);
    for (int64_t at = -9; at <= 9; ++at) {
      INFO(rows << " rows, " << at);
      const tensor in = random_tensor({rows, 3}, 1);
      const named_tensors y = s.run({{"x", in}, {"k", floats({1}, {static_cast<float>(at)})}}).outputs;
      CHECK(y.at("to one").dims() == shape{numpy_slice(rows, at, 1).second, 3});
      CHECK(y.at("to the end").dims() == shape{numpy_slice(rows, at, INT64_MAX).second, 3});
      CHECK(y.at("from the beginning").dims() == shape{numpy_slice(rows, 0, at).second, 3});
    }
  }
}

TEST_CASE("dims whose expressions would grow too long are computed in numbers", "[actors][computed_shapes]") {
  constexpr int steps = 24;
  engine e({.devices = {"cpu"}});
  graph_builder b(18);
  value_id y = b.input("x", {2, dim::symbol("n")});
  for (int i = 0; i < steps; ++i) {
    const value_id half = b.op("Div", {length_of(b, y), b.integers({2})});
    const value_id end = b.op("Slice", {y, half, b.integers({INT64_MAX}), b.integers({1})});
    y = b.op("Concat", {y, end}, attrs_of({{"axis", int64_t{1}}}));
  }
  b.output(b.op("ReduceMax", {y, b.integers({0})}, {}, "y"));
  const session s = e.load(b.g);
  for (const int64_t n : {1, 2}) {
    int64_t length = n;
    for (int i = 0; i < steps; ++i)
      length += length - length / 2;
    const std::vector<float> ones(static_cast<size_t>(2 * n), 1.F);
    CHECK(s.run({{"x", floats({2, n}, ones)}}).outputs.at("y").dims() == shape{1, length});
  }
}

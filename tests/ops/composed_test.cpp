// AffineGrid, CausalConvWithState, CenterCropPad and SwiGLU against direct formulas, with concrete and with symbolic
// dims.
#include "actors/engine_access.hpp"
#include "ops/run_op.hpp"
#include "support/catch.hpp"
#include "support/gpu.hpp"
#include "support/run_graph.hpp"
#include "troupe/model_builder.hpp"

#include <cmath>

using namespace troupe;
using namespace troupe::testing;

namespace {

void check_close_to(const tensor& y, const shape& dims, const std::vector<double>& expected, double margin = 1e-6) {
  REQUIRE(y.dims() == dims);
  const std::vector<double> got = elements(y);
  for (size_t i = 0; i < got.size(); ++i)
    CHECK(got[i] == Approx(expected[i]).margin(margin));
}

/// The grid by its definition; `sizes` are depth (if there is one), height, width.
std::vector<double> direct_grid(const tensor& theta, const std::vector<int64_t>& sizes, bool align_corners) {
  const size_t axes = sizes.size();
  const std::vector<double> t = elements(theta);
  std::vector<double> grid;
  const auto place = [&](int64_t i, int64_t n) {
    if (align_corners)
      return n == 1 ? 0. : -1 + 2. * static_cast<double>(i) / static_cast<double>(n - 1);
    return (2. * static_cast<double>(i) + 1) / static_cast<double>(n) - 1;
  };
  for (int64_t n = 0; n < theta.dims()[0]; ++n)
    for (int64_t pixel = 0; pixel < volume(sizes); ++pixel) {
      std::vector<double> at; // x, y, z, 1
      for (size_t axis = axes, rest = static_cast<size_t>(pixel); axis-- > 0; rest /= static_cast<size_t>(sizes[axis]))
        at.push_back(place(static_cast<int64_t>(rest) % sizes[axis], sizes[axis]));
      at.push_back(1);
      for (size_t row = 0; row < axes; ++row) {
        double sum = 0;
        for (size_t k = 0; k < at.size(); ++k)
          sum += t[(static_cast<size_t>(n) * axes + row) * (axes + 1) + k] * at[k];
        grid.push_back(sum);
      }
    }
  return grid;
}

/// The convolution by its definition, after a state; returns output and the next state.
std::pair<std::vector<double>, std::vector<double>>
direct_causal(const tensor& x, const tensor& w, const std::vector<double>& bias, const std::vector<double>& past) {
  const int64_t batch = x.dims()[0], channels = x.dims()[1], columns = x.dims()[2], taps = w.dims()[2], kept = taps - 1;
  const std::vector<double> in = elements(x), weights = elements(w);
  std::vector<double> y, state;
  for (int64_t row = 0; row < batch * channels; ++row) {
    std::vector<double> line;
    for (int64_t i = 0; i < kept; ++i)
      line.push_back(past.empty() ? 0 : past[static_cast<size_t>(row * kept + i)]);
    for (int64_t i = 0; i < columns; ++i)
      line.push_back(in[static_cast<size_t>(row * columns + i)]);
    for (int64_t t = 0; t < columns; ++t) {
      double sum = bias.empty() ? 0 : bias[static_cast<size_t>(row % channels)];
      for (int64_t k = 0; k < taps; ++k)
        sum += weights[static_cast<size_t>(row % channels * taps + k)] * line[static_cast<size_t>(t + k)];
      y.push_back(sum);
    }
    state.insert(state.end(), line.end() - kept, line.end());
  }
  return {y, state};
}

} // namespace

TEST_CASE("AffineGrid places its pixels in two and three dimensions", "[ops][composed]") {
  const tensor plane = test::random_tensor({2, 2, 3}, 1), space = test::random_tensor({1, 3, 4}, 2);
  for (const int64_t align : {0, 1}) {
    const auto attrs = attrs_of({{"align_corners", align}});
    for (const auto& [h, w] : {std::pair<int64_t, int64_t>{3, 4}, {1, 5}, {2, 1}})
      check_close_to(run_op("AffineGrid", 20, attrs, {plane, longs({2, 7, h, w})})[0], {2, h, w, 2},
                     direct_grid(plane, {h, w}, align != 0));
    check_close_to(run_op("AffineGrid", 20, attrs, {space, longs({1, 1, 2, 3, 5})})[0], {1, 2, 3, 5, 3},
                   direct_grid(space, {2, 3, 5}, align != 0));
    CHECK(run_op("AffineGrid", 20, attrs, {plane, longs({2, 7, 0, 3})})[0].dims() == shape{2, 0, 3, 2});
  }
}

TEST_CASE("AffineGrid computes float16 in float, float64 in double", "[ops][composed]") {
  tensor half(dtype::float16, {1, 2, 3}), wide(dtype::float64, {1, 2, 3});
  const std::vector<double> theta{0.75, -0.5, 0.25, 1.5, 0.125, -1};
  std::copy(theta.begin(), theta.end(), wide.mutable_data<double>());
  std::transform(theta.begin(), theta.end(), half.mutable_data<float16>(),
                 [](double x) { return float16(static_cast<float>(x)); });
  const auto expected = direct_grid(wide, {3, 5}, false);
  const tensor y = run_op("AffineGrid", 20, {}, {half, longs({1, 1, 3, 5})})[0];
  CHECK(y.type() == dtype::float16);
  check_close_to(y, {1, 3, 5, 2}, expected, 1e-3);
  check_close_to(run_op("AffineGrid", 20, {}, {wide, longs({1, 1, 3, 5})})[0], {1, 3, 5, 2}, expected, 1e-14);
}

TEST_CASE("AffineGrid refuses sizes that do not fit", "[ops][composed]") {
  const tensor theta = ramp({2, 2, 3});
  CHECK_THROWS_WITH(run_op("AffineGrid", 20, {}, {theta, longs({2, 3, 4})}), Catch::Contains("3 elements"));
  CHECK_THROWS_WITH(run_op("AffineGrid", 20, {}, {theta, longs({2, 3, -4, 5})}), Catch::Contains("negative"));
  CHECK_THROWS_WITH(run_op("AffineGrid", 20, {}, {theta, longs({3, 3, 4, 5})}), Catch::Contains("theta"));
  CHECK_THROWS_WITH(run_op("AffineGrid", 20, {}, {theta, longs({2, 3, 2, 4, 5})}), Catch::Contains("theta"));
  CHECK_THROWS_AS(run_op("AffineGrid", 20, {}, {theta, longs({2, 3, int64_t{1} << 40, int64_t{1} << 40})}), error);
}

TEST_CASE("CausalConvWithState reads the state before, and keeps the state after", "[ops][composed]") {
  const tensor bias = floats({3}, {1, -2, 0.5f});
  for (const int64_t taps : {1, 2, 4})
    for (const int64_t columns : {1, 3, 6}) {
      INFO(taps << " taps, " << columns << " columns");
      const tensor x = test::random_tensor({2, 3, columns}, 3), w = test::random_tensor({3, 1, taps}, 4);
      const tensor past = test::random_tensor({2, 3, taps - 1}, 5);
      const shape kept{2, 3, taps - 1};
      const auto first = run_op("CausalConvWithState", 27, {}, {x, w, bias}, 2);
      const auto expected = direct_causal(x, w, elements(bias), {});
      check_close_to(first[0], x.dims(), expected.first, 1e-5);
      check_close_to(first[1], kept, expected.second);
      const auto next = run_op("CausalConvWithState", 27, {}, {x, w, tensor{}, past}, 2);
      const auto then = direct_causal(x, w, {}, elements(past));
      check_close_to(next[0], x.dims(), then.first, 1e-5);
      check_close_to(next[1], kept, then.second);
    }
}

TEST_CASE("CausalConvWithState applies its activation", "[ops][composed]") {
  const tensor x = floats({1, 1, 3}, {-2, 0, 3}), w = floats({1, 1, 1}, {1});
  const auto run = [&](const char* name) {
    return run_op("CausalConvWithState", 27, attrs_of({{"activation", std::string(name)}}), {x, w})[0];
  };
  check_close_to(run("none"), {1, 1, 3}, {-2, 0, 3});
  for (const char* name : {"silu", "swish"})
    check_close_to(run(name), {1, 1, 3}, {-2 / (1 + std::exp(2.)), 0, 3 / (1 + std::exp(-3.))});
  CHECK_THROWS_WITH(run("relu"), Catch::Contains("'relu', not none, silu or swish"));
}

TEST_CASE("CausalConvWithState refuses operands that do not fit", "[ops][composed]") {
  const auto refuses = [](const std::vector<tensor>& inputs, const char* text) {
    CHECK_THROWS_WITH(run_op("CausalConvWithState", 27, {}, inputs, 2), Catch::Contains(text));
  };
  const tensor x = ramp({2, 3, 4});
  refuses({x, ramp({2, 1, 3})}, "weights");
  refuses({x, ramp({3, 2, 3})}, "weights");
  refuses({x, ramp({3, 3})}, "rank 3");
  refuses({x, tensor(dtype::float32, {3, 1, 0})}, "no taps");
  refuses({x, ramp({3, 1, 3}), tensor{}, ramp({2, 3, 3})}, "past_state");
  refuses({x, ramp({3, 1, 3}), ramp({2})}, "bias");
}

TEST_CASE("CenterCropPad takes the middle, and puts the odd element at the end", "[ops][composed]") {
  const auto run = [](int64_t from, int64_t to) {
    return elements(run_op("CenterCropPad", 18, {}, {ramp({from}), longs({to})})[0]);
  };
  CHECK(run(5, 5) == std::vector<double>{0, 1, 2, 3, 4});
  CHECK(run(5, 3) == std::vector<double>{1, 2, 3});
  CHECK(run(5, 2) == std::vector<double>{1, 2});
  CHECK(run(4, 1) == std::vector<double>{1});
  CHECK(run(2, 5) == std::vector<double>{0, 0, 1, 0, 0});
  CHECK(run(2, 4) == std::vector<double>{0, 0, 1, 0});
  CHECK(run(3, 0).empty());
  CHECK(run(0, 2) == std::vector<double>{0, 0});
}

TEST_CASE("CenterCropPad works on the axes that it names, of any type", "[ops][composed]") {
  const tensor x = tensor::of<std::string>({2, 3}, std::vector<std::string>{"a", "b", "c", "d", "e", "f"});
  const tensor y = run_op("CenterCropPad", 18, attrs_of({{"axes", int_list{-1}}}), {x, longs({1})})[0];
  CHECK(y.dims() == shape{2, 1});
  CHECK(y.values<std::string>()[1] == "e");
  const tensor bytes = tensor::of<int8_t>({1, 3}, std::vector<int8_t>{1, 2, 3});
  CHECK(elements(run_op("CenterCropPad", 18, attrs_of({{"axes", int_list{1, 0}}}), {bytes, longs({1, 3})})[0]) ==
        std::vector<double>{0, 2, 0});
}

TEST_CASE("CenterCropPad refuses shapes that do not fit", "[ops][composed]") {
  const tensor x = ramp({2, 3});
  const auto run = [&](const attributes& attrs, const tensor& target) {
    return run_op("CenterCropPad", 18, attrs, {x, target});
  };
  CHECK_THROWS_WITH(run({}, longs({2})), Catch::Contains("2 axes"));
  CHECK_THROWS_WITH(run({}, longs({2, -1})), Catch::Contains("negative"));
  CHECK_THROWS_AS(run(attrs_of({{"axes", int_list{0, 0}}}), longs({1, 1})), error);
  CHECK_THROWS_AS(run(attrs_of({{"axes", int_list{2}}}), longs({1})), error);
  CHECK_THROWS_AS(run({}, longs({int64_t{1} << 40, int64_t{1} << 40})), error);
}

TEST_CASE("SwiGLU gates by a Swish", "[ops][composed]") {
  const tensor a = floats({3}, {-1, 0, 2}), b = floats({3}, {3, 5, -0.5f});
  for (const float alpha : {1.f, 0.25f}) {
    std::vector<double> expected;
    for (size_t i = 0; i < 3; ++i) {
      const double x = elements(a)[i];
      expected.push_back(x / (1 + std::exp(-alpha * x)) * elements(b)[i]);
    }
    const attributes attrs = alpha == 1 ? attributes{} : attrs_of({{"alpha", alpha}});
    check_close_to(run_op("SwiGLU", 28, attrs, {a, b})[0], {3}, expected);
  }
  CHECK_THROWS_AS(run_op("SwiGLU", 28, {}, {a, ramp({2})}), error);
  CHECK_THROWS_AS(run_op("SwiGLU", 28, {}, {a, longs({1, 2, 3})}), error);
}

namespace {

/// All four in one model whose last dim is found out when it runs, against their definitions.
void check_symbolic_dims(const std::vector<std::string>& devices) {
  engine e = make_engine({.devices = devices}, {.gpu_validation = test::gpus_are_validated()});
  const tensor w = test::random_tensor({2, 1, 3}, 7), theta = test::random_tensor({1, 2, 3}, 8);
  model_builder m;
  const variable x = m.input("x", dtype::float32, {1, 2, dim::symbol("n")});
  const auto causal = m.call_all("CausalConvWithState", {x, w}, {}, {.outputs = 2});
  m.output("y", causal[0]);
  m.output("state", causal[1]);
  m.output("centre", m.call("CenterCropPad", {x, longs({4})}, {{"axes", int_list{2}}}));
  m.output("gated", m.call("SwiGLU", {x, x}));
  const variable size = m.call("Shape", {m.call("Unsqueeze", {x, longs({3})})});
  m.output("grid", m.call("AffineGrid", {theta, size}));
  session s = e.load(m.build());
  for (const int64_t n : {1, 4, 7}) {
    INFO("n = " << n << " on " << devices.front());
    const tensor in = test::random_tensor({1, 2, n}, 6);
    const auto y = s.run({{"x", in}}).outputs;
    const auto direct = direct_causal(in, w, {}, {});
    check_close_to(y.at("y"), {1, 2, n}, direct.first, 1e-5);
    check_close_to(y.at("state"), {1, 2, 2}, direct.second);
    check_close_to(y.at("centre"), {1, 2, 4}, elements(run_op("CenterCropPad", 18, {}, {in, longs({1, 2, 4})})[0]));
    check_close_to(y.at("gated"), {1, 2, n}, elements(run_op("SwiGLU", 28, {}, {in, in})[0]), 1e-5);
    check_close_to(y.at("grid"), {1, n, 1, 2}, direct_grid(theta, {n, 1}, false), 1e-5);
  }
  CHECK(gpu_messages(e).empty());
}

} // namespace

TEST_CASE("Compositions follow dims that the run tells", "[ops][composed]") {
  check_symbolic_dims({"cpu"});
}

TEST_CASE("Compositions follow dims that the run tells on a GPU", "[ops][composed][vulkan]") {
  check_symbolic_dims({"vulkan:0", "cpu"});
}

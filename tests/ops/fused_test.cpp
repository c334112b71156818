#include "ops/activation.hpp"
#include "ops/composed/fused_elementwise.hpp"
#include "ops/run_op.hpp"
#include "support/catch.hpp"
#include "support/kernel_case.hpp"
#include "support/packed_heads.hpp"
#include "support/run_graph.hpp"

using namespace troupe;
using test::random_tensor;
using testing::run;

TEST_CASE("Rotary equals its formula in both layouts", "[ops][A4]") {
  // B = 1, H = 2, S = 3, D = 4
  const tensor x = random_tensor({1, 2, 3, 4}, 1), cos = random_tensor({1, 3, 4}, 2), sin = random_tensor({1, 3, 4}, 3);
  const tensor y = run("troupe", "Rotary", {x, cos, sin});
  tensor swapped(dtype::float32, {1, 3, 2, 4});
  for (int64_t h = 0; h < 2; ++h)
    for (int64_t s = 0; s < 3; ++s)
      for (int64_t d = 0; d < 4; ++d) {
        const float* row = x.data<float>() + (h * 3 + s) * 4;
        swapped.mutable_data<float>()[(s * 2 + h) * 4 + d] = row[d];
        const float rotated = d < 2 ? -row[d + 2] : row[d - 2];
        const float expected = row[d] * cos.data<float>()[s * 4 + d] + rotated * sin.data<float>()[s * 4 + d];
        CHECK(y.data<float>()[(h * 3 + s) * 4 + d] == Approx(expected).epsilon(1e-5).margin(1e-6));
      }
  attributes behind;
  behind.set("layout", std::string("bshd"));
  const tensor z = run("troupe", "Rotary", {swapped, cos, sin}, behind);
  for (int64_t h = 0; h < 2; ++h)
    for (int64_t s = 0; s < 3; ++s)
      for (int64_t d = 0; d < 4; ++d)
        CHECK(z.data<float>()[(s * 2 + h) * 4 + d] == y.data<float>()[(h * 3 + s) * 4 + d]);
  CHECK_THROWS_AS(run("troupe", "Rotary", {x, cos, random_tensor({1, 2, 4}, 3)}), error);
  attributes heads;
  heads.set("num_heads", int64_t{2});
  const tensor flat = run("troupe", "Rotary", {swapped.reshaped({1, 3, 8}), cos, sin}, heads);
  CHECK(flat.dims() == shape{1, 3, 8});
  CHECK(std::ranges::equal(flat.values<float>(), z.values<float>()));
  heads.set("num_heads", int64_t{3});
  CHECK_THROWS_AS(run("troupe", "Rotary", {swapped.reshaped({1, 3, 8}), cos, sin}, heads), error);
}

TEST_CASE("Attention takes caches with positions first", "[ops]") {
  const auto fresh = [](uint32_t seed) { return random_tensor({2, 3, 4, 8}, seed); };
  const tensor k = random_tensor({2, 3, 5, 8}, 4), v = random_tensor({2, 3, 5, 8}, 5);
  attributes first, turn;
  first.set("past_layout", std::string("sbhd"));
  turn.set("perm", std::vector<int64_t>{2, 0, 1, 3});
  const tensor usual = run("troupe", "Attention", {fresh(1), fresh(2), fresh(3), tensor{}, k, v});
  const tensor y =
      run("troupe", "Attention",
          {fresh(1), fresh(2), fresh(3), tensor{}, run("", "Transpose", {k}, turn), run("", "Transpose", {v}, turn)},
          first);
  CHECK(y.dims() == usual.dims());
  CHECK(std::ranges::equal(y.values<float>(), usual.values<float>()));
  CHECK_THROWS_AS(run("troupe", "Attention", {fresh(1), fresh(2), fresh(3), tensor{}, k, v}, first), error);
}

TEST_CASE("Attention reads some heads of its operands as it reads them alone", "[ops]") {
  for (const char* layout : {"bhsd", "bshd"})
    for (const int64_t past : {0, 5})
      for (const bool half : {false, true}) {
        INFO(layout << " past " << past << " half " << half);
        const auto dims = [&](int64_t heads, int64_t positions, int64_t width) {
          return std::string(layout) == "bshd" ? shape{2, positions, heads, width} : shape{2, heads, positions, width};
        };
        attributes attrs;
        attrs.set("q_layout", std::string(layout));
        attrs.set("kv_layout", std::string(layout));
        std::vector<tensor> inputs{random_tensor(dims(4, 3, 7), 1), random_tensor(dims(2, 11, 7), 2),
                                   random_tensor(dims(2, 11, 9), 3), random_tensor({3, 11 + past}, 4)};
        if (past > 0)
          for (const int64_t width : {7, 9})
            inputs.push_back(random_tensor({2, 2, past, width}, 5));
        const auto result = [&] {
          std::vector<tensor> given = inputs;
          if (half)
            for (tensor& t : given)
              t = test::to_type(t, dtype::float16);
          return run("troupe", "Attention", given, attrs);
        };
        const tensor alone = result();
        test::put_among_heads(inputs, attrs);
        const tensor y = result();
        CHECK(y.dims() == alone.dims());
        CHECK(to_double(y.view()) == to_double(alone.view())); // no NaN of the other heads
      }
}

TEST_CASE("Attention refuses heads that are not there", "[ops]") {
  const auto refuses = [](const char* name, std::vector<int64_t> range, const char* why) {
    attributes attrs;
    attrs.set(name, std::move(range));
    INFO(name);
    test::graph_builder b;
    b.output(b.call("Attention", {b.input({1, 4, 3, 8}), b.input({1, 4, 3, 8}), b.input({1, 4, 3, 8})}, {"y"}, attrs,
                    "troupe")[0]);
    CHECK_THROWS_WITH(test::inferred(b.g), Catch::Contains(why));
    const tensor x = random_tensor({1, 4, 3, 8}, 1);
    CHECK_THROWS_AS(run("troupe", "Attention", {x, x, x}, attrs), error);
  };
  for (const char* name : {"q_heads", "k_heads", "v_heads"}) {
    refuses(name, {1}, "must be a first head and a count");
    refuses(name, {0, 4, 1}, "must be a first head and a count");
    refuses(name, {-1, 4}, "names 4 heads from head -1 on");
    refuses(name, {0, 5}, "but there are 4");
    refuses(name, {2, 3}, "but there are 4");
    refuses(name, {INT64_MAX, INT64_MAX}, "but there are 4");
    refuses(name, {1, -1}, "names -1 heads");
  }
  refuses("k_heads", {1, 2}, "heads of K and V");
  refuses("q_heads", {1, 3}, "do not share");
}

TEST_CASE("Append is Concat along the positions, of new rows in either order", "[ops]") {
  attributes behind, along, swap;
  behind.set("new_layout", std::string("bshd"));
  along.set("axis", int64_t{2});
  swap.set("perm", std::vector<int64_t>{0, 2, 1, 3});
  for (const auto& [batch, heads, past, rows] :
       {std::array<int64_t, 4>{2, 3, 5, 4}, {1, 2, 0, 3}, {2, 1, 4, 1}, {1, 3, 2, 0}}) {
    const tensor cache = random_tensor({batch, heads, past, 6}, 1), fresh = random_tensor({batch, rows, heads, 6}, 2);
    const tensor turned = run("", "Transpose", {fresh}, swap), wanted = run("", "Concat", {cache, turned}, along);
    for (const tensor& got :
         {run("troupe", "Append", {cache, fresh}, behind), run("troupe", "Append", {cache, turned})}) {
      CHECK(got.dims() == wanted.dims());
      CHECK(std::ranges::equal(got.values<float>(), wanted.values<float>()));
    }
  }
  CHECK_THROWS_AS(run("troupe", "Append", {random_tensor({1, 2, 3, 4}, 1), random_tensor({1, 3, 3, 4}, 2)}), error);
  CHECK_THROWS_AS(run("troupe", "Append", {random_tensor({1, 2, 3, 4}, 1), random_tensor({2, 3, 4}, 2)}), error);
}

TEST_CASE("Elementwise runs its steps over broadcast operands of odd sizes", "[ops][A4]") {
  using enum scalar_code;
  const tensor x = random_tensor({3, 5, 701}, 1), row = random_tensor({701}, 2), column = random_tensor({5, 1}, 3),
               lone = random_tensor({1}, 4);
  // max(x · row + column, 0.25) / lone − x
  const elementwise_program program{{{multiply, 0, 1}, {add, 4, 2}, {maximum, 5, -1}, {divide, 6, 3}, {subtract, 7, 0}},
                                    {0.25f}};
  const tensor y = run("troupe", "Elementwise", {x, row, column, lone}, to_attributes(program));
  REQUIRE(y.dims() == x.dims());
  for (int64_t i = 0; i < y.size(); ++i) {
    const float v = x.data<float>()[i];
    const float sum = v * row.data<float>()[i % 701] + column.data<float>()[i / 701 % 5];
    REQUIRE(y.data<float>()[i] == Approx(std::max(sum, 0.25f) / lone.data<float>()[0] - v).epsilon(1e-5).margin(1e-5));
  }
}

TEST_CASE("Elementwise refuses malformed programs", "[ops]") {
  const auto refuses = [](std::vector<int64_t> steps) {
    attributes attrs;
    attrs.set("steps", std::move(steps));
    CHECK_THROWS_AS(parse_elementwise(attrs, 2), error);
  };
  refuses({});
  refuses({0, 0, 1});
  refuses({99, 0, 1, 0});
  refuses({0, 0, 2, 0});                                             // its own result
  refuses({0, 0, -1, 0});                                            // no such constant
  refuses(std::vector<int64_t>(4 * (max_elementwise_steps + 1), 0)); // too long
}

TEST_CASE("every activation equals its formula and keeps NaN", "[ops]") {
  const std::vector<float> x{-4, -1.5f, -0.5f, 0, 0.5f, 1.5f, 4, 7};
  const auto check = [&](activation act, auto formula) {
    std::vector<float> y = x;
    y.push_back(NAN);
    apply(act, y.data(), static_cast<int64_t>(y.size()));
    for (size_t i = 0; i < x.size(); ++i)
      CHECK(y[i] == Approx(formula(static_cast<double>(x[i]))).epsilon(1e-5).margin(1e-6));
    CHECK(std::isnan(y.back()));
    attributes attrs;
    set_activation(attrs, act);
    CHECK(parse_activation(attrs) == act);
  };
  using enum scalar_code;
  check({relu}, [](double v) { return std::max(v, 0.0); });
  check({clip, -1, 2}, [](double v) { return std::clamp(v, -1.0, 2.0); });
  check({sigmoid}, [](double v) { return 1 / (1 + std::exp(-v)); });
  check({scalar_code::tanh}, [](double v) { return std::tanh(v); });
  check({hard_swish}, [](double v) { return v * std::clamp(v / 6 + 0.5, 0.0, 1.0); });
  check({hard_sigmoid, 0.2f, 0.5f}, [](double v) { return std::clamp(0.2 * v + 0.5, 0.0, 1.0); });
  check({leaky_relu, 0.1f}, [](double v) { return v < 0 ? 0.1 * v : v; });
  check({swish, 1}, [](double v) { return v / (1 + std::exp(-v)); });
  check({gelu}, [](double v) { return v / 2 * (1 + std::erf(v / std::sqrt(2.0))); });
  check({gelu_tanh},
        [](double v) { return v / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v))); });
}

TEST_CASE("a quantised chain takes a float32 scale for its result", "[ops][quantised]") {
  attributes attrs = to_attributes(elementwise_program{{{scalar_code::relu, 0}}, {}});
  attrs.set("operands", int64_t{1});
  const auto infer = [&](dtype scale) {
    test::graph_builder b;
    b.output(b.call("QuantizedElementwise", {b.input({4}), no_value, no_value, b.input({}, scale)}, {"y"}, attrs,
                    "troupe")[0]);
    return test::inferred(b.g).values.back().type;
  };
  CHECK(infer(dtype::float32) == dtype::uint8);
  CHECK_THROWS_WITH(infer(dtype::int8), Catch::Contains("the result's scale is int8, not float32"));
}

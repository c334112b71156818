#include "cpu/kernel_check.hpp"
#include "ops/composed/fused_elementwise.hpp"
#include "ops/registry.hpp"
#include "support/catch.hpp"
#include "support/packed_heads.hpp"
#include "support/run_graph.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

attributes activated(const char* name, float alpha = 0, float beta = 0) {
  attributes a;
  a.set("activation", std::string(name));
  a.set("activation_alpha", alpha);
  a.set("activation_beta", beta);
  return a;
}

const std::vector<attributes>& activations() {
  static const std::vector<attributes> all = {attributes(),
                                              activated("Relu"),
                                              activated("Clip", -0.2f, 0.6f),
                                              activated("Sigmoid"),
                                              activated("Tanh"),
                                              activated("HardSwish"),
                                              activated("HardSigmoid", 0.3f, 0.4f),
                                              activated("LeakyRelu", 0.1f),
                                              activated("Swish", 1.f),
                                              activated("Gelu"),
                                              activated("GeluTanh")};
  return all;
}

} // namespace

TEST_CASE("fused convolutions agree with the reference", "[cpu]") {
  const auto l = GENERATE(layout::plain, layout::channels_last);
  for (attributes a : activations())
    for (bool residual : {false, true}) {
      INFO(a.text("activation", "none") << (residual ? " with residual" : ""));
      a.set("pads", std::vector<int64_t>{1, 1, 1, 1});
      kernel_check check("troupe", "Conv", a);
      check.input({2, 5, 9, 7}, false, l, -3, 3).input({6, 5, 3, 3}, true).input({6}, true);
      if (residual)
        check.input({2, 6, 9, 7}, false, l);
      if (l == layout::channels_last)
        check.channels_last_output();
      CHECK(check.worst("dnnl_conv", 1e-4, 2e-5) < 1);
    }
}

TEST_CASE("fused 1 x 1 convolutions with a residual are products", "[cpu]") {
  for (const attributes& a : activations())
    for (const bool bias : {false, true})
      for (const auto& [x, filters] :
           {std::pair<shape, int64_t>{{2, 20, 9, 7}, 33}, {{1, 64, 14, 3}, 48}, {{3, 5, 11}, 4}}) {
        INFO(a.text("activation", "none") << (bias ? " bias " : " ") << to_string(x));
        shape w{filters, x[1]}, y = x;
        w.resize(x.size(), 1);
        y[1] = filters;
        kernel_check check("troupe", "Conv", a);
        check.input(x, false, layout::channels_last).input(w, true);
        bias ? check.input({filters}, true) : check.absent();
        check.input(y, false, layout::channels_last).channels_last_output();
        CHECK(check.worst("pointwise_conv", 1e-4, 2e-5) < 1);
      }
}

TEST_CASE("convolutions that move pixels are not products", "[cpu]") {
  // As many pixels as before, but at -1, 1 and 3.
  attributes a;
  a.set("strides", std::vector<int64_t>{2, 2});
  a.set("pads", std::vector<int64_t>{1, 1, 1, 1});
  kernel_check check("troupe", "Conv", a);
  check.input({1, 8, 3, 3}, false, layout::channels_last).input({8, 8, 1, 1}, true).absent();
  check.input({1, 8, 3, 3}, false, layout::channels_last).channels_last_output();
  CHECK_THROWS_AS(check.worst("pointwise_conv"), std::runtime_error);
  CHECK(check.worst("dnnl_conv") < 1);
}

TEST_CASE("fused products agree with the reference", "[cpu]") {
  for (attributes a : activations())
    for (bool residual : {false, true})
      for (bool bias : {false, true})
        for (int64_t rows : {3, 37}) {
          INFO(a.text("activation", "none") << (residual ? " residual" : "") << (bias ? " bias " : " ") << rows);
          kernel_check check("troupe", "MatMul", a);
          check.input({rows, 40}).input({40, 51}, true);
          if (bias)
            check.input({51});
          else
            check.absent();
          if (residual)
            check.input({rows, 51});
          CHECK(check.worst(rows == 3 ? "gemv" : "dnnl_matmul", 1e-4, 2e-5) < 1);
        }
}

TEST_CASE("scaled products agree with the reference, whatever ends them", "[cpu]") {
  for (attributes a : activations())
    for (const bool residual : {false, true})
      for (const int64_t transposed : {0, 1}) {
        INFO(a.text("activation", "none") << (residual ? " residual" : ""));
        a.set("alpha", 0.5f);
        a.set("transA", transposed);
        kernel_check check("troupe", "MatMul", a);
        check.input(transposed ? shape{40, 37} : shape{37, 40}).input({40, 51}, true).input({51});
        if (residual)
          check.input({37, 51});
        CHECK(check.worst("dnnl_matmul", 1e-4, 2e-5) < 1);
      }
}

TEST_CASE("attention agrees with the reference in every layout", "[cpu]") {
  const int64_t B = 2, H = 4, D = 24, Dv = 16;
  for (int64_t S : {1, 5, 70})
    for (int64_t T : {70, 131})
      for (int64_t kv_heads : {4, 2})
        for (const char* layout_name : {"bhsd", "bshd"})
          for (int mask : {0, 1, 2}) {
            const bool behind = std::string(layout_name) == "bshd";
            const auto dims = [&](int64_t heads, int64_t positions, int64_t width) {
              return behind ? shape{B, positions, heads, width} : shape{B, heads, positions, width};
            };
            attributes a;
            a.set("scale", 0.3f);
            for (const char* name : {"q_layout", "kv_layout", "out_layout"})
              a.set(name, std::string(layout_name));
            a.set("is_causal", int64_t{mask == 2});
            INFO(S << " queries " << T << " keys " << kv_heads << " kv heads " << layout_name << " mask " << mask);
            kernel_check check("troupe", "Attention", a);
            check.input(dims(H, S, D)).input(dims(kv_heads, T, D)).input(dims(kv_heads, T, Dv));
            if (mask == 1)
              check.input({B, 1, S, T}, false, layout::plain, -2, 2);
            CHECK(check.worst("attention") < 1);
          }
}

TEST_CASE("attention that reads some heads of its operands agrees with the reference", "[cpu]") {
  const int64_t B = 2, H = 4, D = 24, Dv = 16;
  for (int64_t S : {1, 5, 70})
    for (int64_t past : {0, 63})
      for (const char* layout_name : {"bhsd", "bshd"}) {
        const auto dims = [&](int64_t heads, int64_t width) {
          return std::string(layout_name) == "bshd" ? shape{B, S, heads, width} : shape{B, heads, S, width};
        };
        attributes a;
        a.set("q_layout", std::string(layout_name));
        a.set("kv_layout", std::string(layout_name));
        std::vector<tensor> inputs{test::random_tensor(dims(H, D), 1), test::random_tensor(dims(2, D), 2),
                                   test::random_tensor(dims(2, Dv), 3)};
        test::put_among_heads(inputs, a);
        INFO(S << " queries " << past << " past " << layout_name);
        kernel_check check("troupe", "Attention", a);
        for (const tensor& t : inputs)
          check.input(t);
        if (past > 0)
          check.absent().input({B, 2, past, D}).input({B, 2, past, Dv});
        CHECK(check.worst("attention") < 1);
      }
}

TEST_CASE("attention with a cache agrees with the reference", "[cpu]") {
  const int64_t B = 2, H = 4, D = 24, Dv = 16;
  for (int64_t S : {1, 5, 70})
    for (int64_t past : {0, 1, 63})
      for (int64_t kv_heads : {4, 2})
        for (bool behind : {false, true})
          for (bool causal : {false, true}) {
            attributes a;
            a.set("kv_layout", std::string(behind ? "bshd" : "bhsd"));
            a.set("is_causal", int64_t{causal});
            INFO(S << " queries " << past << " past " << kv_heads << " kv heads " << behind << causal);
            const auto dims = [&](int64_t width) {
              return behind ? shape{B, S, kv_heads, width} : shape{B, kv_heads, S, width};
            };
            kernel_check check("troupe", "Attention", a);
            check.input({B, H, S, D}).input(dims(D)).input(dims(Dv));
            check.input({B, 1, S, S + past}, false, layout::plain, -2, 2);
            check.input({B, kv_heads, past, D}).input({B, kv_heads, past, Dv});
            CHECK(check.worst("attention") < 1);
          }
}

TEST_CASE("elementwise chains agree with the reference", "[cpu]") {
  using enum scalar_code;
  // y = swish(x · scale[c] + shift[c]) + x / 2, scale and shift by channel.
  elementwise_program program;
  program.steps = {{multiply, 0, 1}, {add, 3, 2}, {swish, 4, -1}, {multiply, 0, -2}, {add, 5, 6}};
  program.constants = {1.f, 0.5f};
  const auto l = GENERATE(layout::plain, layout::channels_last);
  for (const shape& scale : std::vector<shape>{{5, 1, 1}, {1}, {7}, {2, 5, 9, 1}}) {
    INFO(to_string(scale));
    kernel_check check("troupe", "Elementwise", to_attributes(program));
    check.input({2, 5, 9, 7}, false, l, -4, 4).input(scale).input({5, 1, 1});
    if (l == layout::channels_last)
      check.channels_last_output();
    CHECK(check.worst("elementwise") < 1);
  }
}

TEST_CASE("concatenation of channels-last values agrees with the reference", "[cpu]") {
  if (!find_op("", "Concat", 13))
    return;
  attributes a;
  a.set("axis", int64_t{1});
  kernel_check check("", "Concat", a);
  for (int64_t channels : {3, 1, 8})
    check.input({2, channels, 6, 5}, false, layout::channels_last);
  check.channels_last_output();
  CHECK(check.worst("channels_last_concat") < 1);
}

TEST_CASE("single elementwise operators agree with the reference", "[cpu]") {
  for (const char* op :
       {"Relu", "Sigmoid", "Tanh", "Erf", "Exp", "Neg", "HardSwish", "Gelu", "Swish", "LeakyRelu", "HardSigmoid"}) {
    INFO(op);
    CHECK(kernel_check("", op).input({3, 5, 70}, false, layout::plain, -6, 6).worst("elementwise") < 1);
  }
  for (const char* op : {"Add", "Sub", "Mul", "Div"}) {
    INFO(op);
    CHECK(kernel_check("", op).input({3, 1, 70}).input({5, 1}, false, layout::plain, 0.5f, 2).worst("elementwise") < 1);
  }
}

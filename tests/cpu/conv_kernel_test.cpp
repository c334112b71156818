#include "cpu/kernel_check.hpp"
#include "ops/activation.hpp"
#include "ops/evaluate.hpp"
#include "ops/registry.hpp"
#include "support/catch.hpp"
#include "support/run_graph.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

attributes window(std::vector<int64_t> pads, std::vector<int64_t> strides, std::vector<int64_t> dilations,
                  int64_t group = 1) {
  attributes a;
  a.set("pads", std::move(pads));
  a.set("strides", std::move(strides));
  a.set("dilations", std::move(dilations));
  a.set("group", group);
  return a;
}

struct conv_case {
  shape x, w;
  attributes attrs;
};

const std::vector<conv_case>& conv_cases() {
  static const std::vector<conv_case> cases = {
      {{1, 3, 9, 11}, {8, 3, 3, 3}, window({1, 1, 1, 1}, {1, 1}, {1, 1})},
      {{2, 3, 17, 15}, {5, 3, 7, 7}, window({3, 3, 3, 3}, {2, 2}, {1, 1})},
      {{1, 16, 7, 7}, {24, 16, 1, 1}, window({0, 0, 0, 0}, {1, 1}, {1, 1})},
      {{1, 17, 6, 9}, {17, 1, 3, 3}, window({1, 1, 1, 1}, {1, 1}, {1, 1}, 17)},
      {{1, 12, 10, 9}, {18, 4, 3, 2}, window({0, 1, 2, 0}, {2, 1}, {2, 3}, 3)},
      {{3, 4, 20}, {6, 4, 5}, window({2, 2}, {3}, {1})},
      {{1, 2, 5, 6, 7}, {3, 2, 2, 3, 1}, window({0, 1, 0, 0, 1, 0}, {1, 2, 1}, {1, 1, 1})},
      // The last window stops short of the padded end.
      {{1, 4, 8, 8}, {4, 4, 3, 3}, window({1, 1, 1, 1}, {3, 3}, {1, 1})},
  };
  return cases;
}

} // namespace

TEST_CASE("oneDNN convolution agrees with the reference", "[cpu]") {
  const auto l = GENERATE(layout::plain, layout::channels_last);
  const bool constant = GENERATE(false, true);
  for (const conv_case& c : conv_cases()) {
    INFO(to_string(c.x) << to_string(c.w) << (l == layout::plain ? " plain" : " channels-last"));
    kernel_check check("", "Conv", c.attrs);
    check.input(c.x, false, l).input(c.w, constant).input({c.w[0]}, constant);
    if (l == layout::channels_last)
      check.channels_last_output();
    CHECK(check.worst("dnnl_conv") < 1);
  }
}

TEST_CASE("oneDNN convolution may change the layout on the way", "[cpu]") {
  const conv_case& c = conv_cases()[0];
  kernel_check check("", "Conv", c.attrs);
  check.input(c.x, false, layout::plain).input(c.w, true).channels_last_output();
  CHECK(check.worst("dnnl_conv") < 1);
}

TEST_CASE("oneDNN transposed convolution agrees with the reference", "[cpu]") {
  const auto l = GENERATE(layout::plain, layout::channels_last);
  attributes padded = window({1, 0, 1, 1}, {2, 3}, {1, 1});
  padded.set("output_padding", std::vector<int64_t>{1, 0});
  const std::vector<conv_case> cases = {
      {{1, 6, 5, 4}, {6, 3, 2, 2}, window({0, 0, 0, 0}, {2, 2}, {1, 1})},
      {{2, 6, 5, 4}, {6, 2, 3, 3}, window({1, 1, 1, 1}, {2, 2}, {1, 1}, 3)},
      {{1, 3, 5, 4}, {3, 5, 3, 2}, padded},
  };
  for (const conv_case& c : cases) {
    INFO(to_string(c.x) << to_string(c.w));
    kernel_check check("", "ConvTranspose", c.attrs);
    check.input(c.x, false, l).input(c.w, true).input({c.w[1] * c.attrs.integer("group")}, true);
    if (l == layout::channels_last)
      check.channels_last_output();
    CHECK(check.worst("dnnl_conv_transpose") < 1);
  }
}

TEST_CASE("transposed convolutions whose windows tile the output agree with the reference", "[cpu]") {
  for (const auto& [x, out, kernel] : std::vector<std::tuple<shape, int64_t, shape>>{{{1, 6, 5, 4}, 3, {2, 2}},
                                                                                     {{2, 24, 9, 7}, 1, {2, 2}},
                                                                                     {{1, 5, 1, 6}, 17, {3, 1}},
                                                                                     {{2, 64, 65, 40}, 32, {2, 3}}})
    for (const bool fused : {false, true}) {
      INFO(to_string(x) << " to " << out << (fused ? " fused" : ""));
      attributes attrs;
      attrs.set("strides", kernel);
      if (fused)
        set_activation(attrs, {scalar_code::clip, -0.1f, 0.5f});
      kernel_check check(fused ? "troupe" : "", "ConvTranspose", attrs);
      check.input(x, false, layout::channels_last).input({x[1], out, kernel[0], kernel[1]}, true);
      if (fused)
        check.input({out}, true);
      CHECK(check.channels_last_output().worst("tiling_deconv") < 1);
    }
}

TEST_CASE("oneDNN changes layouts as the reference does", "[cpu]") {
  for (const shape& dims : {shape{1, 3, 33, 17}, shape{2, 24, 5, 7}, shape{3, 5, 40}, shape{1, 18, 2, 3, 5}})
    for (const bool forward : {false, true}) {
      INFO(to_string(dims) << forward);
      node call{.op_type = "Reorder", .domain = "troupe", .def = find_op("troupe", "Reorder", 1)};
      call.attrs.set("to", std::string(forward ? "channels_last" : "plain"));
      kernel_resources resources;
      const layout from = forward ? layout::plain : layout::channels_last;
      const layout to = forward ? layout::channels_last : layout::plain;
      const kernel_request request{call,
                                   {{.type = dtype::float32, .dims = dims, .layout = from}},
                                   {{.type = dtype::float32, .dims = dims, .layout = to}},
                                   resources};
      const chosen_kernel chosen = choose_kernel(request);
      CHECK(chosen.name == "dnnl_reorder");
      const tensor x = test::random_tensor(dims, 1);
      tensor y(dtype::float32, dims);
      const void* in = x.data();
      void* out = y.mutable_data();
      chosen.run->run({&in, &out, nullptr});
      const tensor expected = evaluate(*call.def, call.attrs, {&x, 1}).at(0);
      CHECK(std::equal(expected.values<float>().begin(), expected.values<float>().end(), y.values<float>().begin()));
    }
}

TEST_CASE("pooling agrees with the reference", "[cpu]") {
  const auto l = GENERATE(layout::plain, layout::channels_last);
  for (const char* op : {"MaxPool", "AveragePool"})
    for (int64_t ceil : {0, 1})
      for (int64_t include_pad : {0, 1}) {
        attributes a = window({1, 1, 1, 1}, {2, 2}, {1, 1});
        a.set("kernel_shape", std::vector<int64_t>{3, 3});
        a.set("ceil_mode", ceil);
        if (std::string(op) == "AveragePool")
          a.set("count_include_pad", include_pad);
        if (ceil && include_pad && l == layout::plain && std::string(op) == "AveragePool")
          continue; // such a window may hang over the padding: left to the reference
        INFO(op << " ceil " << ceil << " include_pad " << include_pad);
        kernel_check check("", op, a);
        check.input({2, 5, 12, 9}, false, l);
        if (l == layout::channels_last)
          check.channels_last_output();
        const char* mean = l == layout::plain ? "dnnl_pool" : "pixel_mean";
        CHECK(check.worst(std::string(op) == "MaxPool" ? "max_pool" : mean) < 1);
      }
  for (const char* op : {"GlobalMaxPool", "GlobalAveragePool"}) {
    INFO(op);
    kernel_check check("", op);
    check.input({2, 19, 7, 5}, false, l);
    if (l == layout::channels_last)
      check.channels_last_output();
    CHECK(check.worst(std::string(op) == "GlobalMaxPool" ? "max_pool" : "plane_mean") < 1);
  }
}

TEST_CASE("maxima of windows agree with the reference whatever strides, dilations, padding and rank", "[cpu]") {
  struct {
    shape x, kernel, pads, strides, dilations;
  } const cases[] = {{{2, 3, 11}, {4}, {2, 1}, {3}, {2}},
                     {{1, 130, 9, 8}, {2, 2}, {0, 0, 0, 0}, {2, 2}, {1, 1}},
                     {{1, 5, 4, 17}, {1, 5}, {0, 4, 0, 4}, {1, 1}, {1, 2}},
                     {{1, 4, 4, 6, 5}, {2, 3, 2}, {1, 1, 0, 0, 1, 1}, {1, 2, 1}, {2, 1, 3}}};
  for (const auto& c : cases)
    for (const layout l : {layout::plain, layout::channels_last}) {
      INFO(to_string(c.x) << (l == layout::plain ? " plain" : " channels-last"));
      attributes attrs = window(c.pads, c.strides, c.dilations);
      attrs.set("kernel_shape", c.kernel);
      kernel_check check("", "MaxPool", attrs);
      check.input(c.x, false, l);
      if (l == layout::channels_last)
        check.channels_last_output();
      CHECK(check.worst("max_pool") < 1);
    }
}

TEST_CASE("means of windows of channels-last floats agree with the reference", "[cpu]") {
  struct {
    shape x, kernel, pads, strides, dilations;
  } const cases[] = {{{2, 3, 11}, {4}, {2, 1}, {3}, {2}},
                     {{1, 130, 9, 8}, {2, 2}, {0, 0, 0, 0}, {2, 2}, {1, 1}},
                     {{1, 37, 4, 17}, {1, 5}, {0, 2, 0, 2}, {1, 1}, {1, 2}},
                     {{1, 4, 4, 6, 5}, {2, 3, 2}, {1, 1, 0, 0, 1, 1}, {1, 2, 1}, {1, 1, 2}}};
  for (const auto& c : cases)
    for (const int64_t include_pad : {0, 1}) {
      INFO(to_string(c.x) << include_pad);
      attributes attrs = window(c.pads, c.strides, c.dilations);
      attrs.set("kernel_shape", c.kernel);
      attrs.set("count_include_pad", include_pad);
      kernel_check check("", "AveragePool", attrs);
      check.input(c.x, false, layout::channels_last).channels_last_output();
      CHECK(check.worst("pixel_mean") < 1);
    }
}

TEST_CASE("means are quotients, not products with one over the count", "[cpu]") {
  // 0 … 255 at each pixel, with one more in a half of them: the mean is n + 1/2 exactly.
  for (const layout l : {layout::plain, layout::channels_last})
    for (const shape& kernel : {shape{2, 7}, {5, 6}, {13, 2}}) {
      INFO(to_string(kernel) << (l == layout::plain ? " plain" : " channels-last"));
      const int64_t pixels = volume(kernel);
      tensor x(dtype::float32, {1, 256, kernel[0], kernel[1]});
      for (int64_t i = 0; i < x.size(); ++i)
        x.mutable_data<float>()[i] = static_cast<float>(i / pixels + (i % pixels < pixels / 2 ? 1 : 0));
      attributes attrs;
      attrs.set("kernel_shape", kernel);
      kernel_check check("", "AveragePool", attrs);
      check.input(x, false, l);
      if (l == layout::channels_last)
        check.channels_last_output();
      CHECK(check.worst(l == layout::plain ? "dnnl_pool" : "pixel_mean", 0, 1e-12) == 0);
    }
}

TEST_CASE("a mean of no pixels is left to the reference", "[cpu]") {
  attributes attrs = window({0, 0, 0, 0}, {1, 1}, {1, 1});
  attrs.set("kernel_shape", std::vector<int64_t>{2, 2});
  attrs.set("pads", std::vector<int64_t>{2, 0, 0, 0});
  kernel_check check("", "AveragePool", attrs);
  check.input({1, 3, 4, 4}, false, layout::channels_last).channels_last_output();
  CHECK_THROWS_AS(check.worst("pixel_mean"), std::runtime_error);
}

namespace {

/// Ordinary numbers with NaN and infinities among them, and a corner of −inf.
tensor unusual_image(const shape& dims) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  tensor x = test::random_tensor(dims, 7);
  float* v = x.mutable_data<float>();
  const int64_t width = dims.back(), plane = width * dims[dims.size() - 2];
  for (int64_t i = 0; i < x.size(); ++i)
    if (i % plane / width < 4 && i % width < 4)
      v[i] = -infinity;
  for (int64_t i = 0; i < x.size(); i += 37)
    v[i] = i % 3 == 0 ? NAN : i % 3 == 1 ? infinity : -3e38f;
  return x;
}

} // namespace

TEST_CASE("maxima keep NaN and -inf", "[cpu]") {
  for (const char* op : {"MaxPool", "GlobalMaxPool"})
    for (const layout l : {layout::plain, layout::channels_last}) {
      INFO(op << (l == layout::plain ? " plain" : " channels-last"));
      attributes attrs;
      if (std::string(op) == "MaxPool")
        attrs.set("kernel_shape", std::vector<int64_t>{2, 2});
      kernel_check check("", op, attrs);
      check.input(unusual_image({1, 3, 9, 10}), false, l);
      if (l == layout::channels_last)
        check.channels_last_output();
      CHECK(check.worst("max_pool", 0, 1e-30) < 1);
    }
}

TEST_CASE("the mean of a large plane is as exact as a float", "[cpu]") {
  for (const layout l : {layout::plain, layout::channels_last}) {
    kernel_check check("", "GlobalAveragePool");
    check.input({1, 2, 700, 600}, false, l, 0, 1);
    if (l == layout::channels_last)
      check.channels_last_output();
    CHECK(check.worst("plane_mean", 2e-7, 0) < 1);
  }
}

TEST_CASE("a fused activation of -inf is that of the reference", "[cpu]") {
  for (const scalar_code code : {scalar_code::relu, scalar_code::clip, scalar_code::leaky_relu, scalar_code::sigmoid,
                                 scalar_code::tanh, scalar_code::hard_sigmoid, scalar_code::gelu})
    for (const int64_t filters : {1, 3, 32})
      for (const layout l : {layout::plain, layout::channels_last}) {
        INFO(function_of(code).name << ", filters " << filters << (l == layout::plain ? " plain" : " channels-last"));
        attributes attrs;
        set_activation(attrs, {code, code == scalar_code::clip ? -1.f : 0.2f, 0.5f});
        tensor x = test::random_tensor({1, 1, 6, 5}, 3);
        x.mutable_data<float>()[7] = -std::numeric_limits<float>::infinity();
        kernel_check check("troupe", "Conv", attrs);
        check.input(x, false, l).input({filters, 1, 1, 1}, true, layout::plain, 0.5f, 1.5f);
        if (l == layout::channels_last)
          check.channels_last_output();
        CHECK(check.worst("dnnl_conv") < 1);
      }
}

TEST_CASE("a transposed convolution's activation of NaN and infinities is that of the reference", "[cpu]") {
  for (const scalar_code code : {scalar_code::relu, scalar_code::clip, scalar_code::sigmoid, scalar_code::hard_sigmoid})
    for (const float special : {-std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      INFO(function_of(code).name << ", " << special);
      attributes attrs;
      set_activation(attrs, {code, code == scalar_code::clip ? -1.f : 0.2f, 0.5f});
      tensor x = test::random_tensor({1, 4, 9, 9}, 3);
      x.mutable_data<float>()[7] = special;
      kernel_check check("troupe", "ConvTranspose", attrs);
      check.input(x, false).input({4, 4, 3, 3}, true, layout::plain, 0.5f, 1.5f);
      CHECK(check.worst("dnnl_conv_transpose") < 1);
    }
}

namespace {

/// A fused convolution, transposed or not, with everything drawn at random.
class random_conv {
public:
  explicit random_conv(std::minstd_rand& random) : random_(random) {}

  /// Returns the worst error in tolerances, and describes the call in `text`.
  double worst(bool transposed, std::string& text) {
    const int64_t groups = pick(1, 4), in = pick(1, 5), out = pick(1, 5), kernel = pick(1, 3);
    const int64_t pad = pick(0, transposed ? kernel - 1 : 2), stride = pick(1, 2);
    const shape x{pick(1, 2), groups * in, pick(kernel, 7), pick(kernel, 9)};
    const bool last = pick(0, 1), adds = pick(0, 1);
    const bool constant =
        pick(0, 1) || (transposed && adds); // weights that are computed are left to the reference then
    attributes a = window({pad, pad, pad, pad}, {stride, stride}, {1, 1}, groups);
    if (const int64_t kind = pick(0, 2); kind > 0)
      a.set("activation", std::string(kind == 1 ? "LeakyRelu" : "Sigmoid"));
    a.set("activation_alpha", 0.1f);
    const auto size = [&](int64_t d) {
      return transposed ? (d - 1) * stride + kernel - 2 * pad : (d + 2 * pad - kernel) / stride + 1;
    };
    const layout l = last ? layout::channels_last : layout::plain;
    kernel_check check("troupe", transposed ? "ConvTranspose" : "Conv", a);
    check.input(x, false, l);
    check.input(transposed ? shape{x[1], out, kernel, kernel} : shape{groups * out, in, kernel, kernel}, constant);
    check.input({groups * out}, true);
    if (adds)
      check.input({x[0], groups * out, size(x[2]), size(x[3])}, false, l);
    if (last)
      check.channels_last_output();
    text = fmt::format("{}, {} groups, {} to {} channels, kernel {}, pad {}, stride {}{}{}{}", to_string(x), groups, in,
                       out, kernel, pad, stride, last ? ", channels-last" : "", constant ? ", constant" : "",
                       adds ? ", residual" : "");
    return check.worst(transposed ? "dnnl_conv_transpose" : "dnnl_conv", 1e-4, 2e-5);
  }

private:
  int64_t pick(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random_() % static_cast<uint64_t>(most - least + 1));
  }

  std::minstd_rand& random_;
};

} // namespace

TEST_CASE("random fused convolutions agree with the reference", "[cpu]") {
  const bool transposed = GENERATE(false, true);
  std::minstd_rand random(11);
  for (int round = 0; round < 400; ++round) {
    std::string text;
    const double worst = random_conv(random).worst(transposed, text);
    INFO(text);
    CHECK(worst < 1);
  }
}

// Products and convolutions from panels of packed weights, and convolutions channel by channel, against the reference.
#include "base/parallel.hpp"
#include "cpu/kernel_check.hpp"
#include "cpu/panel_product.hpp"
#include "ops/activation.hpp"
#include "support/catch.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

using random_source = std::minstd_rand;

int64_t one_of(random_source& random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}

attributes some_activation(random_source& random) {
  attributes a;
  switch (one_of(random, 0, 3)) {
    case 0: break;
    case 1: set_activation(a, {scalar_code::relu}); break;
    case 2: set_activation(a, {scalar_code::clip, -0.25f, 0.5f}); break;
    default: set_activation(a, {scalar_code::gelu}); break;
  }
  return a;
}

/// A convolution of `x` by filters of `window`, whose sizes, strides, pads and dilations are random.
struct random_conv {
  shape x, w, y;
  attributes attrs;

  random_conv(random_source& random, bool depthwise) : attrs(some_activation(random)) {
    const auto axes = static_cast<size_t>(one_of(random, 1, 2));
    x = {one_of(random, 1, 3), one_of(random, 1, 70)};
    const int64_t filters = depthwise ? x[1] : one_of(random, 1, 90);
    w = {filters, depthwise ? 1 : x[1]};
    y = {x[0], filters};
    std::vector<int64_t> pads(2 * axes), strides(axes), dilations(axes);
    for (size_t i = 0; i < axes; ++i) {
      const int64_t kernel = one_of(random, 1, 4);
      strides[i] = one_of(random, 1, 3);
      dilations[i] = one_of(random, 0, 2) == 0 ? 2 : 1;
      pads[i] = one_of(random, 0, kernel - 1);
      pads[axes + i] = one_of(random, 0, kernel - 1);
      const int64_t extent = (kernel - 1) * dilations[i] + 1;
      const int64_t in = std::max<int64_t>(1, extent - pads[i] - pads[axes + i]) + one_of(random, 0, 20);
      x.push_back(in);
      w.push_back(kernel);
      y.push_back((in + pads[i] + pads[axes + i] - extent) / strides[i] + 1);
    }
    attrs.set("pads", pads);
    attrs.set("strides", strides);
    attrs.set("dilations", dilations);
    attrs.set("group", depthwise ? x[1] : int64_t{1});
  }

  kernel_check check(random_source& random, layout l) const {
    kernel_check made("troupe", "Conv", attrs);
    made.input(x, false, l).input(w, true);
    one_of(random, 0, 1) ? made.input({w[0]}, true) : made.absent();
    if (one_of(random, 0, 1))
      made.input(y, false, layout::channels_last);
    made.channels_last_output();
    return made;
  }
};

} // namespace

TEST_CASE("products of panels agree with the reference", "[cpu]") {
  random_source random(7);
  for (int i = 0; i < 120; ++i) {
    const int64_t m = one_of(random, 1, 5 * panel_rows), k = one_of(random, 1, 300), n = one_of(random, 1, 200);
    INFO(m << " x " << k << " x " << n);
    kernel_check check("troupe", "MatMul", some_activation(random));
    check.input({m, k}).input({k, n}, true);
    one_of(random, 0, 1) ? check.input({n}, true) : check.absent();
    if (one_of(random, 0, 1))
      check.input({m, n});
    CHECK(check.worst("panel_matmul", 1e-4, 2e-5) < 1);
    attributes transposed;
    transposed.set("transB", int64_t{1});
    CHECK(kernel_check("", "Gemm", transposed).input({m, k}).input({n, k}, true).input({n}).worst("panel_matmul") < 1);
  }
}

TEST_CASE("large products of panels agree with the reference", "[cpu]") {
  for (const auto& [m, k, n] : {std::array<int64_t, 3>{200, 1000, 333}, {33, 2000, 1100}, {2000, 40, 70}})
    CHECK(kernel_check("", "MatMul").input({m, k}).input({k, n}, true).worst("panel_matmul", 1e-4, 1e-4) < 1);
  CHECK(kernel_check("", "MatMul").input({2, 3, 9, 33}).input({33, 65}, true).worst("panel_matmul") < 1);
}

TEST_CASE("convolutions from panels agree with the reference", "[cpu]") {
  random_source random(11);
  for (int i = 0; i < 200; ++i) {
    const random_conv c(random, false);
    const layout l = one_of(random, 0, 2) == 0 ? layout::plain : layout::channels_last;
    INFO(to_string(c.x) << " by " << to_string(c.w) << (l == layout::plain ? " plain" : ""));
    CHECK(c.check(random, l).worst("panel_conv", 1e-4, 5e-5) < 1);
  }
}

TEST_CASE("large convolutions from panels agree with the reference", "[cpu]") {
  attributes a;
  a.set("pads", std::vector<int64_t>{1, 1, 1, 1});
  for (const auto& [x, filters] :
       {std::pair<shape, int64_t>{{1, 64, 56, 56}, 64}, {{2, 128, 7, 7}, 256}, {{1, 3, 150, 200}, 24}}) {
    kernel_check check("", "Conv", a);
    check.input(x, false, layout::channels_last).input({filters, x[1], 3, 3}, true).channels_last_output();
    CHECK(check.worst("panel_conv", 1e-4, 1e-4) < 1);
  }
}

TEST_CASE("a convolution along rows of one pixel agrees with the reference", "[cpu]") {
  attributes a;
  a.set("pads", std::vector<int64_t>{2, 0, 1, 0});
  kernel_check check("", "Conv", a);
  check.input({2, 12, 50, 1}, false, layout::channels_last).input({20, 12, 3, 1}, true).channels_last_output();
  CHECK(check.worst("panel_conv") < 1);
}

TEST_CASE("convolutions channel by channel agree with the reference", "[cpu]") {
  random_source random(13);
  for (int i = 0; i < 200; ++i) {
    const random_conv c(random, true);
    if (c.x[1] == 1)
      continue; // one channel in one group is an ordinary convolution
    INFO(to_string(c.x) << " by " << to_string(c.w));
    CHECK(c.check(random, layout::channels_last).worst("depthwise_conv", 1e-4, 2e-5) < 1);
  }
}

TEST_CASE("a product has the same bits by any number of threads", "[cpu]") {
  kernel_resources resources;
  tensor weights(dtype::float32, {700, 300});
  tensor x(dtype::float32, {90, 700});
  std::minstd_rand random(3);
  std::uniform_real_distribution<float> spread(-1, 1);
  for (tensor* t : {&weights, &x})
    std::generate_n(t->mutable_data<float>(), t->size(), [&] { return spread(random); });
  node call{.op_type = "MatMul", .def = find_op("", "MatMul", 13)};
  const auto product = [&](int threads) {
    const thread_limit limit(threads);
    const kernel_request request{
        call,
        {{.type = dtype::float32, .dims = {90, 700}},
         {.type = dtype::float32, .dims = {700, 300}, .constant = weight::from_tensor(weights)}},
        {{.type = dtype::float32, .dims = {90, 300}}},
        resources};
    tensor y(dtype::float32, {90, 300});
    const void* in[] = {x.data(), nullptr};
    void* out = y.mutable_data();
    choose_kernel(request).run->run({in, &out, nullptr});
    return std::vector<float>(y.values<float>().begin(), y.values<float>().end());
  };
  const auto alone = product(1);
  for (const int threads : {2, 3, 8})
    CHECK(product(threads) == alone);
}

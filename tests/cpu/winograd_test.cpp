// Convolutions by Winograd's minimal filtering (src/cpu/winograd.hpp) beside the reference.
#include "cpu/kernel_check.hpp"
#include "cpu/winograd.hpp"
#include "ops/activation.hpp"
#include "ops/evaluate.hpp"
#include "support/catch.hpp"
#include "support/run_graph.hpp"

#include <cmath>
#include <limits>

using namespace troupe;
using namespace troupe::testing;

namespace {

struct sizes {
  int64_t images, channels, rows, columns, filters;
  std::vector<int64_t> pads{1, 1, 1, 1};
};

attributes window_of(const sizes& s) {
  attributes a;
  a.set("pads", s.pads);
  return a;
}

shape output_of(const sizes& s) {
  return {s.images, s.filters, s.rows + s.pads[0] + s.pads[2] - 2, s.columns + s.pads[1] + s.pads[3] - 2};
}

/// A convolution whose results are about 1.
kernel_check conv(const sizes& s, const std::string& domain, attributes attrs) {
  const float most = 1.7f / std::sqrt(9.f * static_cast<float>(s.channels));
  kernel_check check(domain, "Conv", std::move(attrs));
  check.input({s.images, s.channels, s.rows, s.columns}, false, layout::channels_last)
      .input({s.filters, s.channels, 3, 3}, true, layout::plain, -most, most);
  return check;
}

/// Of results about 1 the worst of a million is 1e-5 off.
double worst_of(kernel_check& check) {
  return check.channels_last_output().worst("winograd", 1e-4, 2e-5);
}

tensor random_image(const sizes& s) {
  return test::random_tensor({s.images, s.channels, s.rows, s.columns}, 1);
}

} // namespace

TEST_CASE("Winograd convolutions agree with the reference", "[cpu]") {
  const std::vector<sizes> all{
      {1, 32, 24, 24, 32},
      {1, 48, 25, 23, 32},               // a tile's last rows and columns are not wanted
      {3, 64, 13, 14, 64, {0, 0, 0, 0}}, // several images
      {1, 64, 17, 19, 64, {0, 1, 2, 0}},
      {2, 32, 20, 22, 48, {3, 4, 5, 3}}, // patches beyond the image
      {1, 64, 62, 65, 64},               // several blocks, the last one not full
      {1, 16, 4, 800, 32},
      {1, 128, 13, 14, 64}, // tiles of 2 × 2
      {1, 256, 40, 3, 16 * 3, {1, 1, 0, 2}},
  };
  for (const sizes& s : all) {
    INFO(to_string(output_of(s)));
    kernel_check check = conv(s, "", window_of(s));
    CHECK(worst_of(check) < 1);
  }
}

TEST_CASE("Winograd convolutions end in a bias, a residual and limits", "[cpu]") {
  const sizes s{2, 32, 18, 21, 32};
  for (const activation act : {activation{}, {scalar_code::relu}, {scalar_code::clip, -0.4f, 0.7f}})
    for (const bool constant : {false, true})
      for (const bool residual : {false, true}) {
        INFO(function_of(act.code).name << constant << residual);
        attributes attrs = window_of(s);
        set_activation(attrs, act);
        kernel_check check = conv(s, "troupe", attrs);
        check.input({s.filters}, constant);
        if (residual)
          check.input(output_of(s), false, layout::channels_last);
        CHECK(worst_of(check) < 1);
      }
}

TEST_CASE("what is huge in one pixel stays there in Winograd convolutions", "[cpu]") {
  for (const sizes& s : {sizes{1, 32, 30, 31, 32}, {1, 256, 12, 13, 64}})
    for (const float size : {2e3f, 1e6f, 1e20f, 1e32f}) {
      INFO(to_string(output_of(s)) << " " << size);
      tensor x = random_image(s);
      x.mutable_data<float>()[(5 * s.rows + 7) * s.columns + 8] = size;
      kernel_check check("", "Conv", window_of(s));
      check.input(x, false, layout::channels_last)
          .input({s.filters, s.channels, 3, 3}, true, layout::plain, -0.1f, 0.1f);
      CHECK(worst_of(check) < 1);
    }
}

TEST_CASE("Winograd convolutions leave calls to other kernels that they cannot do or that do not pay", "[cpu]") {
  const auto takes = [](const sizes& s, attributes attrs, float weight) {
    kernel_check check("", "Conv", std::move(attrs));
    check.input({s.images, s.channels, s.rows, s.columns}, false, layout::channels_last)
        .input({s.filters, s.channels, 3, 3}, true, layout::plain, weight, weight);
    try {
      check.channels_last_output().worst("winograd");
      return true;
    } catch (const std::runtime_error&) {
      return false;
    }
  };
  const sizes s{1, 32, 32, 32, 32};
  REQUIRE(takes(s, window_of(s), 1));
  CHECK_FALSE(takes(s, window_of(s), std::numeric_limits<float>::infinity()));
  CHECK_FALSE(takes(s, window_of(s), 1e35f));
  CHECK_FALSE(takes({1, 512, 7, 7, 512}, window_of(s), 1));   // four times the weights, for four tiles
  CHECK_FALSE(takes({1, 528, 16, 16, 512}, window_of(s), 1)); // too much memory
  CHECK_FALSE(takes({1, 24, 64, 64, 32}, window_of(s), 1));
  CHECK_FALSE(takes({1, 32, 64, 64, 40}, window_of(s), 1));
  attributes strided = window_of(s), dilated = window_of(s);
  strided.set("strides", std::vector<int64_t>{2, 1});
  dilated.set("dilations", std::vector<int64_t>{1, 2});
  CHECK_FALSE(takes({1, 32, 96, 96, 32}, strided, 1));
  CHECK_FALSE(takes(s, dilated, 1));
  attributes rounded = window_of({1, 32, 32, 32, 32, {1, 1, 4, 4}}); // Conv does not round its window up
  rounded.set("ceil_mode", int64_t{1});
  CHECK_FALSE(takes({1, 32, 32, 32, 32, {1, 1, 4, 4}}, rounded, 1));
}

TEMPLATE_TEST_CASE("patches say how large their elements are", "[cpu]", winograd::filtering<2>,
                   winograd::filtering<4>) {
  std::vector<float> pixels(static_cast<size_t>(TestType::points * 32), 1.f), v(pixels.size());
  typename TestType::patch_pixels p{};
  for (int64_t i = 0; i < TestType::points; ++i)
    p.at[i] = pixels.data() + i * 32;
  const auto is_even = [&] {
    const winograd::magnitudes m = TestType::transform_patch(p, 32, v.data(), 32);
    const float largest = winograd::largest_of(pixels);
    CHECK((m.largest == largest || (std::isnan(m.largest) && std::isnan(largest))));
    double sum = 0;
    for (const float x : pixels)
      sum += std::abs(x);
    CHECK((m.sum == Approx(sum) || !std::isfinite(sum)));
    return winograd::are_even(m, std::ssize(pixels));
  };
  CHECK(is_even());
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const size_t at : {size_t{0}, size_t{17}, pixels.size() - 1}) {
    for (const float bad : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN(), -1e30f}) {
      pixels[at] = bad;
      CHECK_FALSE(is_even());
    }
    pixels[at] = -100;
    CHECK(is_even());
    pixels[at] = 1;
  }
  std::fill(pixels.begin(), pixels.end(), 0.f);
  CHECK(is_even());
  CHECK(winograd::are_even({900, 1e5}, 100'000));
  CHECK_FALSE(winograd::are_even({1100, 1e5}, 100'000));
}

TEMPLATE_TEST_CASE("filters of Winograd convolutions are polynomials at points", "[cpu]", winograd::filtering<2>,
                   winograd::filtering<4>) {
  const tensor w = test::random_tensor({32, 3, 3, 3}, 1);
  const tensor u = materialise(*TestType::transform_filters(weight::from_tensor(w)));
  REQUIRE(u.dims() == shape{TestType::points, 3, 32});
  // At 0, 1, −1, 2, −2 and infinity, where only the last coefficient counts.
  const double at[]{0, 1, -1, 2, -2};
  const std::vector<double> factors =
      TestType::tile == 4 ? std::vector{0.25, -1. / 6, -1. / 6, 1. / 24, 1. / 24, 1.} : std::vector{1., 0.5, 0.5, 1.};
  const size_t patch = TestType::patch;
  const auto along = [&](size_t i, double a, double b, double c) {
    return factors[i] * (i == patch - 1 ? c : a + at[i] * b + at[i] * at[i] * c);
  };
  for (size_t filter = 0; filter < 32; ++filter)
    for (size_t channel = 0; channel < 3; ++channel) {
      const float* g = w.data<float>() + (filter * 3 + channel) * 9;
      for (size_t i = 0; i < patch; ++i)
        for (size_t j = 0; j < patch; ++j) {
          double rows[3];
          for (size_t k = 0; k < 3; ++k)
            rows[k] = along(i, g[k], g[3 + k], g[6 + k]);
          const float found = u.data<float>()[((i * patch + j) * 3 + channel) * 32 + filter];
          CHECK(found == Approx(along(j, rows[0], rows[1], rows[2])).epsilon(1e-6).margin(1e-6));
        }
    }
}

// shaders/exact_arithmetic.glsl as C++, its guesses up to three units in the last place off, against the CPU; and which
// kernels divide.
#include "support/catch.hpp"
#include "support/spirv.hpp"
#include "support/tie_values.hpp"
#include "troupe/float16.hpp"
#include "vulkan/shader_library.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <set>

namespace glsl {

using uint = uint32_t;
using std::abs;
using std::floor;
using std::max;
using std::min;

uint floatBitsToUint(float x) {
  return std::bit_cast<uint>(x);
}
float uintBitsToFloat(uint x) {
  return std::bit_cast<float>(x);
}
int findMSB(uint x) {
  return 31 - std::countl_zero(x);
}

int units_off = 0;

/// The float that many units in the last place from x.
float moved(float x) {
  return uintBitsToFloat(floatBitsToUint(x) + static_cast<uint>(units_off));
}

#define UNROLLED
#define GUESSED_QUOTIENT(a, b) moved((a) / (b))
#define GUESSED_ROOT(a) moved(std::sqrt(a))
#include "shaders/exact_arithmetic.glsl"

} // namespace glsl

using namespace troupe::test;

namespace {

bool same(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) || (std::isnan(a) && std::isnan(b));
}

/// Returns how many of the quotients and of the roots of the dividends are not the CPU's.
std::pair<int64_t, int64_t> wrong_results(const std::vector<float>& a, const std::vector<float>& b) {
  int64_t quotients = 0, roots = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    quotients += !same(glsl::exact_quotient(a[i], b[i]), a[i] / b[i]);
    roots += !same(glsl::exact_root(a[i]), std::sqrt(a[i]));
  }
  return {quotients, roots};
}

/// Every pair of zeros, infinities, NaN, the ends of the range and of the subnormal numbers.
float_pairs edge_pairs() {
  using limits = std::numeric_limits<float>;
  const float edges[] = {0,
                         1,
                         1.5f,
                         3,
                         limits::infinity(),
                         limits::quiet_NaN(),
                         limits::max(),
                         limits::min(),
                         limits::denorm_min(),
                         3 * limits::denorm_min(),
                         std::nextafter(limits::min(), 0.f),
                         0x1p-63f};
  float_pairs pairs;
  for (float a : edges)
    for (float b : edges)
      for (float sign : {1.f, -1.f}) {
        pairs.a.insert(pairs.a.end(), {a, -a});
        pairs.b.insert(pairs.b.end(), {sign * b, sign * b});
      }
  return pairs;
}

} // namespace

TEST_CASE("quotients and roots are the CPU's from guesses three units off", "[divide]") {
  const std::vector<float> squares = beside_squares(300'000);
  const float_pairs sweeps[] = {
      quotients_beside_ties(1'000'000), any_pairs(300'000), subnormal_pairs(300'000), edge_pairs(), {squares, squares}};
  for (int off = -3; off <= 3; ++off) {
    glsl::units_off = off;
    INFO("guesses " << off << " units off");
    for (const float_pairs& pairs : sweeps) {
      const auto [quotients, roots] = wrong_results(pairs.a, pairs.b);
      CHECK(quotients == 0);
      CHECK(roots == 0);
    }
  }
}

TEST_CASE("products with inverses that are far from halves are rounded as quotients", "[divide]") {
  const float_pairs halves = beside_multiples(1'000'000, 0.5f, 280), whole = beside_multiples(300'000, 0, 280);
  const float_pairs sweeps[] = {halves, whole, any_pairs(300'000), subnormal_pairs(300'000), edge_pairs()};
  const auto limited = [](float x) {
    return x > -256 ? std::min(x, 256.f) : -256;
  }; // NaN is the low end, as in the kernels
  for (const float_pairs& pairs : sweeps) {
    int64_t wrong = 0, decided = 0;
    for (size_t i = 0; i < pairs.a.size(); ++i) {
      const float guess = limited(pairs.a[i] * (1 / pairs.b[i]));
      if (!glsl::is_ordinary(pairs.b[i]) || !glsl::rounds_alike(guess, std::nearbyint(guess)))
        continue;
      ++decided;
      wrong += std::nearbyint(guess) != std::nearbyint(limited(pairs.a[i] / pairs.b[i]));
    }
    CHECK(wrong == 0);
    if (&pairs == &sweeps[1])
      CHECK(decided > 0.99 * std::ssize(pairs.a)); // so that few need the exact quotient
  }
}

TEST_CASE("floats are rounded to float16 as the CPU does", "[divide]") {
  int64_t wrong = 0;
  for (uint32_t half = 0; half < 0x10000; ++half) {
    const float low = troupe::float16::decode(static_cast<uint16_t>(half)),
                high = troupe::float16::decode(static_cast<uint16_t>(half + 1));
    for (const float x : {low, (low + high) / 2, low + (high - low) / 4})
      for (const float near : {x, std::nextafter(x, INFINITY), std::nextafter(x, -INFINITY)})
        wrong += !same(glsl::rounded_to_half(near), troupe::float16(near));
  }
  for (const float x : {65519.f, 65520.f, 1e30f, -1e30f, 1e-30f, -1e-30f, 0x1p-25f, -0x1p-25f, 1e-45f})
    wrong += !same(glsl::rounded_to_half(x), troupe::float16(x));
  CHECK(wrong == 0);
}

TEST_CASE("kernels divide exactly, but in series and in statistics", "[divide]") {
  const std::set<std::string> exact{"exact_quotient", "exact_root"};
  // Their error is among those of a series, or in what float16 rounds away.
  const std::set<std::string> series{"exact_log",   "exact_log1p", "exact_tan",       "exact_atan",   "exact_asin",
                                     "exact_acos",  "exact_sinh",  "exact_cosh",      "exact_asinh",  "exact_acosh",
                                     "erfc_factor", "exact_exp",   "exact_tanh",      "exact_mish",   "long_sigmoid",
                                     "long_log",    "exact_atanh", "activation_erfc", "short_sigmoid"};
  // They divide by sums of any floats, which the CPU adds in another order.
  const std::set<std::string> statistics{
      "layer_norm",      "split_norm",           "normalization",      "batch_norm",    "lrn",
      "attention",       "attention_join",       "attention_matrices", "attention_row", "attention_scores",
      "attention_lanes", "attention_projection", "projections",        "matmul_nbits",  "group_norm",
      "nbits_vectors",   "attention_tiled"};
  // They divide for places between elements, sums of products, or in doubles, whose last digits the CPU has otherwise.
  const std::set<std::string> places{"roi_align", "resample", "grid_sample", "fourier", "det", "doubles"};
  for (const auto& shader : troupe::vulkan::embedded_shaders()) {
    const std::string stem(shader.name.substr(0, shader.name.find('.')));
    for (const auto& [function, found] : inexact_functions(shader.code))
      if (!exact.contains(function) && !series.contains(function) && !statistics.contains(stem) &&
          !places.contains(stem)) {
        INFO(shader.name << ", " << function
                         << "(): use exact_quotient or exact_root of shaders/exact_arithmetic.glsl");
        CHECK(found.divisions == 0);
        CHECK(found.roots == 0);
      }
  }
}

TEST_CASE("drivers may not put two steps of a chain into one operation", "[divide]") {
  for (const auto& shader : troupe::vulkan::embedded_shaders())
    for (const auto& [function, found] : inexact_functions(shader.code))
      if (function == "apply" && shader.name.starts_with("elementwise.")) {
        INFO(shader.name);
        CHECK(found.contractable == 0);
      }
}

// shaders/float_math.glsl as C++ on a device that computes as badly as Vulkan allows, against float64.
#include "support/catch.hpp"
#include "support/scalar_sweep.hpp"

#include <bit>
#include <cmath>

namespace worst_device {

using uint = uint32_t;

/// How the device computes.
struct habits {
  bool fuses = false;   // the product and the sum of fma are one operation
  bool flushes = false; // subnormal operands and results are zeros
  int quotient_units = 0, root_units = 0;
  double exp2_units = 0; // as a part of the allowed error
};
inline habits device;

class real {
public:
  real() = default;
  real(float v) : v_(v) {}
  real(double v) : v_(static_cast<float>(v)) {}
  explicit real(int v) : v_(static_cast<float>(v)) {}
  explicit real(uint v) : v_(static_cast<float>(v)) {}

  float get() const { return v_; }
  float read() const { return flushed(v_); }
  explicit operator int() const { return static_cast<int>(v_); }
  explicit operator uint() const { return static_cast<uint>(v_); }

  static float flushed(float v) { return device.flushes && std::abs(v) < 0x1p-126f ? std::copysign(0.f, v) : v; }
  static real moved(float v, double units) {
    return std::isfinite(v) && v != 0 ? flushed(static_cast<float>(v + units * std::abs(v) * 0x1p-23)) : v;
  }

  friend real operator+(real a, real b) { return flushed(a.read() + b.read()); }
  friend real operator-(real a, real b) { return flushed(a.read() - b.read()); }
  friend real operator*(real a, real b) { return flushed(a.read() * b.read()); }
  friend real operator/(real a, real b) { return moved(a.read() / b.read(), device.quotient_units); }
  friend real operator-(real a) { return -a.v_; }
  friend bool operator<(real a, real b) { return a.read() < b.read(); }
  friend bool operator>(real a, real b) { return a.read() > b.read(); }
  friend bool operator<=(real a, real b) { return a.read() <= b.read(); }
  friend bool operator>=(real a, real b) { return a.read() >= b.read(); }
  friend bool operator==(real a, real b) { return a.read() == b.read(); }
  real& operator*=(real b) { return *this = *this * b; }

private:
  float v_ = 0;
};

real fma(real a, real b, real c) {
  return device.fuses ? real(real::flushed(std::fma(a.read(), b.read(), c.read()))) : a * b + c;
}
real abs(real x) {
  return std::abs(x.get());
}
real floor(real x) {
  return std::floor(x.read());
}
real sqrt(real x) {
  return real::moved(std::sqrt(x.read()), device.root_units);
}
real exp2(real x) {
  return real::moved(static_cast<float>(std::exp2(static_cast<double>(x.read()))),
                     device.exp2_units * (3 + 2 * std::abs(x.get())));
}
real min(real a, real b) {
  return b < a ? b : a;
}
real max(real a, real b) {
  return a < b ? b : a;
}
int min(int a, int b) {
  return std::min(a, b);
}
uint floatBitsToUint(real x) {
  return std::bit_cast<uint>(x.get());
}
real uintBitsToFloat(uint x) {
  return std::bit_cast<float>(x);
}
int findMSB(uint x) {
  return 31 - std::countl_zero(x);
}
void umulExtended(uint a, uint b, uint& high, uint& low) {
  const uint64_t product = uint64_t{a} * b;
  high = static_cast<uint>(product >> 32);
  low = static_cast<uint>(product);
}

#undef TROUPE_EXACT_ARITHMETIC // other tests include it in another way
#undef UNROLLED
#undef GUESSED_QUOTIENT
#undef GUESSED_ROOT
#define UNROLLED
#define GUESSED_QUOTIENT(a, b) ((a) / (b))
#define GUESSED_ROOT(a) sqrt(a)
#define TROUPE_COMMON
#define infinity uintBitsToFloat(0x7f800000u)
#define precise
#define float real
#include "shaders/float_math.glsl"
#undef TROUPE_EXACT_ARITHMETIC // other tests include it in another way
#undef UNROLLED
#undef GUESSED_QUOTIENT
#undef GUESSED_ROOT
#undef float
#undef precise
#undef infinity
#undef nan_value

} // namespace worst_device

using namespace troupe::test;

namespace {

using worst_device::habits, worst_device::real;

constexpr habits all_habits[] = {
    {},
    {.fuses = true},
    {.quotient_units = 2, .root_units = 2, .exp2_units = 1},
    {.fuses = true, .quotient_units = -2, .root_units = -2, .exp2_units = -1},
    {.flushes = true, .quotient_units = 2, .root_units = -2, .exp2_units = -1},
    {.fuses = true, .flushes = true, .quotient_units = -2, .root_units = 2, .exp2_units = 1}};

struct shader_function {
  const char* name;
  real (*of)(real);
  double (*exact)(double);
};

constexpr shader_function functions[] = {
    {"exp", worst_device::exact_exp, std::exp},
    {"log", worst_device::exact_log, std::log},
    {"log1p", worst_device::exact_log1p, std::log1p},
    {"expm1", worst_device::exact_expm1, std::expm1},
    {"tanh", worst_device::exact_tanh, std::tanh},
    {"erf", worst_device::exact_erf, std::erf},
    {"sigmoid", worst_device::exact_sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }},
    {"swish", [](real x) { return worst_device::exact_swish(x, 1.0); },
     [](double x) { return x / (1 + std::exp(-x)); }},
    {"QuickGelu", [](real x) { return worst_device::exact_swish(x, 1.702f); },
     [](double x) { return x / (1 + std::exp(-double(1.702f) * x)); }},
    {"gelu", [](real x) { return worst_device::activate(worst_device::scalar_gelu, x, 0.0, 0.0); },
     [](double x) { return x / 2 * std::erfc(-x / std::sqrt(2.0)); }},
    {"gelu_tanh", worst_device::exact_gelu_tanh,
     [](double x) { return x / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }},
    {"mish", worst_device::exact_mish, [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }},
    {"sin", worst_device::exact_sin, std::sin},
    {"cos", worst_device::exact_cos, std::cos},
    {"tan", worst_device::exact_tan, std::tan},
    {"asin", worst_device::exact_asin, std::asin},
    {"acos", worst_device::exact_acos, std::acos},
    {"atan", worst_device::exact_atan, std::atan},
    {"sinh", worst_device::exact_sinh, std::sinh},
    {"cosh", worst_device::exact_cosh, std::cosh},
    {"asinh", worst_device::exact_asinh, std::asinh},
    {"acosh", worst_device::exact_acosh, std::acosh},
    {"atanh", worst_device::exact_atanh, std::atanh},
};

} // namespace

TEST_CASE("shader functions are within 2e-6 of float64 on the worst device", "[shaders]") {
  const std::vector<float> points = sweep_points(sweep_size());
  for (const habits& h : all_habits)
    for (const shader_function& f : functions) {
      worst_device::device = h;
      INFO(f.name << " fuses " << h.fuses << " flushes " << h.flushes << " units " << h.quotient_units);
      sweep_error worst;
      for (const float x : points)
        worst.add(f.of(x).get(), f.exact(x), x);
      INFO(worst.text());
      CHECK(worst.units() <= 1);
    }
  worst_device::device = {};
}

TEST_CASE("activations of float16 results are within 2e-5 of float64 on the worst device", "[shaders]") {
  using worst_device::activate_half;
  const shader_function halves[] = {
      {"sigmoid", [](real x) { return activate_half(worst_device::scalar_sigmoid, x, 0.0, 0.0); },
       [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"swish", [](real x) { return activate_half(worst_device::scalar_swish, x, 1.702f, 0.0); },
       [](double x) { return x / (1 + std::exp(-double(1.702f) * x)); }},
      {"gelu", [](real x) { return activate_half(worst_device::scalar_gelu, x, 0.0, 0.0); },
       [](double x) { return x / 2 * std::erfc(-x / std::sqrt(2.0)); }},
      {"gelu_tanh", [](real x) { return activate_half(worst_device::scalar_gelu_tanh, x, 0.0, 0.0); },
       [](double x) { return x / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }},
      {"relu", [](real x) { return activate_half(worst_device::scalar_relu, x, 0.0, 0.0); },
       [](double x) { return x < 0 ? 0 : x; }}};
  constexpr double smallest = 0x1p-24; // of float16
  const std::vector<float> points = sweep_points(sweep_size() / 8);
  for (const habits& h : all_habits)
    for (const shader_function& f : halves) {
      worst_device::device = h;
      INFO(f.name << " fuses " << h.fuses << " flushes " << h.flushes << " units " << h.quotient_units);
      double worst = 0, at = 0;
      for (const float x : points) {
        const double got = f.of(x).get(), exact = f.exact(x);
        if (std::abs(x) > 65504 || std::isnan(x))
          continue;
        const double error = std::abs(got - exact) / std::max(std::abs(exact), smallest);
        if (!(error <= worst))
          at = x;
        worst = std::isnan(error) ? HUGE_VAL : std::max(worst, error);
      }
      INFO("worst " << worst << " at " << at);
      CHECK(worst <= 2e-5);
      CHECK(std::isnan(f.of(NAN).get()));
    }
  worst_device::device = {};
}

TEST_CASE("the shader's power is within 2e-6 of float64 on the worst device", "[shaders]") {
  const std::vector<float> points = sweep_points(sweep_size() / 8);
  constexpr float exponents[] = {0.1f, -0.3f, 0.5f, 0.75f, 2,     3,      -2,   15,    -16,  17,
                                 63,   -64,   1.5f, 2.2f,  -7.7f, 100.5f, 1000, -5e4f, 3e7f, 1e-3f};
  for (const habits& h : all_habits)
    for (const float b : exponents) {
      worst_device::device = h;
      sweep_error worst;
      for (const float a : points) {
        worst.add(worst_device::exact_pow(a, b).get(), std::pow(double(a), double(b)), a);
        // From 1 on in small steps, where large exponents give ordinary numbers.
        const float beside = 1 + std::log2(std::abs(a)) / (8 * std::max(1.f, std::abs(b)));
        worst.add(worst_device::exact_pow(beside, b).get(), std::pow(double(beside), double(b)), beside);
      }
      INFO("exponent " << b << " fuses " << h.fuses << " flushes " << h.flushes << " units " << h.quotient_units << ": "
                       << worst.text());
      CHECK(worst.units() <= 1);
    }
  worst_device::device = {};
}

TEST_CASE("the shader's sine and cosine are never beyond 1", "[shaders]") {
  for (const habits& h : all_habits) {
    worst_device::device = h;
    float most = 0;
    for (const float x : sweep_points(sweep_size()))
      if (std::isfinite(x))
        most = std::max({most, std::abs(worst_device::exact_sin(x).get()), std::abs(worst_device::exact_cos(x).get())});
    CHECK(most <= 1);
  }
  worst_device::device = {};
}

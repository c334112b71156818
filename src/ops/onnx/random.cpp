// Random numbers: RandomNormal, RandomNormalLike, RandomUniform, RandomUniformLike, Bernoulli, Multinomial.
//
// The numbers are those of the Mersenne Twister MT19937-64 through the distributions of the standard library. With
// attribute `seed` they follow from that: every run gives the same. Without, every execution gives others
// (`op_def::draws`), one after a lost device too.
//   Bernoulli:   true with the probability that the operand states; a NaN never is
//   Multinomial: `sample_size` classes of each row, whose elements are logarithms of probabilities, up to a constant of
//     the row
#include "ops/families.hpp"
#include "ops/infer.hpp"
#include "ops/operand.hpp"

#include <atomic>
#include <bit>
#include <cmath>
#include <random>

namespace troupe {
namespace {

/// Returns a generator that the attribute `seed` decides; without it, one that no other call has.
std::mt19937_64 generator_of(const attributes& attrs) {
  if (attrs.has("seed"))
    return std::mt19937_64(std::bit_cast<uint32_t>(attrs.real("seed")));
  static const uint64_t process = [] {
    std::random_device source;
    return uint64_t{source()} << 32 | source();
  }();
  static std::atomic<uint64_t> calls = 0;
  const uint64_t call = ++calls;
  std::seed_seq seeds{static_cast<uint32_t>(process), static_cast<uint32_t>(process >> 32), static_cast<uint32_t>(call),
                      static_cast<uint32_t>(call >> 32)};
  return std::mt19937_64(seeds);
}

/// Returns the type that attribute `dtype` states, `otherwise` if there is none; it must be one of `allowed`.
dtype type_of_results(const attributes& attrs, dtype otherwise, dtype_set allowed) {
  const dtype type = stated_type(attrs, "dtype", otherwise);
  if (!(allowed & set_of(type)))
    fail(errc::invalid_model, "results of {} are asked for, which no such numbers can have", to_string(type));
  return type;
}

/// Fills output 0 with what `draw` returns, one after another.
template <class F>
void fill(kernel_context& c, F&& draw) {
  tensor y(dtype::float64, shape(c.output(0).dims.begin(), c.output(0).dims.end()));
  for (int64_t i = 0; i < y.size(); ++i)
    y.mutable_data<double>()[i] = draw(static_cast<size_t>(i));
  convert(y.view(), c.output(0));
}

// -- normal and uniform

void infer_of_shape(infer_context& c) {
  const std::vector<int64_t> dims = c.attrs().integers("shape");
  for (const int64_t d : dims)
    if (d < 0)
      fail(errc::invalid_model, "attribute 'shape' has a negative dim, {}", d);
  c.set_output(0, type_of_results(c.attrs(), dtype::float32, types::floats), to_symbolic(dims));
}

void infer_like(infer_context& c) {
  c.set_output(0, type_of_results(c.attrs(), c.type(0), types::floats), c.dims(0));
}

void normal(kernel_context& c) {
  std::mt19937_64 generator = generator_of(c.attrs());
  std::normal_distribution<double> standard;
  const double mean = c.attrs().real("mean", 0), scale = c.attrs().real("scale", 1);
  fill(c, [&](size_t) { return mean + scale * standard(generator); });
}

void uniform(kernel_context& c) {
  std::mt19937_64 generator = generator_of(c.attrs());
  std::uniform_real_distribution<double> unit;
  const double low = c.attrs().real("low", 0), high = c.attrs().real("high", 1);
  fill(c, [&](size_t) { return low + (high - low) * unit(generator); });
}

// -- Bernoulli

void infer_bernoulli(infer_context& c) {
  c.set_output(0, type_of_results(c.attrs(), c.type(0), types::floats | types::integers | types::boolean), c.dims(0));
}

void bernoulli(kernel_context& c) {
  std::mt19937_64 generator = generator_of(c.attrs());
  std::uniform_real_distribution<double> unit;
  const std::vector<double> probability = to_double(c.input(0));
  fill(c, [&](size_t i) { return unit(generator) < probability[i] ? 1. : 0.; });
}

// -- Multinomial

void infer_multinomial(infer_context& c) {
  const symbolic_shape& x = c.dims(0);
  const int64_t samples = c.attrs().integer("sample_size", 1);
  if (x.size() != 2)
    fail(errc::invalid_model, "probabilities of shape {}; [rows, classes] is needed", to_string(x));
  if (samples < 1)
    fail(errc::invalid_model, "attribute 'sample_size' is {}, not positive", samples);
  c.set_output(0, type_of_results(c.attrs(), dtype::int32, set_of(dtype::int32) | set_of(dtype::int64)),
               {x[0], samples});
}

/// Running sums of a row's probabilities, up to a factor.
std::vector<double> sums_of(std::span<const double> logarithms) {
  const double largest = *std::max_element(logarithms.begin(), logarithms.end());
  std::vector<double> sums;
  double sum = 0;
  for (const double l : logarithms)
    sums.push_back(sum += std::exp(l - largest));
  if (!(std::isfinite(sum) && sum > 0))
    fail(errc::invalid_input, "a row's probabilities add up to {}", sum);
  return sums;
}

void multinomial(kernel_context& c) {
  std::mt19937_64 generator = generator_of(c.attrs());
  std::uniform_real_distribution<double> unit;
  const int64_t rows = c.input(0).dims[0], classes = c.input(0).dims[1], samples = c.output(0).dims[1];
  if (classes == 0 && rows > 0)
    fail(errc::invalid_input, "there are no classes to choose from");
  const std::vector<double> x = to_double(c.input(0));
  std::vector<int64_t> chosen;
  for (int64_t r = 0; r < rows; ++r) {
    const std::vector<double> sums = sums_of({x.data() + r * classes, static_cast<size_t>(classes)});
    for (int64_t s = 0; s < samples; ++s) {
      const auto at = std::upper_bound(sums.begin(), sums.end(), unit(generator) * sums.back());
      chosen.push_back(std::min<int64_t>(at - sums.begin(), classes - 1));
    }
  }
  convert(tensor::of<int64_t>({rows, samples}, chosen).view(), c.output(0));
}

constexpr operand_range no_operands{0, 0};

constexpr auto random_rows = std::to_array<op_def>({
    op_row("RandomNormal", 1, infer_of_shape, normal, {.inputs = no_operands, .types = types::floats, .draws = true}),
    op_row("RandomUniform", 1, infer_of_shape, uniform, {.inputs = no_operands, .types = types::floats, .draws = true}),
    op_row("RandomNormalLike", 1, infer_like, normal, {.types = types::any, .draws = true}),
    op_row("RandomUniformLike", 1, infer_like, uniform, {.types = types::any, .draws = true}),
    op_row("Multinomial", 7, infer_multinomial, multinomial, {.types = types::floats, .draws = true}),
    op_row("Bernoulli", 15, infer_bernoulli, bernoulli, {.types = types::floats, .draws = true}),
});

} // namespace

extern constinit const op_table onnx_random_ops = random_rows;

} // namespace troupe

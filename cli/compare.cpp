#include "cli/compare.hpp"

#include "tensor/convert.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe::cli {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

double distance(double got, double want, const tolerance& allowed) {
  if (got == want || (std::isnan(got) && std::isnan(want)))
    return 0;
  if (!std::isfinite(got) || !std::isfinite(want))
    return infinite;
  return std::abs(got - want) / (allowed.absolute + allowed.relative * std::abs(want));
}

comparison compare_numbers(const std::vector<double>& got, const std::vector<double>& want, const tolerance& allowed) {
  comparison result;
  size_t at = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    if (const double d = distance(got[i], want[i], allowed); d > result.worst) {
      result.worst = d;
      at = i;
    }
    const double apart = std::abs(got[i] - want[i]);
    if (!std::isfinite(apart))
      continue;
    result.largest_absolute = std::max(result.largest_absolute, apart);
    if (want[i] != 0)
      result.largest_relative = std::max(result.largest_relative, apart / std::abs(want[i]));
  }
  if (result.worst > 1)
    result.difference = fmt::format("element {}: got {:.9g}, expected {:.9g}", at, got[at], want[at]);
  return result;
}

std::vector<double> float8_values(const tensor& t) {
  tensor floats(dtype::float32, t.dims());
  convert(t.view(), floats.mutable_ref());
  return to_double(floats.view());
}

/// Elements of any fixed-size type by bytes, of strings by value.
bool equal_elements(const tensor& got, const tensor& want) {
  if (got.type() == dtype::string) {
    const auto a = got.values<std::string>(), b = want.values<std::string>();
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  const auto* a = got.data<char>();
  return std::equal(a, a + got.bytes(), want.data<char>());
}

} // namespace

comparison compare(const tensor& got, const tensor& want, const tolerance& allowed) {
  if (got.type() != want.type() || got.dims() != want.dims())
    return {.worst = infinite,
            .difference = fmt::format("got {} {}, expected {} {}", to_string(got.type()), to_string(got.dims()),
                                      to_string(want.type()), to_string(want.dims()))};
  if (types::numeric & set_of(want.type()))
    return compare_numbers(to_double(got.view()), to_double(want.view()), allowed);
  if (types::float8 & set_of(want.type())) // not by bytes: several encodings are NaN
    return compare_numbers(float8_values(got), float8_values(want), {.relative = 0, .absolute = 0});
  if (equal_elements(got, want))
    return {};
  return {.worst = infinite, .difference = "elements differ"};
}

} // namespace troupe::cli

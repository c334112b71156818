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
    if (const double d = distance(got[i], want[i], allowed); !(d <= result.worst)) {
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
  if (!(result.worst <= 1))
    result.difference = fmt::format("element {}: got {:.9g}, expected {:.9g}", at, got[at], want[at]);
  return result;
}

/// Adds up what whole tensors differ by; an element that is NaN on one side only is an infinite distance.
comparison compare_by_l2(const std::vector<double>& got, const std::vector<double>& want, const tolerance& allowed) {
  comparison result = compare_numbers(got, want, allowed);
  double apart = 0, norm = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double difference = std::abs(got[i] - want[i]);
    if (got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i])))
      norm += std::isfinite(want[i]) ? want[i] * want[i] : 0;
    else if (std::isfinite(difference)) {
      apart += difference * difference;
      norm += want[i] * want[i];
    } else
      apart = infinite;
  }
  const double distance = apart == 0 ? 0 : std::sqrt(apart) / std::max(std::sqrt(norm), allowed.absolute);
  result.worst = distance == 0 ? 0 : distance / *allowed.l2;
  result.difference = !(result.worst <= 1) ? fmt::format("relative L2 distance {:.3g}", distance) : "";
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

/// Compares the tensors of two sequences or optionals of as many elements; what is worst counts.
comparison compare_elements(const tensor& got, const tensor& want, const tolerance& allowed) {
  comparison result;
  for (int64_t i = 0; i < want.size(); ++i) {
    const comparison c = compare(got.data<tensor>()[i], want.data<tensor>()[i], allowed);
    result.worst = std::max(result.worst, c.worst);
    result.largest_absolute = std::max(result.largest_absolute, c.largest_absolute);
    result.largest_relative = std::max(result.largest_relative, c.largest_relative);
    if (!c.difference.empty() && result.difference.empty())
      result.difference = fmt::format("tensor {}: {}", i, c.difference);
  }
  return result;
}

} // namespace

tolerance on_scale_of(const tensor& want, const tolerance& allowed) {
  double largest = 0;
  if (types::floats & set_of(want.type()))
    for (double v : to_double(want.view()))
      if (std::isfinite(v))
        largest = std::max(largest, std::abs(v));
  const double step = want.type() == dtype::bfloat16 ? 0x1p-7 : want.type() == dtype::float16 ? 0x1p-10 : 0;
  return {std::max(allowed.relative, step), std::max(allowed.absolute, step) * largest};
}

comparison compare(const tensor& got, const tensor& want, const tolerance& allowed) {
  if (got.type() != want.type() || got.dims() != want.dims())
    return {.worst = infinite,
            .difference = fmt::format("got {} {}, expected {} {}", to_string(got.type()), to_string(got.dims()),
                                      to_string(want.type()), to_string(want.dims()))};
  if (is_container(want.type()))
    return compare_elements(got, want, allowed);
  if (types::floats & set_of(want.type()))
    return (allowed.l2 ? compare_by_l2 : compare_numbers)(to_double(got.view()), to_double(want.view()), allowed);
  if (types::small_floats & set_of(want.type())) // not by bytes: several encodings are NaN
    return compare_numbers(float8_values(got), float8_values(want), {.relative = 0, .absolute = 0});
  if (equal_elements(got, want))
    return {};
  if (types::integers & set_of(want.type()))
    if (auto result = compare_numbers(to_double(got.view()), to_double(want.view()), {0, 0}); result.worst > 0)
      return result;
  return {.worst = infinite, .difference = "elements differ"};
}

} // namespace troupe::cli

#include "run/symbol_forecast.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

std::optional<bindings> symbol_forecast::next(const bindings& now) {
  std::vector<int64_t> values, growth;
  for (const auto& [name, value] : now)
    values.push_back(value);
  if (values.size() == last_.size()) // a plan's symbols are always the same
    std::ranges::transform(values, last_, std::back_inserter(growth), std::minus<>());
  const bool grows = std::ranges::any_of(growth, [](int64_t g) { return g > 0; }) &&
                     std::ranges::none_of(growth, [](int64_t g) { return g < 0; });
  last_ = std::move(values);
  if (std::exchange(growth_, growth) != growth || !grows)
    return std::nullopt;
  bindings expected = now;
  auto g = growth.begin();
  for (auto& [name, value] : expected)
    value += *g++;
  return expected;
}

} // namespace troupe

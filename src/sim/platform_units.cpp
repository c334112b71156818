#include "sim/platform_units.hpp"

#include "base/printable.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

namespace troupe::sim {
namespace {

constexpr double most_speed = 1e30, most_seconds = 1e9;

/// What a unit is worth; nullopt for another one.
using scale = std::optional<double> (*)(std::string_view unit);

/// Prefixes of powers of 10, or with an 'i' after them of 2; no prefix: 1.
std::optional<double> prefix(std::string_view text) {
  constexpr std::string_view letters = "kMGTPEZY";
  if (text.empty())
    return 1;
  const bool is_binary = text.size() == 2 && text[1] == 'i';
  const size_t at = (is_binary && text[0] == 'K') ? 0 : letters.find(text[0]);
  if (at == std::string_view::npos || (text.size() != 1 && !is_binary) || (is_binary && text[0] == 'k'))
    return std::nullopt;
  return std::pow(is_binary ? 1024.0 : 1000.0, static_cast<double>(at + 1));
}

std::optional<double> speed_unit(std::string_view unit) {
  constexpr std::array<std::string_view, 9> names{"", "kilo", "mega", "giga", "tera", "peta", "exa", "zeta", "yotta"};
  if (unit.ends_with("flops")) {
    const std::string_view name = unit.substr(0, unit.size() - 5);
    const auto found = std::find(names.begin(), names.end(), name == "zetta" ? "zeta" : name);
    return found == names.end() ? std::nullopt : std::optional(std::pow(1000.0, found - names.begin()));
  }
  if (!unit.ends_with('f') || unit.ends_with("if"))
    return std::nullopt;
  return prefix(unit.substr(0, unit.size() - 1));
}

std::optional<double> bandwidth_unit(std::string_view unit) {
  const bool is_bits = unit.ends_with("bps");
  if (!is_bits && !unit.ends_with("Bps"))
    return std::nullopt;
  const std::optional<double> times = prefix(unit.substr(0, unit.size() - 3));
  return times && is_bits ? std::optional(*times / 8) : times;
}

std::optional<double> time_unit(std::string_view unit) {
  constexpr std::array<std::pair<std::string_view, double>, 9> units{{{"w", 604800},
                                                                      {"d", 86400},
                                                                      {"h", 3600},
                                                                      {"m", 60},
                                                                      {"s", 1},
                                                                      {"ms", 1e-3},
                                                                      {"us", 1e-6},
                                                                      {"ns", 1e-9},
                                                                      {"ps", 1e-12}}};
  for (const auto& [name, seconds] : units)
    if (unit == name)
      return seconds;
  return std::nullopt;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view spaces = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(spaces), text.size()));
  return text.substr(0, text.find_last_not_of(spaces) + 1);
}

double quantity(const xml_element& e, std::string_view attribute, std::string_view text, scale unit_of,
                std::string_view usual, double most) {
  text = trimmed(text);
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  if (status != std::errc{} || !std::isfinite(value))
    e.complain("{} is '{}'; a number with a unit, such as 1{}, is needed", attribute, printable(text.substr(0, 60)),
               usual);
  const std::optional<double> worth = unit_of(unit.empty() ? usual : unit);
  if (!worth)
    e.complain("{} is '{}'; there is no unit '{}'", attribute, printable(text.substr(0, 60)),
               printable(unit.substr(0, 60)));
  if (!(value >= 0 && value * *worth <= most))
    e.complain("{} is '{}'; it may be 0 to {}{}", attribute, printable(text.substr(0, 60)), most, usual);
  return value * *worth;
}

double above_0(const xml_element& e, std::string_view attribute, double value) {
  if (!(value > 0))
    e.complain("{} must be above 0", attribute);
  return value;
}

/// Returns the part of a list between commas, taking it off.
std::string_view next_part(std::string_view& list, char comma) {
  const std::string_view part = list.substr(0, list.find(comma));
  list.remove_prefix(std::min(part.size() + 1, list.size()));
  return part;
}

std::optional<int64_t> whole(std::string_view text) {
  int64_t value = 0;
  text = trimmed(text);
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  return status == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

} // namespace

double read_speed(const xml_element& e, std::string_view attribute, size_t state) {
  std::string_view list = e.text(attribute), part;
  for (size_t i = 0; i <= state; ++i) {
    if (list.empty())
      e.complain("{} has {} speeds, and number {} is asked for", attribute, i, state);
    part = next_part(list, ',');
  }
  return above_0(e, attribute, quantity(e, attribute, part, speed_unit, "f", most_speed));
}

double read_bandwidth(const xml_element& e, std::string_view attribute) {
  return above_0(e, attribute, quantity(e, attribute, e.text(attribute), bandwidth_unit, "Bps", most_speed));
}

double read_seconds(const xml_element& e, std::string_view attribute) {
  return quantity(e, attribute, e.text(attribute, "0"), time_unit, "s", most_seconds);
}

std::vector<int64_t> read_radical(const xml_element& e, std::string_view attribute, size_t most) {
  std::vector<int64_t> numbers;
  std::string_view list = e.text(attribute);
  while (!list.empty()) {
    const std::string_view part = next_part(list, ',');
    std::string_view rest = part;
    const std::optional<int64_t> first = whole(next_part(rest, '-'));
    const std::optional<int64_t> last = rest.empty() ? first : whole(rest);
    if (!first || !last || *last < *first || *first < 0)
      e.complain("{} has '{}'; numbers such as 0-3,7 are needed", attribute, printable(part.substr(0, 60)));
    if (static_cast<size_t>(*last - *first) >= most - numbers.size())
      e.complain("{} names more than {} hosts", attribute, most);
    for (int64_t n = *first; n <= *last; ++n)
      numbers.push_back(n);
  }
  return numbers;
}

int64_t read_count(const xml_element& e, std::string_view attribute, int64_t otherwise, int64_t least, int64_t most) {
  const std::string* given = e.find(attribute);
  const std::optional<int64_t> value = given ? whole(*given) : otherwise;
  if (!value || *value < least || *value > most)
    e.complain("{} is '{}'; a whole number from {} to {} is needed", attribute, printable(given->substr(0, 60)), least,
               most);
  return *value;
}

} // namespace troupe::sim

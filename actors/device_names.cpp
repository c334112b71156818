#include "actors/device_names.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace troupe::actors {
namespace {

constexpr int max_instances = 256;

constexpr auto known_names = std::to_array<std::pair<std::string_view, device_kind>>({
    {"cpu", device_kind::cpu},
    {"null", device_kind::null},
});

int parse_count(std::string_view text, std::string_view whole) {
  int count = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (problem != std::errc() || end != text.data() + text.size() || count < 1 || count > max_instances)
    fail(errc::invalid_argument, "device '{}': the number behind * must be 1 to {}", whole, max_instances);
  return count;
}

device_kind parse_kind(std::string_view base, std::string_view whole) {
  for (const auto& [name, kind] : known_names)
    if (name == base)
      return kind;
  std::string known = "all";
  for (const auto& [name, kind] : known_names)
    known += fmt::format(", {}", name);
  fail(errc::invalid_argument, "unknown device '{}'; known are: {}; 'NAME*2' opens two", whole, known);
}

void add(std::vector<device_request>& requests, std::string_view whole) {
  const size_t star = whole.find('*');
  const std::string_view base = whole.substr(0, star);
  const device_kind kind = parse_kind(base, whole);
  const int count = star == std::string_view::npos ? 1 : parse_count(whole.substr(star + 1), whole);
  if (std::any_of(requests.begin(), requests.end(), [&](const device_request& r) { return r.name == base; }))
    fail(errc::invalid_argument, "device '{}' is asked for twice; '{}*2' opens two", base, base);
  for (int i = 0; i < count; ++i)
    requests.push_back({kind, i == 0 ? std::string(base) : fmt::format("{}#{}", base, i)});
}

} // namespace

std::vector<device_request> parse_device_names(const std::vector<std::string>& names) {
  std::vector<device_request> requests;
  for (const std::string& name : names)
    add(requests, name == "all" ? "cpu" : name); // the null device is not physical
  return requests;
}

} // namespace troupe::actors

#include "actors/device_names.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace troupe::actors {
namespace {

constexpr int max_instances = 256;
constexpr std::string_view gpu_prefix = "vulkan:", slow_prefix = "slow:";

constexpr auto known_names = std::to_array<std::pair<std::string_view, device_kind>>({
    {"cpu", device_kind::cpu},
    {"null", device_kind::null},
});

/// Returns the number that `text` is; throws unless it is 1 to `most`.
int parse_number(std::string_view text, std::string_view after, int most, std::string_view whole) {
  int number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || end != text.data() + text.size() || number < 1 || number > most)
    fail(errc::invalid_argument, "device '{}': the number after {} must be 1 to {}", whole, after, most);
  return number;
}

/// A device's kind and what its name says besides.
struct parsed_base {
  device_kind kind;
  size_t gpu = 0;
  int percent = 100;
};

parsed_base parse_base(std::string_view base, std::string_view whole) {
  for (const auto& [name, kind] : known_names)
    if (name == base)
      return {kind};
  if (base.starts_with(gpu_prefix)) {
    const std::string_view digits = base.substr(gpu_prefix.size());
    size_t gpu = 0;
    const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), gpu);
    if (problem == std::errc() && end == digits.data() + digits.size())
      return {device_kind::vulkan, gpu};
  }
  if (base.starts_with(slow_prefix))
    return {device_kind::slow, 0, parse_number(base.substr(slow_prefix.size()), slow_prefix, 100, whole)};
  fail(errc::invalid_argument,
       "unknown device '{}'; known are: all, cpu, null, slow:50, vulkan:0, vulkan:1 …; 'NAME*2' opens two", whole);
}

void add(std::vector<device_request>& requests, std::string_view whole) {
  const size_t star = whole.find('*');
  const std::string_view base = whole.substr(0, star);
  const parsed_base parsed = parse_base(base, whole);
  const int count =
      star == std::string_view::npos ? 1 : parse_number(whole.substr(star + 1), "*", max_instances, whole);
  if (std::any_of(requests.begin(), requests.end(), [&](const device_request& r) { return r.name == base; }))
    fail(errc::invalid_argument, "device '{}' is asked for twice; '{}*2' opens two", base, base);
  for (int i = 0; i < count; ++i)
    requests.push_back({.kind = parsed.kind,
                        .name = i == 0 ? std::string(base) : fmt::format("{}#{}", base, i),
                        .gpu = parsed.gpu,
                        .percent = parsed.percent});
}

bool has(const std::vector<device_request>& requests, device_kind kind) {
  return std::any_of(requests.begin(), requests.end(), [&](const device_request& r) { return r.kind == kind; });
}

} // namespace

split_names split_device_names(const std::vector<std::string>& names) {
  split_names split;
  for (const std::string& name : names)
    (name.find('/') == std::string::npos ? split.here : split.elsewhere).push_back(name);
  return split;
}

bool may_name_gpus(const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(),
                     [](const std::string& name) { return name == "all" || name.starts_with(gpu_prefix); });
}

std::vector<device_request> parse_device_names(const std::vector<std::string>& names, size_t hardware_gpus) {
  std::vector<device_request> requests;
  for (const std::string& name : names) {
    if (name != "all") {
      add(requests, name);
      continue;
    }
    for (size_t gpu = 0; gpu < hardware_gpus; ++gpu) {
      add(requests, fmt::format("{}{}", gpu_prefix, gpu));
      requests.back().by_all = true;
    }
    add(requests, "cpu"); // the null device is not physical
  }
  if (has(requests, device_kind::vulkan) && !has(requests, device_kind::cpu))
    requests.push_back({.kind = device_kind::cpu, .name = "cpu", .fallback = true});
  return requests;
}

} // namespace troupe::actors

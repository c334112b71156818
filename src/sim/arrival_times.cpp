#include "sim/arrival_times.hpp"

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/seeded_random.hpp"

#include <charconv>
#include <cmath>
#include <fstream>

namespace troupe::sim {
namespace {

constexpr size_t longest_line = 64;

/// Returns whether there was another line; of one that is too long, as much as shows that. Hostile files have lines
/// without end.
bool next_line(std::istream& in, std::string& line) {
  line.clear();
  int c = in.get();
  for (; c != EOF && c != '\n' && line.size() <= longest_line; c = in.get())
    line += static_cast<char>(c);
  if (line.ends_with('\r'))
    line.pop_back();
  return c != EOF || !line.empty();
}

} // namespace

std::vector<double> arrival_times(const arrivals& how, size_t requests, uint64_t seed) {
  if (how.how == arrivals::process::listed)
    return how.times_s;
  seeded_random random(seed);
  std::vector<double> times(requests, 0);
  for (size_t i = 1; i < requests; ++i)
    times[i] = times[i - 1] - std::log(random.open_unit()) / how.per_second;
  return times;
}

arrivals listed_arrivals(const std::filesystem::path& file) {
  arrivals a{.how = arrivals::process::listed};
  std::ifstream in(file, std::ios::binary);
  std::string line;
  for (size_t number = 1; next_line(in, line); ++number) {
    const auto refuse = [&](std::string_view what) {
      fail(errc::invalid_argument, "{}: line {}: {}", file.string(), number, what);
    };
    if (number > most_arrivals)
      refuse(fmt::format("more than {} lines", most_arrivals));
    if (line.empty())
      continue;
    if (line.size() > longest_line) // only its beginning was read
      refuse(fmt::format("longer than {} characters", longest_line));
    double at = 0;
    const auto [end, status] = std::from_chars(line.data(), line.data() + line.size(), at);
    if (status != std::errc{} || end != line.data() + line.size())
      refuse(fmt::format("'{}' is not a number", printable(line)));
    if (!(at >= 0 && at <= latest_arrival_s))
      refuse(fmt::format("a time from 0 to {:g} seconds is needed", latest_arrival_s));
    if (!a.times_s.empty() && at < a.times_s.back())
      refuse("earlier than the time before it; times must ascend");
    a.times_s.push_back(at);
  }
  if (!in.is_open() || in.bad() || !in.eof())
    fail(errc::io, "the times of requests in '{}' cannot be read", file.string());
  if (a.times_s.empty())
    fail(errc::invalid_argument, "{}: no times", file.string());
  return a;
}

} // namespace troupe::sim

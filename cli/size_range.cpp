#include "cli/size_range.hpp"

#include "base/error.hpp"

#include <charconv>
#include <string_view>

namespace troupe::cli {
namespace {

/// Reads a whole number at the beginning of `text` and takes it away; returns whether there is one.
bool take_number(std::string_view& text, int64_t& number) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return code == std::errc();
}

bool take(std::string_view& text, std::string_view what) {
  if (!text.starts_with(what))
    return false;
  text.remove_prefix(what.size());
  return true;
}

} // namespace

size_range parse_range(const std::string& text, const char* option) {
  const size_t is = text.find('=');
  size_range r{.name = text.substr(0, is)};
  std::string_view rest = is == std::string::npos ? "" : std::string_view(text).substr(is + 1);
  bool good = is != std::string::npos && take_number(rest, r.first);
  r.last = r.first;
  if (good && take(rest, ".."))
    good = take_number(rest, r.last);
  if (good && take(rest, "/"))
    good = take_number(rest, r.step);
  if (!good || !rest.empty() || r.step < 1 || r.first < 0 || r.last < r.first)
    fail(errc::invalid_argument, "{} '{}' is not NAME=SIZE, NAME=FIRST..LAST or NAME=FIRST..LAST/STEP", option, text);
  return r;
}

} // namespace troupe::cli

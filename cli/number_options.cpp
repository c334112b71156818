#include "cli/number_options.hpp"

#include <CLI/CLI.hpp>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <string>

namespace troupe::cli {
namespace {

/// As CLI11's checks: returns what is wrong, empty if nothing is. What is not a number at all is CLI11's to refuse.
std::string check_real(const std::string& text) {
  return std::isfinite(std::strtod(text.c_str(), nullptr)) ? "" : "'" + text + "' is not finite";
}

std::string check_signed(const std::string& text) {
  errno = 0;
  std::strtoll(text.c_str(), nullptr, 0);
  return errno == ERANGE ? "'" + text + "' is out of range" : "";
}

std::string check_unsigned(const std::string& text) {
  errno = 0;
  std::strtoull(text.c_str(), nullptr, 0);
  return errno == ERANGE || text.starts_with('-') ? "'" + text + "' is out of range" : "";
}

} // namespace

void require_numbers(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();
    if (type.starts_with("FLOAT"))
      option->check(check_real);
    else if (type.starts_with("INT"))
      option->check(check_signed);
    else if (type.starts_with("UINT"))
      option->check(check_unsigned);
  }
  for (CLI::App* command : app.get_subcommands(nullptr))
    require_numbers(*command);
}

} // namespace troupe::cli

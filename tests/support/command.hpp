// Runs the `troupe` command as a person would.
#pragma once

#include <string>

namespace troupe::test {

struct command_result {
  int status = -1;    // exit status; 128 and more: a signal
  std::string output; // stdout, or both streams if `errors` was asked for
};

/// Runs `troupe` with a shell command line's arguments. `errors`: stderr is taken too.
command_result run_command(const std::string& arguments, bool errors = false);

/// Runs a line of shell.
command_result run_shell(const std::string& line);

/// Returns a model of tests/data as an argument.
std::string data_file(const std::string& name);

} // namespace troupe::test

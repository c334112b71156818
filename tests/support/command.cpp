#include "support/command.hpp"
#include "support/places.hpp"

#include <cstdio>
#include <stdexcept>
#include <sys/wait.h>

namespace troupe::test {

command_result run_command(const std::string& arguments, bool errors) {
  // For AddressSanitizer's build: a driver is unloaded before leaks are looked for, so tests/lsan.supp cannot name it
  // and memory that it keeps would count as the command's. Our own leaks are looked for in the tests' process.
  const std::string no_leaks = "ASAN_OPTIONS=\"$ASAN_OPTIONS:detect_leaks=0\" ";
  return run_shell(no_leaks + "'" + command_path() + "' " + arguments + (errors ? " 2>&1" : " 2>/dev/null"));
}

command_result run_shell(const std::string& line) {
  FILE* pipe = ::popen(line.c_str(), "r");
  if (!pipe)
    throw std::runtime_error("popen failed");
  command_result result;
  char piece[4096];
  for (size_t got = 0; (got = std::fread(piece, 1, sizeof piece, pipe)) > 0;)
    result.output.append(piece, got);
  const int status = ::pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

std::string data_file(const std::string& name) {
  return "'" + test_data() + "/" + name + "'";
}

} // namespace troupe::test

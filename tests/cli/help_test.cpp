// The text of `--help` and `--help-all`.
#include "support/catch.hpp"
#include "support/command.hpp"

#include <sstream>
#include <vector>

using namespace troupe::test;
using Catch::Contains;

namespace {

std::string printed(const std::string& arguments) {
  const command_result r = run_command(arguments);
  REQUIRE(r.status == 0);
  return r.output;
}

/// Returns the lines of a help text after `heading` that begin with `start`, without it, up to the next blank.
std::vector<std::string> names_in(const std::string& help, const std::string& heading, const std::string& start) {
  const size_t begin = help.find(heading);
  std::istringstream lines(begin == std::string::npos ? std::string() : help.substr(begin));
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(start) && line.size() > start.size() && line[start.size()] != ' ')
      names.push_back(line.substr(start.size(), line.find(' ', start.size()) - start.size()));
  return names;
}

} // namespace

TEST_CASE("help shows a dozen options at most and says where the others are", "[cli]") {
  const std::vector<std::string> commands = names_in(printed("--help"), "\nSubcommands:", "  ");
  REQUIRE(commands.size() > 10);
  for (const std::string& command : commands) {
    const std::string text = printed(command + " --help");
    const size_t usual = names_in(text, "\nOptions:", "  -").size();
    const size_t all = names_in(printed(command + " --help-all"), "\nOptions:", "  -").size();
    INFO(command << ": " << usual << " of " << all);
    CHECK(usual == std::min<size_t>(all, 12));
    const std::string rest = std::to_string(all - usual) + " more options: troupe " + command + " --help-all";
    CHECK((text.find(rest) != std::string::npos) == (usual < all));
  }
}

TEST_CASE("options are shown in groups", "[cli]") {
  const std::string usual = printed("run --help"), all = printed("run --help-all");
  for (const char* group : {"Options", "Inputs", "Devices", "Other hosts", "Plan", "Output", "Strategy"}) {
    CHECK_THAT(usual, Contains("\n" + std::string(group) + ":\n"));
    CHECK_THAT(all, Contains("\n" + std::string(group) + ":\n"));
  }
  CHECK_THAT(usual, Contains("--policy") && !Contains("--max-delay"));
  CHECK_THAT(all, Contains("--max-delay") && !Contains("more options"));
  CHECK_THAT(printed("--help-all"), Contains("--max-delay") && Contains("--capture"));
}

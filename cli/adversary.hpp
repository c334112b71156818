// `troupe compare --adversary A,B` and what it saves.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::cli {

struct adversary_arguments {
  std::vector<std::string> policies; // the one that is to lose, the one that is to win
  uint64_t seed = 1;
  std::filesystem::path save;
};

/// Searches the instance on which the first policy loses most to the second, saves it and prints it.
void search_instance(const adversary_arguments& args, bool as_json);

/// Prints what each policy makes of an instance that was saved.
void print_instance(std::string_view text, bool as_json);

} // namespace troupe::cli

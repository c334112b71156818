#include "cli/listed_values.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

namespace troupe::cli {
namespace {

constexpr std::array<std::string_view, 6> listing = {"--input", "--dim", "--pin", "--bind", "--grow", "--memory"};

bool is_assignment(const std::string& word) {
  std::error_code ignored;
  return !word.starts_with('-') && word.find('=') != std::string::npos && !std::filesystem::exists(word, ignored);
}

} // namespace

std::vector<std::string> repeat_options(const std::vector<std::string>& words) {
  std::vector<std::string> all;
  std::string option;      // whose values may follow
  bool has_value = false;  // its first one has come
  bool only_words = false; // after "--"
  for (const std::string& word : words) {
    const std::string name = word.substr(0, word.find('='));
    const bool begins = !only_words && std::ranges::find(listing, name) != listing.end();
    if (begins) {
      option = name;
      has_value = name.size() < word.size(); // --input=a=1
    } else if (!option.empty() && !has_value) {
      has_value = true;
    } else if (!option.empty() && is_assignment(word)) {
      all.push_back(option);
    } else {
      option.clear();
    }
    only_words = only_words || word == "--";
    all.push_back(word);
  }
  return all;
}

} // namespace troupe::cli

// What a person is told of a text that is not JSON.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace troupe {

/// Returns where `text` is not JSON (line and column, which counts bytes), what is wrong there and what to do. `why`:
/// what the parser has thrown, whose own words are for programmers.
std::string json_problem(std::string_view text, const nlohmann::json::exception& why);

} // namespace troupe

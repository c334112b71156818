#include "plan/saved_plan.hpp"

#include "base/json_problem.hpp"
#include "base/json_reader.hpp"
#include "base/text_file.hpp"

namespace troupe {
namespace {

using json = nlohmann::json;

/// No sensible plan is longer: a node takes some hundred bytes.
constexpr int64_t max_file_bytes = int64_t{1} << 30;

json parse(std::string_view text) {
  try {
    return json::parse(text);
  } catch (const json::exception& e) {
    fail(errc::invalid_plan, "not a plan: {}", json_problem(text, e));
  }
}

saved_chunk read_chunk(const json_reader& entry) {
  saved_chunk c{.device = entry["device"].text()};
  for (const json_reader& n : entry["nodes"].list())
    c.nodes.push_back({n["name"].text(), n["op"].text(), n.has("inserted")});
  return c;
}

plan_split read_split(const json_reader& entry) {
  const auto number = [](const json_reader& n) { return n.integer(INT64_MIN, INT64_MAX); };
  plan_split split{static_cast<int>(number(entry["along"])), {}, {}};
  for (const json_reader& name : entry["devices"].list())
    split.team.push_back(name.text());
  for (const json_reader& n : entry["begin"].list())
    split.begin.push_back(number(n));
  return split;
}

} // namespace

std::shared_ptr<const saved_plan> parse_saved_plan(std::string_view text, const std::string& source) try {
  const json file = parse(text);
  const json_reader root(file, "");
  if (const json& version = root["troupe_plan"].raw(); version != saved_plan_version)
    fail(errc::invalid_plan, "plan version {} is not known; this troupe reads version {}",
         version.is_number() ? version.dump() : "that is not a number", saved_plan_version);
  auto saved = std::make_shared<saved_plan>();
  saved->source = source;
  saved->structure = root["model"]["structure"].text();
  for (const json_reader& entry : root["chunks"].list())
    saved->chunks.push_back(read_chunk(entry));
  if (root.has("split"))
    saved->split = read_split(root["split"]);
  hasher h;
  h.add(text);
  saved->key = h.digest();
  return saved;
} catch (const error& e) {
  fail(errc::invalid_plan, "{}: {}", source, e.what());
}

std::shared_ptr<const saved_plan> read_saved_plan(const std::filesystem::path& file) {
  return parse_saved_plan(
      read_text(file, max_file_bytes, fmt::format("the plan '{}'", file.string()), errc::invalid_plan), file.string());
}

} // namespace troupe

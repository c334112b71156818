#include "schedules/adversary.hpp"

#include "base/json_problem.hpp"
#include "base/json_reader.hpp"

namespace troupe {
namespace {

constexpr double least_weight = 1e-6, greatest_weight = 1e6;
constexpr size_t most_listed = 1000;
constexpr std::string_view mark = "{\"troupe_instance\":";

std::vector<json_reader> list_of(const json_reader& at) {
  std::vector<json_reader> all = at.list();
  if (all.empty() || all.size() > most_listed)
    at.complain("a list of 1 to {} is needed", most_listed);
  return all;
}

std::vector<double> numbers(const json_reader& at) {
  std::vector<double> all;
  for (const json_reader& one : list_of(at))
    all.push_back(one.number(least_weight, greatest_weight));
  return all;
}

cost_edge read_edge(const json_reader& at, int64_t tasks) {
  const std::vector<json_reader> parts = at.list();
  if (parts.size() != 3)
    at.complain("an edge is [from, to, size]");
  const int64_t to = parts[1].integer(1, tasks - 1);
  return {static_cast<task_id>(parts[0].integer(0, to - 1)), static_cast<task_id>(to),
          parts[2].number(least_weight, greatest_weight)};
}

adverse_instance read_instance(const json_reader& file) {
  file.allow({"troupe_instance", "loser", "winner", "seed", "work", "speeds", "links", "edges"});
  file["troupe_instance"].integer(1, 1);
  adverse_instance found{
      file["loser"].text(), file["winner"].text(), static_cast<uint64_t>(file["seed"].integer(0, INT64_MAX)), {}};
  scheduling_instance& is = found.instance;
  is.work = numbers(file["work"]);
  is.speeds = numbers(file["speeds"]);
  for (const json_reader& row : list_of(file["links"]))
    if (is.links.emplace_back(numbers(row)).size() != is.speeds.size())
      row.complain("a link for each of {} devices is needed", is.speeds.size());
  if (is.links.size() != is.speeds.size())
    file["links"].complain("a row for each of {} devices is needed", is.speeds.size());
  for (const json_reader& edge : file["edges"].list())
    is.edges.push_back(read_edge(edge, std::ssize(is.work)));
  return found;
}

} // namespace

std::string to_json(const adverse_instance& found) {
  const scheduling_instance& is = found.instance;
  nlohmann::json edges = nlohmann::json::array();
  for (const cost_edge& e : is.edges)
    edges.push_back({e.from, e.to, e.seconds});
  const nlohmann::json rest{{"loser", found.loser}, {"winner", found.winner}, {"seed", found.seed}, {"work", is.work},
                            {"speeds", is.speeds},  {"links", is.links},      {"edges", edges}};
  return fmt::format("{} 1, {}\n", mark, rest.dump().substr(1));
}

bool is_instance(std::string_view text) {
  return text.starts_with(mark);
}

adverse_instance parse_instance(std::string_view text) {
  nlohmann::json file;
  try {
    file = nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& why) {
    throw error(errc::invalid_argument, json_problem(text, why));
  }
  return read_instance(json_reader(file, ""));
}

} // namespace troupe

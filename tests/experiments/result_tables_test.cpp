#include "experiments/result_tables.hpp"

#include "experiments/made_results.hpp"
#include "support/catch.hpp"

#include <nlohmann/json.hpp>

using namespace troupe;
using namespace troupe::experiments;
using Catch::Contains;
using json = nlohmann::json;

namespace {

/// Results with a name that breaks text without quotes.
results hostile_results() {
  results all = made_results({{0.002, 0.003}, {0.001, 0.0011}});
  for (setting& s : all.what.settings)
    s.model = "a,\"b\"\n</script><script>alert(1)</script>\x1b[31m\xff.onnx";
  all.what.name = "<!--<script>";
  all.problems.push_back({1, std::nullopt, "</script>\nno room"});
  return all;
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

/// Returns the text between the first `begin` and the next `end`.
std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const size_t from = text.find(begin) + begin.size();
  return text.substr(from, text.find(end, from) - from);
}

} // namespace

TEST_CASE("results as CSV have a line a run", "[experiment]") {
  const results all = made_results({{0.25, 1e-7}, {3}});
  CHECK(to_csv(all, analyse(all)) == "model,dims,target,policy,strategy,mode,repetition,seconds\n"
                                     "models/m.onnx,batch=8,\"vulkan:0,cpu\",single,none,real,0,0.25\n"
                                     "models/m.onnx,batch=8,\"vulkan:0,cpu\",single,none,real,1,1e-07\n"
                                     "models/m.onnx,batch=8,\"vulkan:0,cpu\",heft,none,real,0,3\n");
  const results hostile = hostile_results();
  CHECK_THAT(to_csv(hostile, analyse(hostile)), Contains("\n\"a,\"\"b\"\"\n</script>"));
}

TEST_CASE("results as JSON hold everything", "[experiment]") {
  results all = made_results({{2, 4}, {1, 2}});
  all.made_with = {{{"troupe", "0.1.0"}}, {{"m.onnx", 12, {1, 2}}}};
  all.problems = {{1, 1, "no room"}};
  const json j = json::parse(to_json(all, analyse(all)));
  CHECK(j["troupe_results"] == 1);
  CHECK(j["made_with"]["versions"]["troupe"] == "0.1.0");
  CHECK(j["made_with"]["files"][0] ==
        json({{"path", "m.onnx"}, {"bytes", 12}, {"xxh3_128", "00000000000000010000000000000002"}}));
  CHECK(j["requests"] == json({{"count", 1}, {"in_flight", 1}}));
  CHECK(j["problems"][0] == json({{"setting", 1}, {"repetition", 1}, {"what", "no room"}}));
  CHECK(j["simulation"]["mean_error"].is_null());
  const json& first = j["settings"][0];
  CHECK(first["devices"] == json({"vulkan:0", "cpu"}));
  CHECK(first["dims"] == json({{"batch", 8}}));
  CHECK(first["runs"] == json({{0, 2.0}, {1, 4.0}}));
  CHECK(first["seconds"]["median_s"] == 3.0);
  CHECK(first["beside_baseline"].is_null());
  const json& second = j["settings"][1];
  CHECK(second["policy"] == "heft");
  CHECK(second["beside_baseline"]["speedup"] == 2.0);
  CHECK(second["beside_baseline"]["pairs"] == 2);
  CHECK(second["beside_baseline"]["verdict"] == "unclear");
  CHECK(second["beside_baseline"]["t_probability"].get<double>() == Approx(0.2048327646991335));
  const results hostile = hostile_results();
  CHECK(json::parse(to_json(hostile, analyse(hostile)))["name"] == "<!--<script>");
}

TEST_CASE("results as text have a table a group", "[experiment]") {
  results all = made_results({{0.010, 0.012, 0.011}, {0.005, 0.0061, 0.0054}}, {mode::real});
  all.problems = {{1, 2, "no room\n"}};
  const std::string text = to_text(all, analyse(all));
  CHECK_THAT(text,
             Contains("made up: 3 repetitions of 1 request, 1 in flight\n\nm.onnx batch=8 on vulkan:0,cpu, real\n"));
  CHECK_THAT(text, Contains("median ms          mean ms, 95 %"));
  CHECK_THAT(text, Contains("single         none                3       11.000         11.000 ± 2.484  baseline\n"));
  CHECK_THAT(text, Contains("heft           none                3        5.400          5.500 ± 1.383    2.000"));
  CHECK_THAT(text, Contains("  faster\n"));
  CHECK_THAT(text, Contains("failed: m.onnx batch=8 on vulkan:0,cpu, heft, none, repetition 2: no room\\n\n"));
  const results both = made_results({{1.1}, {}, {}, {1.0}, {}, {}}, {mode::simulated, mode::real});
  CHECK_THAT(to_text(both, analyse(both)),
             Contains("simulated +10.0 % of real: m.onnx") && Contains("mean error of 1 simulated settings: 10.0 %"));
  const results hostile = hostile_results();
  const std::string shown = to_text(hostile, analyse(hostile));
  CHECK(shown.find('\x1b') == std::string::npos);
  CHECK(shown.find('\xff') == std::string::npos);
}

TEST_CASE("results as a page need nothing else, and names in them are no HTML", "[experiment]") {
  const results all = hostile_results();
  const std::string page = to_page(all, analyse(all));
  CHECK_THAT(page, Catch::StartsWith("<!doctype html>") && Catch::EndsWith("</html>\n"));
  CHECK_THAT(page,
             Contains("d3js.org v") && Contains("default-src 'none'") && Contains("Redistributions in binary form"));
  // Its own four scripts and no other: nothing of the data ends one or begins one.
  CHECK(count(page, "<script") == 4);
  CHECK(count(page, "</script>") == 4);
  for (const char* elsewhere : {"<script src", "<link", "@import", "<img", "<iframe"})
    CHECK(page.find(elsewhere) == std::string::npos);
  for (const char* place : {"@data@", "@d3@", ".css@", ".js@", ".txt@"})
    CHECK(page.find(place) == std::string::npos);
  const json data = json::parse(between(page, "<script id=\"data\" type=\"application/json\">", "</script>"));
  CHECK(data["name"] == "<!--<script>");
  CHECK(data["settings"].size() == 2);
}

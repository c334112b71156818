#include "experiments/results.hpp"

#include "experiments/made_results.hpp"
#include "support/catch.hpp"
#include "troupe/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <unistd.h>

using namespace troupe;
using namespace troupe::experiments;
using Catch::Contains;

namespace {

const std::vector<double> slow{10.1, 10.2, 9.9, 10.0, 10.3, 9.8}, fast{5.0, 5.2, 5.1, 4.9, 5.3, 5.0},
    same{10.2, 10.0, 10.1, 9.9, 10.1, 10.0};

} // namespace

TEST_CASE("settings are compared with their baseline, pair by pair", "[experiment]") {
  results all = made_results({slow, fast, same});
  std::reverse(all.rows.begin(), all.rows.end()); // rows come in any order
  const analysis found = analyse(all);
  REQUIRE(found.settings.size() == 3);
  CHECK(!found.settings[0].beside_baseline);
  CHECK(found.settings[0].seconds.median == Approx(10.05));
  CHECK(found.settings[1].rows[3].seconds == 4.9);
  const comparison& faster = found.settings[1].beside_baseline.value();
  CHECK(faster.speedup == Approx(60.3 / 30.5));
  CHECK(faster.t.mean_difference == Approx(-29.8 / 6));
  CHECK(faster.wilcoxon.probability.value() == Approx(2.0 / 64));
  CHECK(faster.verdict == verdict::faster);
  const comparison& unclear = found.settings[2].beside_baseline.value();
  CHECK(unclear.verdict == verdict::unclear);
  // Of two tests the smaller probability counts twice, the larger once.
  CHECK(faster.t_adjusted.value() == Approx(2 * faster.t.probability.value()));
  CHECK(faster.wilcoxon_adjusted.value() == Approx(4.0 / 64));
  CHECK(unclear.t_adjusted.value() == Approx(unclear.t.probability.value()));
  CHECK(analyse(made_results({fast, slow})).settings[1].beside_baseline.value().verdict == verdict::slower);
}

TEST_CASE("a probability that one test would call small is not enough among many", "[experiment]") {
  const std::vector<double> less{9.9, 10.1, 9.95, 9.8, 10.2, 9.65}; // alone: p = 0.028
  const analysis alone = analyse(made_results({slow, less}));
  CHECK(alone.settings[1].beside_baseline.value().verdict == verdict::faster);
  const analysis among = analyse(made_results({slow, less, same}));
  CHECK(among.settings[1].beside_baseline.value().t.probability.value() < 0.05);
  CHECK(among.settings[1].beside_baseline.value().verdict == verdict::unclear);
}

TEST_CASE("only repetitions that both have are paired", "[experiment]") {
  results all = made_results({slow, fast});
  std::erase_if(all.rows, [](const result_row& r) { return r.repetition == (r.setting == 0 ? 0u : 4u); });
  const comparison c = analyse(all).settings[1].beside_baseline.value();
  CHECK(c.t.pairs == 4);
  CHECK(c.speedup == Approx((10.2 + 9.9 + 10.0 + 9.8) / (5.2 + 5.1 + 4.9 + 5.0)));
  std::erase_if(all.rows, [](const result_row& r) { return r.setting == 0; });
  CHECK(!analyse(all).settings[1].beside_baseline);
}

TEST_CASE("one real run shows nothing, one certain simulation all", "[experiment]") {
  const auto verdict_of = [](const results& all) { return analyse(all).settings[1].beside_baseline.value().verdict; };
  CHECK(verdict_of(made_results({{2}, {1}})) == verdict::unclear);
  results simulated = made_results({{2}, {1}}, {mode::simulated});
  CHECK(verdict_of(simulated) == verdict::faster);
  CHECK(verdict_of(made_results({{1}, {2}}, {mode::simulated})) == verdict::slower);
  CHECK(verdict_of(made_results({{1, 1}, {1, 1}}, {mode::simulated})) == verdict::equal);
  simulated.what.noise = 0.1;
  CHECK(verdict_of(simulated) == verdict::unclear);
  simulated.what.noise = 0;
  simulated.what.arrivals = {.how = arrivals::process::poisson, .per_second = 10}; // other seeds bring other arrivals
  CHECK(verdict_of(simulated) == verdict::unclear);
}

TEST_CASE("simulated times are held against real ones of the same setting", "[experiment]") {
  const results all = made_results({{1.1}, {1.8}, {5}, {1.0}, {2.0}, {}}, {mode::simulated, mode::real});
  const analysis found = analyse(all);
  REQUIRE(found.simulation_errors.size() == 2); // one has no real run
  CHECK(found.simulation_errors[0].simulated == 0);
  CHECK(found.simulation_errors[0].real == 3);
  CHECK(found.simulation_errors[0].error == Approx(0.1));
  CHECK(found.simulation_errors[1].error == Approx(-0.1));
  CHECK(found.mean_error.value() == Approx(0.1)); // of their sizes
  CHECK(!analyse(made_results({slow})).mean_error);
}

TEST_CASE("rows that fit no experiment are refused", "[experiment]") {
  const auto with = [](result_row row) {
    results all = made_results({{1, 2}, {1, 2}});
    all.rows.push_back(row);
    return all;
  };
  CHECK_THROWS_WITH(analyse(with({2, 0, 1})), Contains("setting 2"));
  CHECK_THROWS_WITH(analyse(with({0, 2, 1})), Contains("repetition 2"));
  CHECK_THROWS_WITH(analyse(with({1, 1, 3})), Contains("repetition 1 of setting 1 is there twice"));
  for (const double seconds : {-1.0, static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    results all = made_results({{1}, {1}});
    all.rows[0].seconds = seconds;
    CHECK_THROWS_AS(analyse(all), error);
  }
}

TEST_CASE("files are recorded by size and hash", "[experiment]") {
  const auto file = std::filesystem::temp_directory_path() / fmt::format("troupe_record_{}", getpid());
  std::ofstream(file) << "abc";
  const file_record record = record_of(file);
  CHECK(record.path == file.string());
  CHECK(record.bytes == 3);
  CHECK(to_hex(record.hash) == "06b05ab6733a618578af5f94892f3950"); // XXH3's value, as xxhsum -H2 prints it
  std::ofstream(file) << std::string(3 << 20, 'x');
  CHECK(record_of(file).bytes == 3 << 20);
  std::filesystem::remove(file);
  CHECK_THROWS_WITH(record_of(file), Contains("cannot be read"));
}

// Tuning by made-up times: which kernels are tried and chosen, and that a wrong one never is.
#include "measure/tuning.hpp"

#include "support/catch.hpp"

#include <map>
#include <set>

using namespace troupe;

namespace {

/// A model whose calls' ways take these times, in µs, the usual one first; `wrong` ways make outputs differ.
struct made_up_model {
  std::vector<std::vector<double>> times;
  std::set<std::pair<size_t, size_t>> wrong = {};
  std::set<size_t> wrong_together = {}; // calls whose other ways cannot be together
  double confirmed_at = 1;              // times of long rounds are those times this, the usual ones aside
  std::map<size_t, double> costs =
      {}; // µs that a run takes longer with another way of a call than the call itself does
  std::vector<std::vector<size_t>> rounds = {};
  size_t long_rounds = 0;

  std::vector<tunable_call> calls() const {
    std::vector<tunable_call> all;
    for (size_t c = 0; c < times.size(); ++c) {
      tunable_call call{{1, c}, fmt::format("call {}", c), {static_cast<node_id>(c)}, {}};
      for (size_t w = 0; w < times[c].size(); ++w)
        call.ways.push_back({{c, w}, fmt::format("way {}", w)});
      all.push_back(std::move(call));
    }
    return all;
  }

  tuning_round run(std::span<const size_t> ways, bool long_round) {
    rounds.emplace_back(ways.begin(), ways.end());
    long_rounds += long_round ? 1 : 0;
    tuning_round round;
    bool together = !wrong_together.empty();
    for (const size_t c : wrong_together)
      together = together && ways[c] != 0;
    for (size_t c = 0; c < times.size(); ++c) {
      if (wrong.contains({c, ways[c]}) || together)
        round.difference = "differs";
      const double factor = ways[c] != 0 && long_round ? confirmed_at : 1;
      round.usual_s.push_back(times[c][0] * 1e-6);
      round.tried_s.push_back(times[c][ways[c]] * 1e-6 * factor);
      round.usual_run_s += round.usual_s.back();
      round.tried_run_s += round.tried_s.back() + (ways[c] != 0 && costs.contains(c) ? costs.at(c) * 1e-6 : 0);
    }
    return round;
  }

  tuning tune_all(size_t most_rounds = SIZE_MAX) {
    return tune(
        calls(), [&](std::span<const size_t> ways, bool is_long) { return run(ways, is_long); },
        [&] { return rounds.size() < most_rounds ? 1.0 : 0.0; }, [](double, double) {});
  }
};

std::vector<size_t> ways_of(const tuning& t) {
  std::vector<size_t> ways;
  for (const tuned_call& c : t.calls)
    ways.push_back(c.way);
  return ways;
}

} // namespace

TEST_CASE("each call gets its fastest way, if that is better by a margin", "[measure][C11]") {
  made_up_model m{{{10, 9, 5, 7}, {10, 9.8}, {10, 20, 11}, {4, 3}}};
  const tuning found = m.tune_all();
  CHECK(ways_of(found) == std::vector<size_t>{2, 0, 0, 1});
  CHECK(m.rounds == std::vector<std::vector<size_t>>{{1, 1, 1, 1}, {2, 0, 2, 0}, {3, 0, 0, 0}, {2, 0, 0, 1}});
  CHECK(m.long_rounds == 1);
  CHECK(found.rounds == 3);
  CHECK(found.all_rounds == 3);
  CHECK(found.calls[0].usual_s == Approx(10e-6));
  CHECK(found.calls[0].seconds == Approx(5e-6));
  CHECK(found.calls[1].seconds == Approx(10e-6));
  CHECK(found.usual_run_s == Approx(34e-6));
  CHECK(found.tuned_run_s == Approx(28e-6));
  CHECK(found.refused.empty());
  const std::vector<kernel_choice> kept = choices_of(m.calls(), found);
  REQUIRE(kept.size() == 4); // what stays usual is known to be the fastest: an older choice goes
  CHECK(kept[0].kernel == hash128{0, 2});
  CHECK(kept[0].call == hash128{1, 0});
  CHECK(kept[1].kernel == hash128{1, 0});
  CHECK(kept[3].seconds == Approx(3e-6));
}

TEST_CASE("a wrong kernel is found and never chosen", "[measure][C11]") {
  made_up_model m{{{10, 5, 6}, {10, 1, 8}, {10, 7}, {10, 12, 13}, {10, 9}}, {{1, 1}, {3, 2}}};
  const tuning found = m.tune_all();
  REQUIRE(found.wrong.size() == 2);
  CHECK(found.wrong[0].call == 1);
  CHECK(found.wrong[0].way == 1);
  CHECK(found.wrong[0].difference == "differs");
  CHECK(found.wrong[1].call == 3);
  CHECK(found.wrong[1].way == 2);
  CHECK(ways_of(found) == std::vector<size_t>{1, 2, 1, 0, 1});
}

TEST_CASE("kernels that are wrong only together are not chosen", "[measure][C11]") {
  made_up_model m{{{10, 5}, {10, 20, 5}}, {}, {0, 1}};
  const tuning apart = m.tune_all();
  CHECK(apart.wrong.empty());
  CHECK(ways_of(apart) == std::vector<size_t>{0, 2}); // the round with both gave no times
  made_up_model later{{{10, 5}, {10, 20, 5}}};
  later.confirmed_at = 1.9; // faster alone, not when they are confirmed
  CHECK(ways_of(later.tune_all()) == std::vector<size_t>{1, 2});
  later.confirmed_at = 2.1;
  const tuning slower = later.tune_all();
  CHECK(ways_of(slower) == std::vector<size_t>{0, 0});
  CHECK(slower.refused.find("not faster") != std::string::npos);
  CHECK(slower.calls[0].seconds == slower.calls[0].usual_s);
}

TEST_CASE("of kernels that are faster alone, the one is chosen that makes the model faster", "[measure][C11]") {
  made_up_model m{{{10, 5}, {10, 5}, {10, 5}, {10, 5}, {10, 20}}};
  m.costs = {{2, 100}}; // it keeps others from running beside it
  const tuning found = m.tune_all();
  CHECK(ways_of(found) == std::vector<size_t>{1, 1, 0, 1, 0});
  CHECK(found.refused.empty());
  CHECK(found.usual_run_s == Approx(50e-6));
  CHECK(found.tuned_run_s == Approx(35e-6));
  m.costs = {{0, 9}, {1, 9}, {2, 9}, {3, 9}};
  const tuning none = m.tune_all();
  CHECK(ways_of(none) == std::vector<size_t>{0, 0, 0, 0, 0});
  CHECK_FALSE(none.refused.empty());
  CHECK(none.usual_run_s == 0);
}

TEST_CASE("tuning ends with its time, and choices found by then count", "[measure][C11]") {
  made_up_model m{{{10, 8, 5}, {10, 11}}};
  const tuning found = m.tune_all(1);
  CHECK(found.rounds == 1);
  CHECK(found.all_rounds == 2);
  CHECK(ways_of(found) == std::vector<size_t>{1, 0});
  made_up_model none{{{10, 8}}};
  const tuning nothing = none.tune_all(0);
  CHECK(none.rounds.empty());
  CHECK(choices_of(none.calls(), nothing).empty());
  CHECK(made_up_model{}.tune_all().calls.empty());
}

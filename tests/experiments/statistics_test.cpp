// The expected numbers were computed by SciPy 1.10.1 (`stats.t.interval`, `ttest_rel`, `wilcoxon`) or counted by hand.
#include "troupe/statistics.hpp"

#include "support/catch.hpp"
#include "troupe/error.hpp"

#include <cmath>
#include <limits>

using namespace troupe;
using namespace troupe::experiments;

namespace {

const std::vector<double> eight{12.1, 11.8, 12.6, 12.0, 11.9, 12.3, 12.2, 11.7};
const std::vector<double> faster{11.2, 11.9, 11.5, 11.1, 11.4, 12.4, 11.0, 11.6};

/// Pairs that SciPy was given too: whole numbers, so with ties and zeros.
std::pair<std::vector<double>, std::vector<double>> many_pairs(size_t count) {
  std::pair<std::vector<double>, std::vector<double>> p;
  for (size_t i = 0; i < count; ++i) {
    p.first.push_back(static_cast<double>(i * 37 % 101));
    p.second.push_back(static_cast<double>(i * 53 % 97 + 6));
  }
  return p;
}

} // namespace

TEST_CASE("samples are summed up with Student's interval", "[experiment]") {
  const summary s = summarise(eight);
  CHECK(s.count == 8);
  CHECK(s.mean == Approx(12.075));
  CHECK(s.median == Approx(12.05)); // of two the mean
  CHECK(s.deviation == Approx(0.29154759474226494));
  CHECK(s.least == 11.7);
  CHECK(s.largest == 12.6);
  CHECK(s.mean_interval.value().low == Approx(11.831260111204687));
  CHECK(s.mean_interval.value().high == Approx(12.318739888795312));
  CHECK(summarise(eight, 0.99).mean_interval.value().low == Approx(11.714281518248477));
  CHECK(summarise(std::vector{3.0, 1.0, 2.0}).median == 2);
}

TEST_CASE("few samples have no interval, equal ones one without width", "[experiment]") {
  CHECK(summarise({}).count == 0);
  CHECK(summarise({}).mean == 0);
  const summary one = summarise(std::vector{7.0});
  CHECK(one.mean == 7);
  CHECK(one.median == 7);
  CHECK(!one.mean_interval);
  const summary equal = summarise(std::vector{2.0, 2.0, 2.0});
  CHECK(equal.deviation == 0);
  CHECK(equal.mean_interval.value().low == 2);
  CHECK(equal.mean_interval.value().high == 2);
}

TEST_CASE("the paired t-test is SciPy's", "[experiment]") {
  const paired_t test = paired_t_test(eight, faster);
  CHECK(test.pairs == 8);
  CHECK(test.mean_difference == Approx(-0.5625));
  CHECK(test.t.value() == Approx(-2.9626153620208178));
  CHECK(test.probability.value() == Approx(0.021026868551924746));
  CHECK(test.difference_interval.value().low == Approx(-1.0114618052496775));
  CHECK(test.difference_interval.value().high == Approx(-0.1135381947503224));
  CHECK(paired_t_test(faster, eight).probability.value() == Approx(test.probability.value()));
}

TEST_CASE("differences without scatter are not tested", "[experiment]") {
  const paired_t equal = paired_t_test(eight, eight);
  CHECK(equal.mean_difference == 0);
  CHECK(!equal.probability);
  const paired_t shifted = paired_t_test(std::vector{0.1, 0.2, 0.3}, std::vector{1.1, 1.2, 1.3}); // but for rounding
  CHECK(shifted.mean_difference == Approx(1));
  CHECK(!shifted.t);
  CHECK(!shifted.probability);
  CHECK(!paired_t_test(std::vector{1.0}, std::vector{2.0}).difference_interval);
}

TEST_CASE("Wilcoxon's test counts the distribution of the ranks that there are", "[experiment]") {
  // All eight differences are positive: 2 of 2⁸ signs are as extreme.
  const signed_rank all = wilcoxon_signed_rank(std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8},
                                               std::vector<double>{2, 4, 6, 8, 10, 12, 14, 16});
  CHECK(all.rank_sum_above == 36);
  CHECK(all.rank_sum_below == 0);
  CHECK(all.exact);
  CHECK(all.probability.value() == Approx(2.0 / 256));
  // With a zero and ties of 5 and 15: 324 of 2⁹ signs, by enumeration.
  const signed_rank ties = wilcoxon_signed_rank(std::vector<double>{125, 115, 130, 140, 140, 115, 140, 125, 140, 135},
                                                std::vector<double>{110, 122, 125, 120, 140, 124, 123, 137, 135, 145});
  CHECK(ties.pairs == 9);
  CHECK(ties.rank_sum_above == 18);
  CHECK(ties.rank_sum_below == 27);
  CHECK(ties.probability.value() == Approx(0.6328125));
}

TEST_CASE("Wilcoxon's test of many pairs is SciPy's", "[experiment]") {
  auto [a, b] = many_pairs(100);
  for (size_t i = 0; i < a.size(); ++i)
    a[i] += 0.001 * static_cast<double>(i); // no ties: SciPy counts the distribution only then
  const signed_rank counted = wilcoxon_signed_rank(a, b);
  CHECK(counted.exact);
  CHECK(std::min(counted.rank_sum_above, counted.rank_sum_below) == 2306);
  CHECK(counted.probability.value() == Approx(0.45414166514982196));
  const auto [c, d] = many_pairs(150);
  const signed_rank normal = wilcoxon_signed_rank(c, d);
  CHECK(normal.pairs == 148);
  CHECK(!normal.exact);
  CHECK(std::min(normal.rank_sum_above, normal.rank_sum_below) == 4958);
  CHECK(normal.probability.value() == Approx(0.28846220734715045));
}

TEST_CASE("Wilcoxon's test says nothing of equal samples, and no probability is above 1", "[experiment]") {
  CHECK(!wilcoxon_signed_rank(eight, eight).probability);
  CHECK(!wilcoxon_signed_rank({}, {}).probability);
  CHECK(wilcoxon_signed_rank(std::vector<double>{0, 0}, std::vector<double>{1, -1}).probability.value() == 1);
  std::vector<double> zeros(200), signs(200);
  for (size_t i = 0; i < signs.size(); ++i)
    signs[i] = i % 2 ? 1 : -1;
  CHECK(wilcoxon_signed_rank(zeros, signs).probability.value() == 1);
}

TEST_CASE("samples that cannot be counted are refused", "[experiment]") {
  const std::vector<double> bad{1, std::numeric_limits<double>::quiet_NaN()}, huge{1, 1e200}, good{1, 2};
  CHECK_THROWS_AS(summarise(bad), error);
  CHECK_THROWS_AS(paired_t_test(good, huge), error);
  CHECK_THROWS_AS(wilcoxon_signed_rank(bad, good), error);
  CHECK_THROWS_WITH(paired_t_test(good, eight), Catch::Contains("2 and 8 samples cannot be paired"));
  for (const double confidence : {0.0, 1.0, -1.0, std::nan("")})
    CHECK_THROWS_WITH(summarise(good, confidence), Catch::Contains("such as 0.95"));
}

TEST_CASE("probabilities of several tests are made larger as Holm says", "[experiment]") {
  const std::vector<double> adjusted = holm_adjusted(std::vector{0.01, 0.04, 0.03, 0.005});
  CHECK(adjusted[3] == Approx(0.02)); // 4 · 0.005
  CHECK(adjusted[0] == Approx(0.03)); // 3 · 0.01
  CHECK(adjusted[2] == Approx(0.06)); // 2 · 0.03
  CHECK(adjusted[1] == Approx(0.06)); // not below the one before
  CHECK(holm_adjusted(std::vector{0.9, 0.8})[0] == 1);
  CHECK(holm_adjusted({}).empty());
}

// How rows are shared out.
#include "strategy/shares.hpp"
#include "support/catch.hpp"

#include <numeric>
#include <random>

using namespace troupe;

TEST_CASE("shares are in proportion to speed, the largest remainders get the rest", "[strategy][C1]") {
  const std::vector<share_figures> one_to_three{{0, 3}, {0, 1}};
  const std::vector<double> shares = shares_that_end_together(100, one_to_three);
  CHECK(shares[0] == Approx(25));
  CHECK(shares[1] == Approx(75));
  CHECK(whole_shares(10, std::vector<double>{1, 1, 1}) == std::vector<int64_t>{4, 3, 3});
  CHECK(whole_shares(10, std::vector<double>{1.25, 4.6, 4.15}) == std::vector<int64_t>{1, 5, 4});
  CHECK(whole_shares(2, std::vector<double>{1, 1, 1}) == std::vector<int64_t>{1, 1, 0});
  CHECK(whole_shares(5, std::vector<double>{0, 7}) == std::vector<int64_t>{0, 5});
  CHECK(whole_shares(5, std::vector<double>{-3, 2, 3}) == std::vector<int64_t>{0, 2, 3});
}

TEST_CASE("a replica that begins later gets less, or nothing, and all end together", "[strategy][C1][C6]") {
  // Two equally fast ones; the second is busy for 4 s.
  const std::vector<double> shares = shares_that_end_together(10, std::vector<share_figures>{{0, 1}, {4, 1}});
  CHECK(shares[0] == Approx(7));
  CHECK(shares[1] == Approx(3));
  CHECK(shares_that_end_together(3, std::vector<share_figures>{{0, 1}, {4, 1}}) == std::vector<double>{3, 0});
  CHECK(shares_that_end_together(3, std::vector<share_figures>{{-1, 1}, {4, 1}}) == std::vector<double>{0, 3});
  CHECK(shares_that_end_together(3, std::vector<share_figures>{{-1, 1}}) == std::vector<double>{0});
}

TEST_CASE("random shares add up and end together", "[strategy][C1]") {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> speed(1e-6, 1e-2), begin(-0.2, 1);
  for (int trial = 0; trial < 2000; ++trial) {
    const int64_t rows = std::uniform_int_distribution<int64_t>(1, 5000)(random);
    std::vector<share_figures> replicas(1 + random() % 9);
    for (share_figures& f : replicas)
      f = {begin(random), speed(random)};
    replicas[0].begins_after = std::abs(replicas[0].begins_after); // one at least
    const std::vector<double> shares = shares_that_end_together(static_cast<double>(rows), replicas);
    CHECK(std::accumulate(shares.begin(), shares.end(), 0.0) == Approx(double(rows)));
    double end = 0;
    for (size_t i = 0; i < shares.size(); ++i)
      end = shares[i] > 0 ? replicas[i].begins_after + shares[i] * replicas[i].row_seconds : end;
    const std::vector<int64_t> whole = whole_shares(rows, shares);
    CHECK(std::accumulate(whole.begin(), whole.end(), int64_t{0}) == rows);
    for (size_t i = 0; i < shares.size(); ++i) {
      if (shares[i] > 0)
        CHECK(replicas[i].begins_after + shares[i] * replicas[i].row_seconds == Approx(end));
      else if (replicas[i].begins_after >= 0)
        CHECK(replicas[i].begins_after >= end - 1e-9);
      CHECK(std::abs(static_cast<double>(whole[i]) - shares[i]) < 1 + 1e-6);
    }
  }
}

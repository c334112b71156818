#include "strategy/shares.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace troupe {

namespace {

constexpr int64_t nothing = std::numeric_limits<int64_t>::min(); // the rest of whoever gets no row
constexpr double least_row_seconds = 1e-12;                      // nobody is infinitely fast

double row_speed(const share_figures& f) {
  return 1 / std::max(f.row_seconds, least_row_seconds);
}

} // namespace

std::vector<double> shares_that_end_together(double rows, std::span<const share_figures> replicas) {
  std::vector<size_t> order;
  for (size_t i = 0; i < replicas.size(); ++i)
    if (replicas[i].begins_after >= 0)
      order.push_back(i);
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return replicas[a].begins_after < replicas[b].begins_after; });
  // Whoever could begin only after the others have ended gets nothing. Times count from the first beginning: they may
  // be far away.
  const double origin = order.empty() ? 0 : replicas[order[0]].begins_after;
  double speeds = 0, idle = 0, end = 0;
  size_t used = 0;
  for (; used < order.size(); ++used) {
    const share_figures& f = replicas[order[used]];
    const double begins = f.begins_after - origin;
    if (used > 0 && begins >= end)
      break;
    speeds += row_speed(f);
    idle += begins * row_speed(f);
    end = (rows + idle) / speeds;
  }
  std::vector<double> shares(replicas.size(), 0.0);
  for (size_t k = 0; k < used; ++k) {
    const share_figures& f = replicas[order[k]];
    shares[order[k]] = std::max(0.0, (end - (f.begins_after - origin)) * row_speed(f));
  }
  return shares;
}

std::vector<int64_t> whole_shares(int64_t rows, std::span<const double> wanted) {
  double sum = 0;
  for (double w : wanted)
    sum += std::max(0.0, w);
  std::vector<int64_t> whole(wanted.size(), 0);
  if (sum <= 0 || wanted.empty())
    return whole;
  std::vector<int64_t> rest(wanted.size()); // billionths: rounding errors decide no ties
  int64_t left = rows;
  for (size_t i = 0; i < wanted.size(); ++i) {
    // What is a whole number but for rounding is that number.
    const double exact = std::max(0.0, wanted[i]) * (static_cast<double>(rows) / sum);
    const double floor = std::floor(exact + 1e-9);
    whole[i] = std::min(left, static_cast<int64_t>(floor));
    rest[i] = wanted[i] > 0 ? std::llround((exact - floor) * 1e9) : nothing;
    left -= whole[i];
  }
  std::vector<size_t> order(wanted.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return rest[a] > rest[b]; });
  for (size_t k = 0; left > 0; k = (k + 1) % order.size())
    if (rest[order[k]] != nothing) {
      ++whole[order[k]];
      --left;
    }
  return whole;
}

int64_t guided_piece(double waiting, double part, int64_t least, int64_t most) {
  const double rows = std::min(std::ceil(waiting * part / 2), static_cast<double>(most));
  return std::min(most, std::max(least, static_cast<int64_t>(rows)));
}

int64_t least_piece(int64_t micro_batch) {
  return std::max<int64_t>(1, micro_batch / 8);
}

} // namespace troupe

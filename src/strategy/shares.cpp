#include "strategy/shares.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

namespace troupe {

namespace {

constexpr int64_t nothing = std::numeric_limits<int64_t>::min(); // the rest of a replica without rows
constexpr double least_row_seconds = 1e-12;                      // no replica is infinitely fast

double row_speed(const share_figures& f) {
  return 1 / std::max(f.row_seconds, least_row_seconds);
}

int64_t nearest_rung(double wanted) {
  const int64_t below = ladder_floor(static_cast<int64_t>(wanted));
  int64_t above = below + 1;
  while (ladder_floor(above) != above)
    ++above;
  return wanted - static_cast<double>(below) <= static_cast<double>(above) - wanted ? below : above;
}

/// Returns the number nearest to `wanted` that is a whole number of steps away from `from`; at least 0.
int64_t nearest_step(double wanted, int64_t from, int64_t step) {
  const double steps = std::round((wanted - static_cast<double>(from)) / static_cast<double>(step));
  return std::max<int64_t>(0, from + static_cast<int64_t>(steps) * step);
}

} // namespace

std::vector<double> shares_that_end_together(double rows, std::span<const share_figures> replicas) {
  std::vector<size_t> order;
  for (size_t i = 0; i < replicas.size(); ++i)
    if (replicas[i].begins_after >= 0)
      order.push_back(i);
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return replicas[a].begins_after < replicas[b].begins_after; });
  // A replica that could begin only after the others have ended gets nothing. Times count from the first beginning:
  // they may be far away.
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

int64_t ladder_floor(int64_t rows) {
  if (rows < 1)
    return 0;
  const auto power = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(rows)));
  return rows >= power + power / 2 ? power + power / 2 : power;
}

int64_t share_step(int64_t rows, size_t replicas) {
  const int64_t wanted = std::max<int64_t>(1, rows / (few_rows * static_cast<int64_t>(replicas)));
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(wanted)));
}

std::vector<int64_t> stepped_shares(int64_t rows, std::span<const double> wanted, bool many_sizes) {
  const auto used = static_cast<size_t>(std::count_if(wanted.begin(), wanted.end(), [](double w) { return w > 0; }));
  std::vector<int64_t> shares = whole_shares(rows, wanted);
  const int64_t step = used == 0 ? 1 : share_step(rows, used);
  if (used < 2 || (step == 1 && !many_sizes))
    return shares;
  // The same replica takes the rest while speeds hardly change, so that the others see the ladder alone.
  const double enough = (many_sizes ? 0.75 : 1) * *std::max_element(wanted.begin(), wanted.end());
  const auto is_enough = [&](double w) { return w >= enough; };
  const auto largest = static_cast<size_t>(std::find_if(wanted.begin(), wanted.end(), is_enough) - wanted.begin());
  const int64_t equal = rows / static_cast<int64_t>(used);
  int64_t rest = rows;
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i] > 0 && i != largest) {
      shares[i] = many_sizes ? nearest_rung(wanted[i]) : nearest_step(wanted[i], equal, step);
      rest -= shares[i];
    }
  if (rest < 1) // of very many replicas
    return whole_shares(rows, wanted);
  shares[largest] = rest;
  return shares;
}

int64_t guided_piece(const guided_rows& rows, double part, std::span<const int64_t> known) {
  const int64_t most = std::min(rows.most, rows.left);
  const double half = std::min(std::ceil(rows.waiting * part / 2), static_cast<double>(most));
  const int64_t wanted = std::min(most, std::max(rows.least, static_cast<int64_t>(half)));
  int64_t found = 0;
  for (int64_t n = wanted == rows.most ? wanted : ladder_floor(wanted); n > 0 && (!found || 2 * n >= wanted);
       n = ladder_floor(n - 1)) {
    if (n < std::min(rows.least, most) || (n < rows.left && rows.left - n < rows.least))
      continue;
    if (std::find(known.begin(), known.end(), n) != known.end())
      return n;
    found = found ? found : n;
  }
  return found ? found : most;
}

int64_t least_piece(int64_t micro_batch) {
  return std::max<int64_t>(1, micro_batch / few_rows);
}

} // namespace troupe

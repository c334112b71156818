#include "remote/link_rate.hpp"

#include <algorithm>

namespace troupe::remote {
namespace {

/// How long what is outstanding may keep other messages waiting; heartbeats go every 100 ms.
constexpr double longest_wait_s = 0.15;
/// What may be outstanding beyond what fills the link: more would not make a fast one faster.
constexpr auto most_beyond = static_cast<double>(largest_piece * piece_window) / 2;
/// A time that two readings of the clock can tell from none.
constexpr double shortest_s = 1e-7;

} // namespace

void link_rate::receive(const departure& asked, int64_t bytes, bool full, time_point now) {
  received_ += bytes;
  const double seconds = std::max(shortest_s, std::chrono::duration<double>(now - asked.at).count());
  round_trip_ = round_trip_ == 0 ? seconds : std::min(round_trip_, seconds);
  const double measured = static_cast<double>(received_ - asked.received_before) / seconds;
  // A link that was not asked for all it can carry says nothing about how slow it is.
  if (bytes_per_second_ == 0)
    bytes_per_second_ = measured;
  else if (measured > bytes_per_second_)
    bytes_per_second_ += (measured - bytes_per_second_) / 2;
  else if (full)
    bytes_per_second_ += (measured - bytes_per_second_) / 4;
}

int64_t link_rate::room() const {
  if (bytes_per_second_ == 0)
    return 2 * smallest_piece;
  // At least a piece and more beyond what fills the link as far as is known: else the rate could not be found to be
  // higher.
  const double more = std::clamp(bytes_per_second_ * longest_wait_s, 1.25 * smallest_piece, most_beyond);
  const double room = bytes_per_second_ * round_trip_ + more;
  return static_cast<int64_t>(std::clamp(room, double{smallest_piece}, double{piece_window * largest_piece}));
}

int64_t link_rate::piece_bytes() const {
  return std::clamp(room() / (piece_window / 2), smallest_piece, largest_piece);
}

} // namespace troupe::remote

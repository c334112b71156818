#include "strategy/first_sizes.hpp"

#include "strategy/stream_machine.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {
namespace {

struct flying_piece {
  run_time ends;
  piece_id piece = 0;
  size_t replica = 0;
};

/// Replicas that take as long as predicted, one piece after the other.
class predicted_replicas {
public:
  explicit predicted_replicas(const std::vector<replica_figures>& speeds) : speeds_(speeds), free_(speeds.size()) {
    sizes.resize(speeds.size());
  }

  void start(const start_piece& piece, run_time now) {
    int64_t rows = 0;
    for (const piece_part& part : piece.parts)
      rows += part.rows;
    sizes[piece.replica].insert(rows);
    const double seconds = speeds_[piece.replica].seconds(static_cast<double>(rows));
    run_time& free = free_[piece.replica];
    free = std::max(free, now) + std::chrono::nanoseconds(std::llround(seconds * 1e9));
    flying_.push_back({free, piece.piece, piece.replica});
  }

  /// Returns the piece that ends next, no more in flight; nullopt if there is none.
  std::optional<flying_piece> take_next() {
    const auto next = std::ranges::min_element(flying_, {}, &flying_piece::ends);
    if (next == flying_.end())
      return std::nullopt;
    const flying_piece taken = *next;
    flying_.erase(next);
    return taken;
  }

  std::vector<std::set<int64_t>> sizes; // by replica

private:
  const std::vector<replica_figures>& speeds_;
  std::vector<run_time> free_;
  std::vector<flying_piece> flying_;
};

} // namespace

std::vector<std::set<int64_t>> first_sizes(const machine_options& options, const stream_request& request) {
  stream_machine machine(options);
  predicted_replicas replicas(options.replicas);
  const size_t requests = std::min(4 * options.replicas.size(), options.queue_limit);
  run_time now{};
  for (size_t i = 0; i < requests; ++i)
    machine.submit(request, now);
  std::vector<stream_command> commands;
  for (;;) {
    machine.take_commands(commands);
    std::optional<run_time> wake;
    for (const stream_command& c : commands)
      if (const auto* piece = std::get_if<start_piece>(&c))
        replicas.start(*piece, now);
      else if (const auto* later = std::get_if<wake_at>(&c))
        wake = later->time;
    if (const std::optional<flying_piece> ended = replicas.take_next()) {
      now = std::max(now, ended->ends);
      machine.piece_ended(ended->piece, {}, now);
    } else if (wake) { // requests wait to be joined with others
      now = *wake;
      machine.tick(now);
    } else {
      return std::move(replicas.sizes);
    }
  }
}

} // namespace troupe

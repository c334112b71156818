#include "strategy/stream_forecast.hpp"

#include "plan/estimate/lanes.hpp"

#include <algorithm>
#include <queue>

namespace troupe {
namespace {

/// All chunks of all pieces, in the order of the pieces.
struct chunk_list {
  std::vector<chunk_cost> chunks;
  std::vector<size_t> request; // by chunk

  /// Adds a piece that begins after the chunks `after` have ended. Returns those of its chunks that no other waits for.
  std::vector<chunk_id> add(const std::vector<chunk_cost>& piece, size_t of, const std::vector<chunk_id>& after);
};

std::vector<chunk_id> chunk_list::add(const std::vector<chunk_cost>& piece, size_t of,
                                      const std::vector<chunk_id>& after) {
  const auto begin = static_cast<chunk_id>(chunks.size());
  std::vector<bool> awaited(piece.size(), false);
  chunk_id segment_begin = 0; // of the chunk's segment
  std::vector<chunk_id> gate = after;
  for (chunk_id c = 0; c < piece.size(); ++c) {
    if (c > 0 && piece[c].segment != piece[c - 1].segment) { // after all of the segment before
      gate.clear();
      for (chunk_id before = segment_begin; before < c; ++before)
        gate.push_back(begin + before);
      segment_begin = c;
    }
    chunk_cost& one = chunks.emplace_back(piece[c]);
    request.push_back(of);
    one.segment = 0;
    for (chunk_id& before : one.predecessors) {
      awaited[before] = true;
      before += begin;
    }
    if (one.predecessors.empty())
      one.predecessors = gate;
  }
  std::vector<chunk_id> last;
  for (chunk_id c = segment_begin; c < piece.size(); ++c)
    if (!awaited[c])
      last.push_back(begin + c);
  return last;
}

/// Returns the chunks in the order in which their devices get them: as they become ready.
chunk_list in_order(chunk_list all, std::span<const device_info> devices) {
  const std::vector<size_t> processors = first_of_processors(devices);
  std::vector<std::vector<chunk_id>> dependents(all.chunks.size());
  std::vector<size_t> missing(all.chunks.size());
  std::vector<chunk_id> position(all.chunks.size());
  std::vector<double> ready(all.chunks.size(), 0);
  std::vector<lane_clock> lanes(devices.size());
  using entry = std::pair<double, chunk_id>;
  std::priority_queue<entry, std::vector<entry>, std::greater<>> next;
  for (chunk_id c = 0; c < all.chunks.size(); ++c) {
    missing[c] = all.chunks[c].predecessors.size();
    for (chunk_id before : all.chunks[c].predecessors)
      dependents[before].push_back(c);
    if (missing[c] == 0)
      next.emplace(0, c);
  }
  chunk_list ordered;
  for (; !next.empty();) {
    const chunk_id c = next.top().second;
    next.pop();
    position[c] = static_cast<chunk_id>(ordered.chunks.size());
    chunk_cost& cost = ordered.chunks.emplace_back(std::move(all.chunks[c]));
    ordered.request.push_back(all.request[c]);
    for (chunk_id& before : cost.predecessors)
      before = position[before];
    std::sort(cost.predecessors.begin(), cost.predecessors.end());
    lane_clock& lane = lanes[processors[cost.device]];
    lane.free_s = lane.take(ready[c] + cost.net_in_s, cost.in_s) + cost.work_s + cost.out_s;
    const double answered = lane.free_s + cost.net_out_s + devices[cost.device].profile.chunk_s;
    for (chunk_id d : dependents[c]) {
      // One of the same device is submitted without waiting for the answer.
      const bool is_same = all.chunks[d].device == cost.device;
      ready[d] = std::max(ready[d], is_same ? ready[c] : answered);
      if (--missing[d] == 0)
        next.emplace(ready[d], d);
    }
  }
  return ordered;
}

} // namespace

stream_forecast::stream_forecast(std::vector<forecast_replica> replicas, bindings symbols, std::string rows)
    : replicas_(std::move(replicas)), symbols_(std::move(symbols)), rows_(std::move(rows)) {
  std::map<std::string, device_index> known;
  for (const forecast_replica& r : replicas_) {
    std::vector<device_index>& mine = device_of_.emplace_back();
    for (const device_info& d : r.compiled->devices) {
      const auto next = static_cast<device_index>(devices_.size());
      // Control-flow nodes of different replicas have equal names, but are not one device.
      const device_index at = d.kind == device_kind::control ? next : known.try_emplace(d.name, next).first->second;
      if (at == next)
        devices_.push_back(d);
      mine.push_back(at);
    }
  }
}

const std::vector<chunk_cost>& stream_forecast::costs(size_t replica, int64_t rows) {
  const auto [found, is_new] = costs_.try_emplace({replica, rows});
  if (is_new) {
    bindings dims = symbols_;
    if (!rows_.empty())
      dims[rows_] = rows;
    const plan& p = *replicas_[replica].compiled;
    found->second = chunk_costs(p, expected_dims(*p.program, dims));
    for (chunk_cost& c : found->second)
      c.device = device_of_[replica][c.device];
  }
  return found->second;
}

std::vector<double> stream_forecast::play(std::span<const forecast_piece> pieces, size_t requests) {
  chunk_list all;
  std::vector<std::vector<std::vector<chunk_id>>> ends(replicas_.size()); // by replica, by piece
  for (const forecast_piece& p : pieces) {
    auto& before = ends[p.replica];
    const size_t depth = replicas_[p.replica].depth;
    const auto after = before.size() < depth ? std::vector<chunk_id>() : before[before.size() - depth];
    before.push_back(all.add(costs(p.replica, p.rows), p.request, after));
  }
  const chunk_list ordered = in_order(std::move(all), devices_);
  const prediction played = troupe::play(ordered.chunks, devices_);
  std::vector<double> answered(requests, 0);
  for (chunk_id at = 0; at < ordered.chunks.size(); ++at) {
    double& end = answered[ordered.request[at]];
    end = std::max(end, played.chunks[at].end_s + devices_[ordered.chunks[at].device].profile.chunk_s);
  }
  return answered;
}

replica_figures stream_forecast::figures(size_t replica) {
  const auto seconds = [&](int64_t rows) {
    const forecast_piece one{.request = 0, .replica = replica, .rows = rows};
    return play({&one, 1}, 1).front();
  };
  if (rows_.empty())
    return {.fixed_seconds = seconds(1)};
  constexpr int64_t few = 1, many = 33;
  const double least = seconds(few), row = std::max(0.0, (seconds(many) - least) / (many - few));
  return {.row_seconds = row, .fixed_seconds = std::max(0.0, least - few * row)};
}

} // namespace troupe

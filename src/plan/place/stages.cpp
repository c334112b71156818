// The limit that all stages can keep to is searched by halving; whether they can is decided in one walk over the cuts
// per device (Pinar and Aykanat, "Fast optimal load balancing algorithms for 1D partitioning", JPDC 2004, section 4).
// Theirs reaches as far as it can with every device; here a longer stage may be the faster one, since less may cross
// its end. So the walk keeps all cuts that can be reached, and the best beginning of a stage among those in reach of
// its end: the greatest `begin` of a sliding window.
#include "plan/place/stages.hpp"

#include <algorithm>

namespace troupe {
namespace {

constexpr uint32_t unreached = UINT32_MAX;

/// A way to cover the nodes before a cut.
struct cover {
  uint32_t devices = unreached; // it needs: those before this position. Fewer leave more for the rest
  uint32_t begin = 0;           // of its last stage
  uint32_t host_before = 0;     // of the stage before
};

class stage_balancer {
public:
  explicit stage_balancer(const stage_costs& costs) : costs_(costs), window_(costs.cuts) {}

  std::vector<stage> run() {
    double high = 0, low = 0;
    for (const device_stages& d : costs_.devices)
      high = std::max(high, *std::max_element(d.end.begin(), d.end.end()) -
                                *std::min_element(d.begin.begin(), d.begin.end()));
    for (const auto& network : costs_.network)
      high += network.empty() ? 0 : *std::max_element(network.begin(), network.end());
    if (!can_keep(high))
      return {};
    for (int halvings = 0; halvings < 100 && high - low > 1e-9 * high; ++halvings) {
      const double middle = low + (high - low) / 2;
      (can_keep(middle) ? high : low) = middle;
    }
    return fewest(high);
  }

private:
  using covers = std::vector<std::vector<cover>>; // by the host of the last stage, by cut

  covers none() const { return {costs_.hosts, std::vector<cover>(costs_.cuts)}; }
  covers start() const {
    covers only_start = none();
    only_start[0][0].devices = 0;
    return only_start;
  }

  /// Returns the host whose device makes the last stage of a cover of all nodes; `hosts` if there is none.
  uint32_t host_at_end(const covers& reached) const {
    uint32_t host = 0;
    while (host < costs_.hosts && reached[host].back().devices == unreached)
      ++host;
    return host;
  }

  bool can_keep(double limit) {
    covers reached = start();
    for (uint32_t d = 0; d < costs_.devices.size(); ++d)
      extend(reached, d, limit, reached);
    return host_at_end(reached) < costs_.hosts;
  }

  /// Adds to `after` the covers that a stage on device `d` makes of those in `before`, which may be the same: it is
  /// read only where devices before `d` are enough.
  void extend(const covers& before, uint32_t d, double limit, covers& after) {
    for (uint32_t host = 0; host < costs_.hosts; ++host)
      extend(before[host], host, d, limit, after[costs_.devices[d].host]);
  }

  void extend(const std::vector<cover>& before, uint32_t host, uint32_t d, double limit, std::vector<cover>& after) {
    const device_stages& device = costs_.devices[d];
    const std::vector<double>& network = costs_.network[host * costs_.hosts + device.host];
    const auto begin = [&](uint32_t cut) { return device.begin[cut] - (network.empty() ? 0 : network[cut]); };
    size_t head = 0, tail = 0; // of the window: cuts ascending, `begin` descending
    for (uint32_t b = 1; b < costs_.cuts; ++b) {
      if (before[b - 1].devices <= d) {
        while (tail > head && begin(window_[tail - 1]) <= begin(b - 1))
          --tail;
        window_[tail++] = b - 1;
      }
      while (head < tail && window_[head] < device.first[b])
        ++head;
      if (head < tail && device.end[b] - begin(window_[head]) <= limit && after[b].devices > d + 1)
        after[b] = {d + 1, window_[head], host};
    }
  }

  /// Returns the fewest stages that keep to a limit, which some can.
  std::vector<stage> fewest(double limit) {
    std::vector<covers> by_count{start()};
    while (host_at_end(by_count.back()) == costs_.hosts) {
      covers more = none();
      for (uint32_t d = 0; d < costs_.devices.size(); ++d)
        extend(by_count.back(), d, limit, more);
      by_count.push_back(std::move(more));
    }
    std::vector<stage> stages(by_count.size() - 1);
    uint32_t host = host_at_end(by_count.back()), end = costs_.cuts - 1;
    for (size_t i = stages.size(); i-- > 0;) {
      const cover& last = by_count[i + 1][host][end];
      stages[i] = {last.devices - 1, last.begin, end};
      host = last.host_before;
      end = last.begin;
    }
    return stages;
  }

  const stage_costs& costs_;
  std::vector<uint32_t> window_; // scratch
};

} // namespace

std::vector<stage> balance_stages(const stage_costs& costs) {
  return costs.cuts < 2 ? std::vector<stage>{} : stage_balancer(costs).run();
}

} // namespace troupe

#include "schedules/adversary.hpp"

#include "base/seeded_random.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {
namespace {

constexpr double least_number = 0.1, greatest_number = 1; // of work, speeds, links and sizes
constexpr double largest_change = 0.1;
constexpr int tries = 10, most_steps = 1000;
constexpr double hottest = 10, coldest = 0.1, cooling = 0.99;

/// Instances and changes of them, by chance.
class instance_maker {
public:
  explicit instance_maker(uint64_t seed) : random_(seed) {}

  scheduling_instance chain() {
    scheduling_instance made;
    const uint32_t tasks = 3 + random_.below(3), devices = 3 + random_.below(3);
    for (uint32_t n = 0; n < tasks; ++n)
      made.work.push_back(number());
    for (uint32_t d = 0; d < devices; ++d)
      made.speeds.push_back(number());
    made.links.assign(devices, std::vector<double>(devices, 1));
    for (uint32_t a = 0; a < devices; ++a)
      for (uint32_t b = a + 1; b < devices; ++b)
        made.links[a][b] = made.links[b][a] = number();
    for (uint32_t n = 1; n < tasks; ++n)
      made.edges.push_back({n - 1, n, number()});
    return made;
  }

  /// Returns an instance that differs in one thing.
  scheduling_instance changed(scheduling_instance is) {
    const auto devices = static_cast<uint32_t>(is.speeds.size());
    switch (random_.below(6)) {
      case 0: change(is.work[pick(is.work)]); break;
      case 1: change(is.speeds[pick(is.speeds)]); break;
      case 2: {
        const uint32_t a = random_.below(devices), b = (a + 1 + random_.below(devices - 1)) % devices;
        change(is.links[a][b]);
        is.links[b][a] = is.links[a][b];
        break;
      }
      case 3:
        if (!is.edges.empty())
          change(is.edges[pick(is.edges)].seconds);
        break;
      case 4: add_edge(is); break;
      default:
        if (!is.edges.empty())
          is.edges.erase(is.edges.begin() + pick(is.edges));
    }
    return is;
  }

  double unit() { return random_.unit(); }

private:
  double number() { return random_.between(least_number, greatest_number); }
  template <class T>
  uint32_t pick(const std::vector<T>& from) {
    return random_.below(static_cast<uint32_t>(from.size()));
  }
  void change(double& is) {
    is = std::clamp(is + random_.between(-largest_change, largest_change), least_number, greatest_number);
  }
  void add_edge(scheduling_instance& is) {
    const uint32_t to = 1 + random_.below(static_cast<uint32_t>(is.work.size()) - 1), from = random_.below(to);
    const auto same = [&](const cost_edge& e) { return e.from == from && e.to == to; };
    if (std::none_of(is.edges.begin(), is.edges.end(), same))
      is.edges.push_back({from, to, number()});
  }

  seeded_random random_;
};

} // namespace

cost_matrix costs_of(const scheduling_instance& is) {
  cost_matrix costs{.tasks = static_cast<uint32_t>(is.work.size()), .devices = static_cast<uint32_t>(is.speeds.size())};
  for (const double work : is.work)
    for (const double speed : is.speeds)
      costs.seconds.push_back(work / speed);
  costs.edges = is.edges;
  for (const auto& row : is.links)
    for (const double link : row)
      costs.pair_factors.push_back(1 / link);
  return costs;
}

adverse_instance find_adverse(const std::string& loser, const std::string& winner, uint64_t seed) {
  const auto loss = [&](const scheduling_instance& is) {
    const cost_matrix costs = costs_of(is);
    return makespan_by(loser, costs) / makespan_by(winner, costs);
  };
  adverse_instance found{loser, winner, seed, {}};
  double greatest = 0;
  instance_maker maker(seed);
  for (int attempt = 0; attempt < tries; ++attempt) {
    scheduling_instance here = maker.chain();
    double here_loss = loss(here);
    double temperature = hottest;
    for (int step = 0; step < most_steps && temperature > coldest; ++step, temperature *= cooling) {
      if (here_loss > greatest) {
        greatest = here_loss;
        found.instance = here;
      }
      scheduling_instance next = maker.changed(here);
      const double next_loss = loss(next), by = next_loss / here_loss;
      if (const double chance = maker.unit(); by < 1 && chance >= std::exp(-by / temperature))
        continue;
      here = std::move(next);
      here_loss = next_loss;
    }
  }
  return found;
}

} // namespace troupe

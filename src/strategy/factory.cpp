#include "strategy/factory.hpp"

#include "base/error.hpp"
#include "strategy/strategy_cost.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

namespace troupe {
namespace {

/// Choices whose predictions differ by less count as equal: then the simpler one is better. Predictions are not more
/// exact than that.
constexpr double as_good = 0.1;

/// What is compared unless a policy is asked for; more would make every choice take longer.
constexpr std::array policies_of_several{placement_policy::heft,          placement_policy::dmda,
                                         placement_policy::weighted,      placement_policy::round_robin,
                                         placement_policy::greedy_memory, placement_policy::split};

/// What is to be small; above 0, also for a model that has nothing to do.
double figure(const strategy_choice& c, objective goal) {
  return goal == objective::latency ? std::max(c.latency_ms, 1e-6) : 1 / std::max(c.requests_per_s, 1e-12);
}

/// By how much a choice is over its limits: 1 is within all of them. `too_much` says over which.
double excess(const strategy_choice& c, const choice_options& limits, std::string& too_much) {
  double worst = 1;
  const auto compare = [&](double is, double limit, const std::string& text) {
    if (limit > 0 && is > limit) {
      worst = std::max(worst, is / limit);
      too_much += (too_much.empty() ? "" : ", ") + text;
    }
  };
  const double limit_ms = static_cast<double>(limits.max_latency.count()) * 1e-3;
  compare(static_cast<double>(c.devices.size()), static_cast<double>(limits.max_devices),
          fmt::format("{} devices are more than {}", c.devices.size(), limits.max_devices));
  compare(static_cast<double>(c.memory_bytes), static_cast<double>(limits.max_memory),
          fmt::format("{} bytes are more than {}", c.memory_bytes, limits.max_memory));
  compare(c.latency_ms, limit_ms, fmt::format("{:.3f} ms are longer than {:.3f} ms", c.latency_ms, limit_ms));
  return worst;
}

/// The simpler, the smaller.
int complexity(const strategy_choice& c) {
  switch (c.strategy) {
    case strategy::none: return 0;
    case strategy::data_parallel: return 1;
    case strategy::work_stealing: return 2;
    case strategy::pipeline: return 3;
    default: return 4;
  }
}

std::vector<device_info> named(std::span<const device_info> devices, std::span<const std::string> names) {
  std::vector<device_info> found;
  for (const device_info& d : devices)
    if (std::find(names.begin(), names.end(), d.name) != names.end())
      found.push_back(d);
  return found;
}

/// Finds what there is to compare: each device alone; the best 2, 3, … of them together, the best 2, 4, 8, … of more
/// than 8, all, and as many as there may be.
class comparer {
public:
  explicit comparer(const factory_question& asked) : asked_(asked), coster_(asked) {}

  std::vector<costed_strategy> all() {
    const std::vector<std::string> leaders = each_alone();
    std::set<size_t> counts{leaders.size()};
    for (size_t n = 2; n < leaders.size(); n = leaders.size() <= 8 ? n + 1 : 2 * n)
      counts.insert(n);
    if (asked_.limits.max_devices > 0)
      counts.insert(std::min(asked_.limits.max_devices, leaders.size()));
    for (size_t n : counts)
      if (n >= 2)
        together(std::span(leaders).first(n));
    if (std::none_of(found_.begin(), found_.end(), [](const costed_strategy& c) { return c.shown.possible; }) &&
        coster_.problem())
      throw *coster_.problem();
    sort();
    return std::move(found_);
  }

private:
  /// Costs each device alone. Returns their names, the best first, one of each processor before the second of any.
  std::vector<std::string> each_alone() {
    const std::vector<size_t> processors = first_of_processors(asked_.devices);
    const std::vector<replica_set> alone = replicas_of(strategy::data_parallel, asked_.devices);
    std::map<size_t, int> seen;
    std::vector<std::tuple<int, double, std::string>> order;
    for (const replica_set& r : alone) {
      found_.push_back(coster_.cost(strategy::none, placement_policy::single, {r}));
      const strategy_choice& c = found_.back().shown;
      order.emplace_back(seen[processors[position_of(asked_.devices, r.own[0])]]++,
                         c.possible ? figure(c, asked_.limits.goal) : HUGE_VAL, r.own[0]);
    }
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
      return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
    });
    std::vector<std::string> names;
    names.reserve(order.size());
    for (const auto& [turn, seconds, name] : order)
      names.push_back(name);
    return names;
  }

  /// Costs what these devices can do together.
  void together(std::span<const std::string> leaders) {
    std::vector<device_info> mine = named(asked_.devices, leaders);
    std::vector<replica_set> each;
    each.reserve(mine.size());
    for (const device_info& d : mine)
      each.push_back(led_by(d, asked_.devices));
    found_.push_back(coster_.cost(strategy::data_parallel, placement_policy::single, each));
    found_.push_back(coster_.cost(strategy::work_stealing, placement_policy::single, each));
    for (const device_info& d : asked_.devices)
      if (d.fallback && std::find(leaders.begin(), leaders.end(), d.name) == leaders.end())
        mine.push_back(d);
    const std::vector<replica_set> one = replicas_of(strategy::pipeline, mine);
    found_.push_back(coster_.cost(strategy::pipeline, placement_policy::pipeline, one));
    if (asked_.policy == placement_policy::single)
      for (const placement_policy policy : policies_of_several)
        found_.push_back(coster_.cost(strategy::model_parallel, policy, one));
    else if (asked_.policy != placement_policy::pipeline)
      found_.push_back(coster_.cost(strategy::model_parallel, asked_.policy, one));
  }

  /// Puts the best first, and says of each why it is where it is.
  void sort() {
    for (costed_strategy& c : found_) {
      if (c.shown.possible) {
        std::string too_much;
        c.shown.possible = excess(c.shown, asked_.limits, too_much) <= 1;
        c.shown.why = too_much;
      }
    }
    std::stable_sort(found_.begin(), found_.end(),
                     [&](const auto& a, const auto& b) { return rank(a.shown) < rank(b.shown); });
    const auto best = choose();
    if (best == found_.end())
      return;
    std::rotate(found_.begin(), best, best + 1);
    for (size_t i = 1; i < found_.size(); ++i)
      if (found_[i].shown.possible)
        found_[i].shown.why = why_not(found_[i].shown, found_[0].shown);
  }

  /// Possible ones by their figure, then those that have a plan by how far they are from the limits.
  std::tuple<int, double, size_t, int> rank(const strategy_choice& c) const {
    std::string unused;
    const double by = c.possible ? figure(c, asked_.limits.goal) : excess(c, asked_.limits, unused);
    return {c.possible ? 0 : c.has_plan ? 1 : 2, by, c.devices.size(), complexity(c)};
  }

  /// Returns the simplest of those that are about as good as the best; the end if none is possible.
  std::vector<costed_strategy>::iterator choose() {
    if (!found_.front().shown.possible)
      return found_.end();
    const auto simplicity = [](const costed_strategy& c) {
      return std::pair{c.shown.devices.size(), complexity(c.shown)};
    };
    const double best = figure(found_.front().shown, asked_.limits.goal);
    auto chosen = found_.begin();
    for (auto c = found_.begin(); c != found_.end() && c->shown.possible; ++c)
      if (figure(c->shown, asked_.limits.goal) <= best * (1 + as_good) && simplicity(*c) < simplicity(*chosen))
        chosen = c;
    chosen->shown.why =
        fmt::format("{} {} predicted{}",
                    asked_.limits.goal == objective::latency ? "the least latency" : "the most requests a second",
                    chosen == found_.begin() ? "is" : "but for 10 % is",
                    chosen == found_.begin() ? "" : ", and it is the simplest of these");
    return chosen;
  }

  std::string why_not(const strategy_choice& c, const strategy_choice& best) const {
    const double ratio = figure(c, asked_.limits.goal) / figure(best, asked_.limits.goal);
    if (ratio <= 1 + as_good)
      return fmt::format("about as good{}", c.devices.size() > best.devices.size() ? ", with more devices" : "");
    return asked_.limits.goal == objective::latency ? fmt::format("{:.2f} times the latency", ratio)
                                                    : fmt::format("{:.2f} of the requests a second", 1 / ratio);
  }

  const factory_question& asked_;
  strategy_coster coster_;
  std::vector<costed_strategy> found_;
};

} // namespace

std::vector<costed_strategy> compare_strategies(const factory_question& asked) {
  if (asked.devices.empty())
    fail(errc::invalid_argument, "a strategy needs a device");
  return comparer(asked).all();
}

std::string slower_than_one(const factory_question& asked, strategy how, placement_policy policy,
                            const std::vector<replica_set>& replicas) {
  strategy_coster coster(asked);
  const strategy_choice all = coster.cost(how, policy, replicas).shown;
  strategy_choice one;
  for (const std::string& name : all.devices)
    if (strategy_choice alone = coster
                                    .cost(strategy::none, placement_policy::single,
                                          {led_by(asked.devices[position_of(asked.devices, name)], asked.devices)})
                                    .shown;
        alone.requests_per_s > one.requests_per_s)
      one = std::move(alone);
  if (!all.has_plan || all.requests_per_s >= one.requests_per_s)
    return {};
  return fmt::format("{} is predicted to answer {:.2f} of the requests a second of {} alone ({:.1f}, {:.1f})",
                     to_string(how), all.requests_per_s / one.requests_per_s, one.devices.front(), all.requests_per_s,
                     one.requests_per_s);
}

const costed_strategy& best_of(std::span<const costed_strategy> compared, const choice_options& limits) {
  const strategy_choice& first = compared.front().shown;
  if (first.possible)
    return compared.front();
  std::string too_much;
  excess(first, limits, too_much);
  if (too_much.empty())
    fail(errc::out_of_memory, "no strategy has a plan that fits: {}", first.why);
  fail(
      errc::invalid_argument,
      "no strategy is within the limits ({}); the nearest is {} over {}: {:.3f} ms, {:.1f} requests a second, {} bytes",
      too_much, to_string(first.strategy), fmt::join(first.devices, ", "), first.latency_ms, first.requests_per_s,
      first.memory_bytes);
}

} // namespace troupe

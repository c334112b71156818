// A placement policy of one's own: deals out the branches of a model in every possible way, and takes the way that ends
// first.
//
// A branch is a row of tasks of which each reads what the one before makes, and nothing that another task makes. HEFT
// (`--policy heft`) gives one task after the other to the device that would finish it first, so the last ones may find
// no good place any more: branches of 3, 3, 2, 2 and 2 seconds on two equal devices take it 7 seconds, and 6 are
// enough. Looking at every way costs devices^branches schedules: where these are too many, the last branches stay on
// the first device.
#include <troupe/policy.hpp>

#include <algorithm>
#include <exception>
#include <numeric>
#include <vector>

using namespace troupe;

namespace {

constexpr uint64_t most_ways = 100'000;

/// Returns the branch of each task; branches are numbered in the order of their first tasks.
std::vector<uint32_t> find_branches(const policy_problem& p, uint32_t& count) {
  std::vector<uint32_t> branch(p.task_count), makers;
  std::vector<bool> is_continued(p.task_count, false);
  for (uint32_t n = 0; n < p.task_count; ++n) {
    makers.clear();
    for (uint64_t i = p.input_begin[n]; i < p.input_begin[n + 1]; ++i)
      if (const uint32_t maker = p.producer[p.inputs[i]]; maker != policy_none)
        makers.push_back(maker);
    const bool continues = !makers.empty() &&
                           std::count(makers.begin(), makers.end(), makers[0]) == std::ssize(makers) &&
                           !is_continued[makers[0]];
    branch[n] = continues ? branch[makers[0]] : count++;
    if (continues)
      is_continued[makers[0]] = true;
  }
  return branch;
}

/// Plays schedules of a problem: tasks in their order, each as soon as its device is free and has what it reads.
class player {
public:
  explicit player(const policy_problem& p) : p_(p), end_(p.task_count), free_(p.device_count) {}

  /// Returns when the last task ends.
  double play(const std::vector<uint32_t>& device) {
    double last = 0;
    std::fill(free_.begin(), free_.end(), 0.0);
    for (uint32_t n = 0; n < p_.task_count; ++n) {
      const uint32_t d = device[n];
      double start = free_[d];
      for (uint64_t i = p_.input_begin[n]; i < p_.input_begin[n + 1]; ++i)
        start = std::max(start, arrival(p_.inputs[i], d, device));
      end_[n] = free_[d] = start + p_.seconds(p_.context, n, d);
      last = std::max(last, end_[n] + answers(n, d));
    }
    return last;
  }

private:
  double arrival(uint32_t v, uint32_t to, const std::vector<uint32_t>& device) const {
    const uint32_t maker = p_.producer[v];
    if (maker == policy_none)
      return p_.value_flags[v] & (policy_value_constant | policy_value_known)
                 ? 0
                 : p_.move_seconds(p_.context, v, policy_caller, to);
    const uint32_t from = device[maker];
    return end_[maker] + (from == to ? 0 : p_.devices[from].handover_s + p_.move_seconds(p_.context, v, from, to));
  }

  double answers(uint32_t n, uint32_t d) const {
    double sum = 0;
    for (uint64_t i = p_.output_begin[n]; i < p_.output_begin[n + 1]; ++i)
      if (p_.value_flags[p_.outputs[i]] & policy_value_answer)
        sum += p_.move_seconds(p_.context, p_.outputs[i], d, policy_caller);
    return sum;
  }

  const policy_problem& p_;
  std::vector<double> end_, free_; // by task; by device
};

/// Returns all devices, those first that are there for every task, and how many these are.
std::vector<uint32_t> in_order(const policy_problem& p, uint32_t& regular) {
  std::vector<uint32_t> devices(p.device_count);
  std::iota(devices.begin(), devices.end(), 0u);
  const auto is_regular = [&](uint32_t d) { return !(p.devices[d].flags & policy_device_fallback); };
  regular = static_cast<uint32_t>(std::stable_partition(devices.begin(), devices.end(), is_regular) - devices.begin());
  return devices;
}

/// Gives each task the device of its branch, or, where that may not run it, the first that may. Returns false, and says
/// so, if there is none.
bool give(const policy_problem& p, const std::vector<uint32_t>& devices, const std::vector<uint32_t>& branch,
          const std::vector<uint32_t>& home, std::vector<uint32_t>& device) {
  for (uint32_t n = 0; n < p.task_count; ++n) {
    const auto may_run = [&](uint32_t d) { return p.allowed(p.context, n, d) != 0; };
    device[n] = devices[home[branch[n]]];
    if (may_run(device[n]))
      continue;
    const auto other = std::find_if(devices.begin(), devices.end(), may_run);
    if (other == devices.end()) {
      p.report(p.context, 2, p.why_not(p.context, n));
      return false;
    }
    device[n] = *other;
  }
  return true;
}

/// Counts up: the next way to deal out the first `counted` branches. Returns false after the last.
bool next_way(std::vector<uint32_t>& home, uint32_t counted, uint32_t devices) {
  for (uint32_t i = 0; i < counted; ++i) {
    if (++home[i] < devices)
      return true;
    home[i] = 0;
  }
  return false;
}

int32_t deal_out(const policy_problem& p, policy_result& result) {
  uint32_t branches = 0;
  const std::vector<uint32_t> branch = find_branches(p, branches);
  uint32_t regular = 0, counted = 0;
  const std::vector<uint32_t> devices = in_order(p, regular);
  for (uint64_t ways = regular; counted < branches && ways <= most_ways; ways *= regular)
    ++counted;
  std::vector<uint32_t> home(branches, 0), device(p.task_count);
  player schedules(p);
  double best = -1;
  do {
    if (!give(p, devices, branch, home, device))
      return 1;
    if (const double makespan = schedules.play(device); best < 0 || makespan < best) {
      best = makespan;
      std::copy(device.begin(), device.end(), result.device);
    }
  } while (next_way(home, counted, regular));
  return 0;
}

/// What troupe calls. No exception may leave it.
int32_t place(const policy_problem* problem, policy_result* result) {
  try {
    return deal_out(*problem, *result);
  } catch (const std::exception& e) {
    problem->report(problem->context, 0, e.what());
    return 1;
  }
}

} // namespace

extern "C" TROUPE_API const policy_plugin* troupe_policy() {
  static const policy_plugin self{policy_abi_version, "my-policy", "deals out branches in the best of all ways", place};
  return &self;
}

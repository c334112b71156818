// A device is filled before the next: GPUs in order, then other devices, fallback devices last. For models that are
// larger than one device.
//
// In the graph's order, a device takes tasks while its weights and the most that is live at one time stay within its
// budget. What is live is an estimate (binding lays out waves, not single tasks): who needs a guarantee binds, and
// places again with smaller budgets (`fit_memory`).
//
// Where a device is full, its last tasks go to the next one if that is predicted to take less time because less moves
// then: two GPUs cut a transformer between its layers, not inside one. If the rest has no room for them, everything is
// placed anew without such cuts.
#include "plan/arena_space.hpp"
#include "plan/place/policies.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace troupe {
namespace {

class memory_filler {
public:
  explicit memory_filler(const scheduling_problem& problem)
      : problem_(problem), order_(problem.order()), resident_before_(problem.task_count()),
        now_{std::vector<size_t>(problem.value_count(), 0), std::vector<std::vector<uint32_t>>(problem.value_count()),
             std::vector<device_fill>(problem.device_count()),
             std::vector<bool>(static_cast<size_t>(problem.value_count()) * problem.device_count(), false)} {
    const auto rank = [&](uint32_t d) { return problem.is_fallback(d) ? 2 : problem.is_gpu(d) ? 0 : 1; };
    std::stable_sort(order_.begin(), order_.end(), [&](auto a, auto b) { return rank(a) < rank(b); });
    count_uses();
  }

  void place(schedule& made) {
    const filling empty = now_;
    ends_.assign(order_.size(), problem_.task_count());
    result last;
    while ((last = fill(made, true)) == result::cut_earlier)
      now_ = empty;
    if (last == result::placed)
      return;
    now_ = empty;
    fill(made, false);
  }

private:
  enum class result : uint8_t { placed, cut_earlier, lacks_room };

  struct device_fill {
    int64_t resident = 0; // weights, and what a device in the host's memory was sent
    int64_t live = 0;
    int64_t peak = 0; // of `live` at any time
  };

  /// What has been placed so far.
  struct filling {
    std::vector<size_t> uses_left;               // by root
    std::vector<std::vector<uint32_t>> freed_on; // by root: devices whose live bytes it is part of
    std::vector<device_fill> devices;
    std::vector<bool> held; // by root and device
  };

  /// What a task adds to a device.
  struct addition {
    int64_t resident = 0, live = 0;
  };

  /// Gives each task a device. `cuts`: no device takes tasks from `ends_` on; stops where one is full that should end
  /// earlier, and where the others lack room for what it leaves.
  result fill(schedule& made, bool cuts) {
    size_t open = 0;
    for (task_id n = 0; n < problem_.task_count(); ++n) {
      if (cuts && ends_[open] == n && open + 1 < order_.size())
        ++open;
      std::optional<size_t> at = find(n, open);
      if (cuts && (!at || (*at < open && ends_[*at] <= n)))
        return result::lacks_room;
      if (!at)
        at = last_resort(n);
      resident_before_[n] = now_.devices[order_[open]].resident;
      made.device[n] = order_[*at];
      // A task that only a later device can run leaves the one before it open.
      if (*at > open && problem_.allows(n, order_[open])) {
        if (cuts && (ends_[open] = best_end(n, order_[open], order_[*at])) < n)
          return result::cut_earlier;
        open = *at;
      }
      take(n, order_[*at]);
    }
    return result::placed;
  }

  /// Returns the first task that device `from` should leave to `to`, for which it is full at task `full`: the one that
  /// costs the least time. It keeps nearly as many weights as it has.
  task_id best_end(task_id full, uint32_t from, uint32_t to) {
    constexpr int64_t part = 8; // of its weights that it may leave
    const int64_t resident = resident_before_[full];
    task_id first = full;
    while (first > 0 && resident > 0 && resident_before_[first - 1] >= resident - resident / part)
      --first;
    std::vector<double> cost = move_seconds(first, full, from, to);
    double slower = 0;
    task_id best = full;
    for (task_id n = full; n-- > first;) {
      if (problem_.allows(n, from) && problem_.allows(n, to))
        slower += problem_.seconds(n, to) - problem_.seconds(n, from);
      if (cost[n - first] += slower; cost[n - first] < cost[best - first])
        best = n;
    }
    return best;
  }

  /// Returns by task from `first` to `last` the seconds in which what is made before it and read from it on moves.
  std::vector<double> move_seconds(task_id first, task_id last, uint32_t from, uint32_t to) const {
    std::vector<task_id> last_reader(problem_.value_count(), 0); // by root
    for (uint32_t v = 0; v < problem_.value_count(); ++v)
      for (const task_id reader : problem_.readers(v))
        last_reader[problem_.storage(v)] = std::max(last_reader[problem_.storage(v)], reader);
    std::vector<double> seconds(last - first + 1, 0);
    for (uint32_t v = 0; v < problem_.value_count(); ++v) {
      const task_id maker = problem_.producer(v);
      if (problem_.storage(v) != v || maker == policy_none || maker >= last || last_reader[v] < first)
        continue;
      const double one = problem_.move_seconds(v, from, to);
      for (task_id n = std::max(maker + 1, first); n <= std::min(last_reader[v], last); ++n)
        seconds[n - first] += one;
    }
    return seconds;
  }

  /// Views hold their source's bytes: uses are counted for the source, the value's root.
  void count_uses() {
    for (uint32_t v = 0; v < problem_.value_count(); ++v)
      now_.uses_left[problem_.storage(v)] += problem_.readers(v).size() + (problem_.is_answer(v) ? 1 : 0);
  }

  bool held(uint32_t root, uint32_t d) const {
    return now_.held[static_cast<size_t>(root) * problem_.device_count() + d];
  }
  bool stays(uint32_t root, uint32_t d) const {
    return problem_.is_constant(root) || (problem_.device(d).flags & policy_device_host_memory);
  }

  /// Returns the roots that a task reads, each once.
  const std::vector<uint32_t>& roots_read(task_id n) {
    read_.clear();
    for (uint32_t v : problem_.inputs(n))
      read_.push_back(problem_.storage(v));
    std::sort(read_.begin(), read_.end());
    read_.erase(std::unique(read_.begin(), read_.end()), read_.end());
    return read_;
  }

  int64_t bytes_made(task_id n) {
    int64_t sum = 0;
    for (uint32_t v : problem_.outputs(n))
      if (problem_.storage(v) == v)
        sum += arena_space(problem_.bytes(v));
    return sum;
  }

  addition addition_of(task_id n, uint32_t d) {
    addition sum{.live = bytes_made(n)};
    for (uint32_t root : roots_read(n))
      if (!held(root, d))
        (stays(root, d) ? sum.resident : sum.live) += arena_space(problem_.bytes(root));
    return sum;
  }

  bool has_room(task_id n, uint32_t d) {
    const addition more = addition_of(n, d);
    const device_fill& f = now_.devices[d];
    return f.resident + more.resident + std::max(f.peak, f.live + more.live) <= problem_.device(d).memory_bytes;
  }

  /// Returns the position in `order_` of the device with room for a task: from the one being filled on, then from the
  /// first again; nullopt if there is none.
  std::optional<size_t> find(task_id n, size_t start) {
    for (size_t i = 0; i < order_.size(); ++i) {
      const size_t at = (start + i) % order_.size();
      if (problem_.allows(n, order_[at]) && has_room(n, order_[at]))
        return at;
    }
    return std::nullopt;
  }

  /// The same for a task that no device has room for.
  size_t last_resort(task_id n) {
    problem_.find(n, 0); // throws if no device can run it, whatever its memory
    if (!problem_.has_guessed())
      report(n);
    return roomiest(n);
  }

  /// Returns the position of the device with most room left, of those that can run a task: a binding will say what
  /// lacks, if anything.
  size_t roomiest(task_id n) {
    const auto room = [&](uint32_t d) {
      return problem_.device(d).memory_bytes - now_.devices[d].resident - now_.devices[d].peak;
    };
    size_t best = order_.size();
    for (size_t at = 0; at < order_.size(); ++at)
      if (problem_.allows(n, order_[at]) && (best == order_.size() || room(order_[at]) > room(order_[best])))
        best = at;
    return best;
  }

  [[noreturn]] void report(task_id n) {
    std::string figures;
    for (size_t i = 0; i < order_.size() && i < devices_in_message; ++i)
      figures += (i > 0 ? "; " : "") + figures_of(n, order_[i]);
    if (order_.size() > devices_in_message)
      figures += fmt::format("; and {} devices more", order_.size() - devices_in_message);
    int64_t weights = 0, allowed = 0;
    for (uint32_t v = 0; v < problem_.value_count(); ++v)
      if (problem_.is_constant(v) && !problem_.readers(v).empty())
        weights += arena_space(problem_.bytes(v));
    for (uint32_t d : order_)
      allowed += std::min(problem_.device(d).memory_bytes, INT64_MAX - allowed);
    fail(errc::out_of_memory,
         "{} does not fit on any of the devices: {}. All weights of the model take {} bytes, all devices allow {} "
         "together; use smaller dims, more devices or higher limits",
         problem_.task_name(n), figures, weights, allowed);
  }

  std::string figures_of(task_id n, uint32_t d) {
    const char* name = problem_.device(d).name;
    if (!problem_.allows(n, d))
      return fmt::format("'{}' cannot run it", name);
    const addition more = addition_of(n, d);
    const device_fill& f = now_.devices[d];
    return fmt::format("'{}': {} more bytes needed (weights {}, values {}), {} of {} bytes taken", name,
                       more.resident + more.live, more.resident, more.live, f.resident + std::max(f.peak, f.live),
                       problem_.device(d).memory_bytes);
  }

  void hold(uint32_t root, uint32_t d, bool for_good) {
    now_.held[static_cast<size_t>(root) * problem_.device_count() + d] = true;
    if (!for_good)
      now_.freed_on[root].push_back(d);
  }

  void take(task_id n, uint32_t d) {
    const addition more = addition_of(n, d);
    device_fill& f = now_.devices[d];
    f.resident += more.resident;
    f.live += more.live;
    f.peak = std::max(f.peak, f.live);
    for (uint32_t v : problem_.outputs(n))
      if (problem_.storage(v) == v)
        hold(v, d, false);
    for (uint32_t root : roots_read(n))
      if (!held(root, d))
        hold(root, d, stays(root, d));
    for (uint32_t v : problem_.inputs(n))
      count_use(v);
  }

  /// Frees a value that has had its last reader.
  void count_use(uint32_t v) {
    const uint32_t root = problem_.storage(v);
    if (now_.uses_left[root] > 0 && --now_.uses_left[root] == 0)
      for (uint32_t d : std::exchange(now_.freed_on[root], {}))
        now_.devices[d].live -= arena_space(problem_.bytes(root));
  }

  const scheduling_problem& problem_;
  std::vector<uint32_t> order_;
  std::vector<task_id> ends_;            // by position in `order_`: the first task that a device leaves to the next
  std::vector<int64_t> resident_before_; // by task: that of the device which was being filled
  filling now_;
  std::vector<uint32_t> read_; // scratch
};

} // namespace

void place_greedy_memory(const scheduling_problem& problem, schedule& made) {
  memory_filler(problem).place(made);
}

} // namespace troupe

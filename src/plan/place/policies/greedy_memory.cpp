// A device is filled before the next: GPUs in order, then other devices, fallback devices last. For models that are
// larger than one device.
//
// In the graph's order, a device takes tasks while its weights and the most that is live at one time stay within its
// budget. What is live is an estimate (binding lays out waves, not single tasks): who needs a guarantee binds, and
// places again with smaller budgets (`fit_memory`).
#include "plan/arena_space.hpp"
#include "plan/place/policies.hpp"

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

class memory_filler {
public:
  explicit memory_filler(const scheduling_problem& problem)
      : problem_(problem), order_(problem.order()), uses_left_(problem.value_count(), 0),
        freed_on_(problem.value_count()), devices_(problem.device_count()),
        held_(static_cast<size_t>(problem.value_count()) * problem.device_count(), false) {
    const auto rank = [&](uint32_t d) { return problem.is_fallback(d) ? 2 : problem.is_gpu(d) ? 0 : 1; };
    std::stable_sort(order_.begin(), order_.end(), [&](auto a, auto b) { return rank(a) < rank(b); });
    count_uses();
  }

  void place(schedule& made) {
    size_t filling = 0;
    for (task_id n = 0; n < problem_.task_count(); ++n) {
      const size_t at = find(n, filling);
      made.device[n] = order_[at];
      // A task that only a later device can run leaves the one before it open.
      if (at > filling && problem_.allows(n, order_[filling]))
        filling = at;
      take(n, order_[at]);
    }
  }

private:
  struct device_fill {
    int64_t resident = 0; // weights, and what a device in the host's memory was sent
    int64_t live = 0;
    int64_t peak = 0; // of `live` at any time
  };

  /// What a task adds to a device.
  struct addition {
    int64_t resident = 0, live = 0;
  };

  /// Views hold their source's bytes: uses are counted for the source, the value's root.
  void count_uses() {
    for (uint32_t v = 0; v < problem_.value_count(); ++v)
      uses_left_[problem_.storage(v)] += problem_.readers(v).size() + (problem_.is_answer(v) ? 1 : 0);
  }

  bool held(uint32_t root, uint32_t d) const { return held_[static_cast<size_t>(root) * devices_.size() + d]; }
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
    const device_fill& f = devices_[d];
    return f.resident + more.resident + std::max(f.peak, f.live + more.live) <= problem_.device(d).memory_bytes;
  }

  /// Returns the position in `order_` of the device for a task: from the one being filled on, then from the first
  /// again.
  size_t find(task_id n, size_t start) {
    for (size_t i = 0; i < order_.size(); ++i) {
      const size_t at = (start + i) % order_.size();
      if (problem_.allows(n, order_[at]) && has_room(n, order_[at]))
        return at;
    }
    problem_.find(n, 0); // throws if no device can run it, whatever its memory
    if (!problem_.has_guessed())
      report(n);
    return roomiest(n);
  }

  /// Returns the position of the device with most room left, of those that can run a task: a binding will say what
  /// lacks, if anything.
  size_t roomiest(task_id n) {
    const auto room = [&](uint32_t d) {
      return problem_.device(d).memory_bytes - devices_[d].resident - devices_[d].peak;
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
    const device_fill& f = devices_[d];
    return fmt::format("'{}': {} more bytes needed (weights {}, values {}), {} of {} bytes taken", name,
                       more.resident + more.live, more.resident, more.live, f.resident + std::max(f.peak, f.live),
                       problem_.device(d).memory_bytes);
  }

  void hold(uint32_t root, uint32_t d, bool for_good) {
    held_[static_cast<size_t>(root) * devices_.size() + d] = true;
    if (!for_good)
      freed_on_[root].push_back(d);
  }

  void take(task_id n, uint32_t d) {
    const addition more = addition_of(n, d);
    device_fill& f = devices_[d];
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
    if (uses_left_[root] > 0 && --uses_left_[root] == 0)
      for (uint32_t d : std::exchange(freed_on_[root], {}))
        devices_[d].live -= arena_space(problem_.bytes(root));
  }

  const scheduling_problem& problem_;
  std::vector<uint32_t> order_;
  std::vector<size_t> uses_left_;               // by root
  std::vector<std::vector<uint32_t>> freed_on_; // by root: devices whose live bytes it is part of
  std::vector<device_fill> devices_;
  std::vector<bool> held_;     // by root and device
  std::vector<uint32_t> read_; // scratch
};

} // namespace

void place_greedy_memory(const scheduling_problem& problem, schedule& made) {
  memory_filler(problem).place(made);
}

} // namespace troupe

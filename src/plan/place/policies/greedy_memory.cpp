// A device is filled before the next: GPUs in order, then other devices, fallback devices last. For models that are larger
// than one device.
//
// In the graph's order, a device takes nodes while its weights and the most that is live at one time stay within its budget.
// What is live is an estimate (binding lays out waves, not single nodes): who needs a guarantee binds, and places again with
// smaller budgets (`fit_memory`).
#include "plan/bind/memory.hpp"
#include "plan/place/policies.hpp"

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

class memory_filler {
public:
  explicit memory_filler(placement_problem& problem)
      : problem_(problem), order_(problem.order()), roots_(problem.program().values.size()),
        uses_left_(roots_.size(), 0), freed_on_(roots_.size()), devices_(problem.devices().size()),
        held_(roots_.size() * devices_.size(), false) {
    const auto rank = [&](device_index d) {
      const device_info& info = problem.devices()[d];
      return info.fallback ? 2 : info.gpu ? 0 : 1;
    };
    std::stable_sort(order_.begin(), order_.end(), [&](auto a, auto b) { return rank(a) < rank(b); });
    find_roots();
  }

  placed_nodes place() {
    placed_nodes placed(problem_.node_count());
    size_t filling = 0;
    for (node_id n = 0; n < static_cast<node_id>(placed.size()); ++n) {
      const size_t at = find(n, filling);
      placed[n] = order_[at];
      // A node that only a later device can run leaves the one before it open.
      if (at > filling && problem_.allows(n, order_[filling]))
        filling = at;
      take(n, order_[at]);
    }
    return placed;
  }

private:
  struct device_fill {
    int64_t resident = 0; // weights, and what a device in the host's memory was sent
    int64_t live = 0;
    int64_t peak = 0; // of `live` at any time
  };

  /// What a node adds to a device.
  struct addition {
    int64_t resident = 0, live = 0;
  };

  /// Views hold their source's bytes: uses are counted for the source.
  void find_roots() {
    const graph& g = problem_.program();
    for (size_t v = 0; v < roots_.size(); ++v)
      roots_[v] = static_cast<value_id>(v);
    for (const node& call : g.nodes)
      if (is_view(call))
        roots_[call.outputs[0]] = roots_[call.inputs[0]];
    for (size_t v = 0; v < roots_.size(); ++v)
      uses_left_[roots_[v]] += problem_.edges().consumers[v].size() + (problem_.edges().is_output[v] ? 1 : 0);
  }

  bool held(value_id root, device_index d) const { return held_[static_cast<size_t>(root) * devices_.size() + d]; }
  bool stays(value_id root, device_index d) const {
    return problem_.program().values[root].constant || problem_.devices()[d].host_memory;
  }

  /// Returns the roots that a node reads, each once.
  const std::vector<value_id>& roots_read(node_id n) {
    read_.clear();
    for (value_id v : problem_.program().nodes[n].inputs)
      if (v != no_value)
        read_.push_back(roots_[v]);
    std::sort(read_.begin(), read_.end());
    read_.erase(std::unique(read_.begin(), read_.end()), read_.end());
    return read_;
  }

  int64_t bytes_made(node_id n) {
    int64_t sum = 0;
    for (value_id v : problem_.program().nodes[n].outputs)
      if (v != no_value && roots_[v] == v)
        sum += arena_space(problem_.bytes(v));
    return sum;
  }

  addition addition_of(node_id n, device_index d) {
    addition sum{.live = bytes_made(n)};
    for (value_id root : roots_read(n))
      if (!held(root, d))
        (stays(root, d) ? sum.resident : sum.live) += arena_space(problem_.bytes(root));
    return sum;
  }

  bool has_room(node_id n, device_index d) {
    const addition more = addition_of(n, d);
    const device_fill& f = devices_[d];
    return f.resident + more.resident + std::max(f.peak, f.live + more.live) <= problem_.budget(d);
  }

  /// Returns the position in `order_` of the device for a node: from the one being filled on, then from the first again.
  size_t find(node_id n, size_t start) {
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

  /// Returns the position of the device with most room left, of those that can run a node: a binding will say what lacks, if anything.
  size_t roomiest(node_id n) {
    const auto room = [&](device_index d) { return problem_.budget(d) - devices_[d].resident - devices_[d].peak; };
    size_t best = order_.size();
    for (size_t at = 0; at < order_.size(); ++at)
      if (problem_.allows(n, order_[at]) && (best == order_.size() || room(order_[at]) > room(order_[best])))
        best = at;
    return best;
  }

  [[noreturn]] void report(node_id n) {
    std::string figures;
    for (size_t i = 0; i < order_.size() && i < devices_in_message; ++i)
      figures += (i > 0 ? "; " : "") + figures_of(n, order_[i]);
    if (order_.size() > devices_in_message)
      figures += fmt::format("; and {} devices more", order_.size() - devices_in_message);
    int64_t weights = 0, allowed = 0;
    for (value_id v = 0; v < static_cast<value_id>(roots_.size()); ++v)
      if (problem_.program().values[v].constant && !problem_.edges().consumers[v].empty())
        weights += arena_space(problem_.bytes(v));
    for (device_index d : order_)
      allowed += std::min(problem_.budget(d), INT64_MAX - allowed);
    fail(errc::out_of_memory,
         "{} fits on none of the devices: {}. All weights of the model take {} bytes, all devices allow {} together; "
         "use "
         "smaller dims, more devices or higher limits",
         describe(problem_.program().nodes[n]), figures, weights, allowed);
  }

  std::string figures_of(node_id n, device_index d) {
    const std::string& name = problem_.devices()[d].name;
    if (!problem_.allows(n, d))
      return fmt::format("'{}' cannot run it", name);
    const addition more = addition_of(n, d);
    const device_fill& f = devices_[d];
    return fmt::format("'{}': {} more bytes needed (weights {}, values {}), {} of {} bytes taken", name,
                       more.resident + more.live, more.resident, more.live, f.resident + std::max(f.peak, f.live),
                       problem_.budget(d));
  }

  void hold(value_id root, device_index d, bool for_good) {
    held_[static_cast<size_t>(root) * devices_.size() + d] = true;
    if (!for_good)
      freed_on_[root].push_back(d);
  }

  void take(node_id n, device_index d) {
    const addition more = addition_of(n, d);
    device_fill& f = devices_[d];
    f.resident += more.resident;
    f.live += more.live;
    f.peak = std::max(f.peak, f.live);
    for (value_id v : problem_.program().nodes[n].outputs)
      if (v != no_value && roots_[v] == v)
        hold(v, d, false);
    for (value_id root : roots_read(n))
      if (!held(root, d))
        hold(root, d, stays(root, d));
    for (value_id v : problem_.program().nodes[n].inputs)
      count_use(v);
  }

  /// Frees a value that has had its last reader.
  void count_use(value_id v) {
    if (v == no_value)
      return;
    const value_id root = roots_[v];
    if (uses_left_[root] > 0 && --uses_left_[root] == 0)
      for (device_index d : std::exchange(freed_on_[root], {}))
        devices_[d].live -= arena_space(problem_.bytes(root));
  }

  placement_problem& problem_;
  std::vector<device_index> order_;
  std::vector<value_id> roots_;                     // by value
  std::vector<size_t> uses_left_;                   // by root
  std::vector<std::vector<device_index>> freed_on_; // by root: devices whose live bytes it is part of
  std::vector<device_fill> devices_;
  std::vector<bool> held_;     // by root and device
  std::vector<value_id> read_; // scratch
};

} // namespace

placed_nodes place_greedy_memory(placement_problem& problem) {
  return memory_filler(problem).place();
}

} // namespace troupe

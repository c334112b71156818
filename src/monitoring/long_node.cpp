#include "monitoring/long_node.hpp"

#include "base/printable.hpp"
#include "graph/bodies.hpp"
#include "monitoring/bottlenecks.hpp"

#include <algorithm>

namespace troupe::monitoring {
namespace {

/// A model of fewer nodes has nothing but nodes that dominate.
constexpr size_t several_nodes = 4;

/// A node of a run, and ways to shorten it.
class long_node {
public:
  long_node(const traced_work& work, node_id n, double seconds)
      : work_(work), plan_(work.source()), node_(n), seconds_(seconds) {}

  /// Returns what shortens the node most, and what it saves: a faster device, all devices, a smaller type.
  std::pair<std::string, double> shorten() {
    const device_index own = plan_.placement[node_];
    const double here = work_.predicted_s(node_, own);
    double speeds = 0;
    for (device_index d = 0; d < plan_.devices.size() && here > 0; ++d) {
      if (!work_.is_real(d) || !work_.can_run(d, std::span(&node_, 1)))
        continue;
      const double there = work_.predicted_s(node_, d);
      speeds += work_.lead_of(d) == d ? here / there : 0;
      if (d != own)
        offer(fmt::format("put it on a faster device: --pin '{}={}'", printable(call().name), work_.name(d)),
              there / here);
    }
    if (speeds > 0)
      offer("let all devices share the rows of a batch: --strategy data-parallel", 1 / speeds);
    offer_float16(plan_.devices[own]);
    return best_;
  }

private:
  const node& call() const { return plan_.program->nodes[node_]; }

  void offer_float16(const device_info& device) {
    const auto speed = [&](arithmetic kind) { return device.profile.flops_per_s[static_cast<size_t>(kind)]; };
    const bool computes_float32 =
        !call().outputs.empty() && plan_.program->values[call().outputs[0]].type == dtype::float32;
    if (device.gpu && computes_float32) // half of the bytes in any case
      offer("compute in float16: --precision fp16",
            std::max(0.5, speed(arithmetic::float32) / speed(arithmetic::float16)));
  }

  /// The node would take `factor` of its time.
  void offer(std::string advice, double factor) {
    const double gain = work_.gain(makespan_if(work_.run(), [&](chunk_id id, replayed_chunk& c) {
      if (id == plan_.chunk_of_node[node_])
        c.work_s = std::max(c.work_s - seconds_ * (1 - factor), 0.0);
    }));
    if (gain > best_.second)
      best_ = {std::move(advice), gain};
  }

  const traced_work& work_;
  const plan& plan_;
  const node_id node_;
  const double seconds_;
  std::pair<std::string, double> best_{"a faster device alone changes that: name one with --devices", 0};
};

} // namespace

std::optional<finding> find_long_node(const traced_work& work) {
  const plan& p = work.source();
  std::map<node_id, double> seconds;
  for (const chunk_trace& c : work.trace().chunks)
    for (const device_timing& t : c.timings)
      if (t.kind == device_timing::work::node && !has_body(p.program->nodes[t.id]))
        seconds[t.id] += t.seconds();
  const auto longest = std::max_element(seconds.begin(), seconds.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
  if (seconds.size() < several_nodes || longest->second < work.total_s() / 2)
    return std::nullopt;
  const auto& [id, taken] = *longest;
  const double part = taken / work.total_s();
  const auto [advice, gain] = long_node(work, id, taken).shorten();
  return finding{.severity = severity_of(gain),
                 .cause = "one_node",
                 .where = work.name(p.placement[id]),
                 .what =
                     fmt::format("{} '{}' takes {:.3f} ms, {:.0f} % of the time", operator_name(p.program->nodes[id]),
                                 printable(p.program->nodes[id].name), 1e3 * taken, 100 * part),
                 .lost = part,
                 .advice = advice,
                 .gain = gain};
}

} // namespace troupe::monitoring

#include "run/execution_costs.hpp"

namespace troupe {

execution_costs::execution_costs(const planned_model& planned, bool traced)
    : planned_(planned), traced_(traced), busy_ns_(planned.compiled->devices.size()),
      sent_ns_(traced ? planned.compiled->chunks.size() : 0) {}

void execution_costs::begin(const arena_layout& layout) {
  if (traced_)
    add_memory(trace_.memory, layout);
}

void execution_costs::sent(chunk_id chunk) {
  if (traced_)
    sent_ns_[chunk] = now_ns();
}

void execution_costs::ended(chunk_id chunk, chunk_result& result) {
  busy_ns_[planned_.compiled->chunks[chunk].device] += result.busy_ns;
  if (traced_)
    trace_.chunks.push_back({chunk, sent_ns_[chunk], now_ns(), std::move(result.timings)});
}

void execution_costs::add(execution_costs& body, std::string name) {
  for (size_t d = 0; d < planned_.devices.size(); ++d)
    busy_ns_[d] += body.busy_ns_[d];
  if (!traced_)
    return;
  trace_.bodies.push_back(body.take_trace(body.started_ns_));
  trace_.bodies.back().name = std::move(name);
}

void execution_costs::add_to(run_stats& stats) const {
  stats.chunks = static_cast<uint32_t>(planned_.compiled->chunks.size());
  for (size_t d = 0; d < planned_.devices.size(); ++d)
    stats.busy_ms.emplace_back(planned_.compiled->devices[d].name, static_cast<double>(busy_ns_[d]) / 1e6);
}

run_trace execution_costs::take_trace(int64_t begin_ns) {
  trace_.source = planned_.compiled;
  trace_.begin_ns = begin_ns;
  trace_.end_ns = now_ns();
  return std::move(trace_);
}

} // namespace troupe

#include "measure/operator_table.hpp"

#include "plan/estimate/predict.hpp"

namespace troupe {

operator_table table_of(const run_trace& run, std::span<const shape> dims) {
  const plan& p = *run.source;
  operator_table table;
  for (const chunk_trace& c : run.chunks)
    for (const device_timing& t : c.timings) {
      if (t.kind != device_timing::work::node)
        continue;
      operator_row& row = table[{p.devices[p.placement[t.id]].name, operator_name(p.program->nodes[t.id])}];
      ++row.nodes;
      row.measured_ms += t.seconds() * 1e3;
      row.predicted_ms += predict_node(p, dims, t.id) * 1e3;
    }
  return table;
}

} // namespace troupe

#include "plan/granularity.hpp"

#include "cost/cost_model.hpp"
#include "plan/predict.hpp"

#include <algorithm>

namespace troupe {

std::string_view to_string(granularity g) {
  return g == granularity::fused ? "fused" : "by-wave";
}

granularity choose_granularity(const submission_facts& facts) {
  if (facts.waves < 2)
    return granularity::fused;
  const double hidden = std::min(facts.readback_s, facts.work_after_s);
  return hidden > (facts.waves - 1) * facts.submit_s ? granularity::by_wave : granularity::fused;
}

submission_facts facts_of(const plan& p, const chunk& c, std::span<const shape> dims) {
  const device_profile& device = p.devices[c.device].profile;
  submission_facts facts{.waves = c.wave_count(), .submit_s = device.chunk_s};
  std::vector<bool> downloaded(p.program->values.size(), false);
  for (value_id v : c.downloads)
    downloaded[v] = true;
  for (uint32_t w = 0; w + 1 < c.wave_count(); ++w) {
    if (facts.readback_s > 0)
      facts.work_after_s += wave_seconds(p, dims, c, w);
    for (node_id n : c.wave(w))
      for (value_id v : p.program->nodes[n].outputs)
        if (v != no_value && downloaded[v])
          facts.readback_s += link_seconds(value_bytes(p, dims, v), device.down);
  }
  if (facts.readback_s > 0)
    facts.work_after_s += wave_seconds(p, dims, c, c.wave_count() - 1);
  return facts;
}

} // namespace troupe

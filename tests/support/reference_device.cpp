#include "support/reference_device.hpp"

#include "ops/evaluate.hpp"

namespace troupe::test {

void reference_device::install(bound_plan_ptr bound, device_index) {
  const uint64_t id = bound->id;
  plans_[id] = std::move(bound);
}

tensor reference_device::find(const bound_plan& bound, const values& held, value_id v) {
  if (v == no_value)
    return {};
  if (const auto& constant = bound.source->program->values[v].constant)
    return materialise(*constant);
  return bound.known[v].defined() ? bound.known[v] : held.at(v);
}

void reference_device::run(const chunk_work& work, chunk_result& result) {
  const bound_plan& bound = *plans_.at(work.bound_plan);
  const plan& p = *bound.source;
  const chunk& c = p.chunks.at(work.chunk);
  values& held = slots_[work.bound_plan][work.slot];
  held.resize(p.program->values.size());
  for (size_t i = 0; i < c.uploads.size(); ++i)
    held.at(c.uploads[i]) = work.uploads.at(i);
  for (node_id n : c.nodes) {
    const node& call = p.program->nodes[n];
    std::vector<tensor> inputs;
    for (value_id v : call.inputs)
      inputs.push_back(find(bound, held, v));
    const std::vector<tensor> outputs = evaluate(*call.def, call.attrs, inputs, call.outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i)
      if (call.outputs[i] != no_value)
        held.at(call.outputs[i]) = outputs[i];
  }
  for (value_id v : c.downloads)
    result.downloads.push_back(held.at(v));
}

void reference_device::submit(chunk_work work, chunk_done done) {
  chunk_result result;
  ++chunks_;
  try {
    run(work, result);
  } catch (const std::exception& e) {
    result = {.code = errc::device_failed, .message = e.what()};
  }
  done(std::move(result));
}

device_stats reference_device::stats() const {
  return {.chunks = chunks_, .installed_plans = static_cast<int64_t>(plans_.size())};
}

} // namespace troupe::test

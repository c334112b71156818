#include "support/run_inline.hpp"

#include "ops/evaluate.hpp"

#include <future>

namespace troupe {

inline_runner::inline_runner(std::shared_ptr<const plan> p, std::vector<device*> devices)
    : plan_(std::move(p)), devices_(std::move(devices)), values_(plan_->program->values.size()) {}

std::vector<tensor> inline_runner::run(std::span<const tensor> inputs, std::vector<device_timing>* timings) {
  const graph& g = *plan_->program;
  expects(inputs.size() == g.inputs.size(), "inline_runner: wrong number of inputs");
  bindings symbols;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const symbolic_shape& dims = *g.values[g.inputs[i]].dims;
    for (size_t axis = 0; axis < dims.size(); ++axis)
      if (const std::string symbol = dims[axis].symbol_name(); !symbol.empty())
        symbols[symbol] = inputs[i].dims().at(axis);
    values_[g.inputs[i]] = std::make_shared<moved_value>(inputs[i]);
  }
  bound_plan_ptr last;
  for (uint32_t segment = 0; segment < plan_->segment_count; ++segment) {
    last = installed(segment, symbols);
    for (chunk_id id = 0; id < plan_->chunks.size(); ++id)
      if (plan_->chunks[id].segment == segment)
        run_chunk(*last, id, symbols, timings);
  }
  std::vector<tensor> outputs;
  for (value_id v : g.outputs)
    outputs.push_back(values_[v]             ? values_[v]->host()
                      : g.values[v].constant ? materialise(*g.values[v].constant)
                                             : last->known.at(v));
  return outputs;
}

const bound_plan_ptr& inline_runner::installed(uint32_t segment, const bindings& symbols) {
  bound_plan_ptr& bound = installed_[{segment, symbols}];
  if (!bound) {
    bound = layouts_.bind(plan_, segment, symbols);
    for (size_t d = 0; d < devices_.size(); ++d)
      devices_[d]->install(bound, static_cast<device_index>(d));
  }
  return bound;
}

void inline_runner::run_chunk(const bound_plan& bound, chunk_id id, bindings& symbols,
                              std::vector<device_timing>* timings) {
  const chunk& c = plan_->chunks[id];
  expects(c.device < devices_.size(), "inline_runner: control flow needs a coordinator");
  chunk_work work{.bound_plan = bound.id, .chunk = id, .timed = timings != nullptr};
  for (value_id v : c.uploads)
    work.uploads.push_back(values_[v]);
  for (value_id v : c.downloads)
    work.downloads.push_back(values_[v] = std::make_shared<moved_value>());
  std::promise<chunk_result> ended; // a device may complete on another thread
  devices_[c.device]->submit(std::move(work), [&](chunk_result r) { ended.set_value(std::move(r)); });
  const chunk_result result = ended.get_future().get();
  if (!result.ok())
    throw error(result.code, result.message);
  if (timings)
    std::move(result.timings.begin(), result.timings.end(), std::back_inserter(*timings));
  for (value_id v : c.downloads)
    bind_data_symbols(*plan_, v, values_[v]->dims(), symbols);
}

} // namespace troupe

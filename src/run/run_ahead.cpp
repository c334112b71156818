#include "run/run_ahead.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Returns whether types and dims of its inputs say all about a run of this plan: each of the model's is one of the
/// program's, and none is a container.
bool depends_on_dims_alone(const planned_model& planned) {
  const graph& program = *planned.compiled->program;
  const auto is_plain = [&](value_id v) { return !is_container(program.values[v].type) && program.values[v].dims; };
  return std::ranges::find(planned.program_input, SIZE_MAX) == planned.program_input.end() &&
         std::ranges::all_of(program.inputs, is_plain);
}

} // namespace

run_ahead::run_ahead(begun made, std::shared_ptr<const std::vector<carried_pair>> pairs, execution_id after)
    : pairs_(std::move(pairs)), after_(after), begun_(std::move(made)) {}

std::unique_ptr<run_ahead> run_ahead::make(prepared_run next, std::shared_ptr<const std::vector<carried_pair>> pairs,
                                           completion_mode mode, execution_id after) {
  if (!depends_on_dims_alone(*next.source))
    return nullptr;
  begun made{std::make_unique<execution>(std::move(next), pairs, mode), {}};
  execution& run = *made.run;
  const plan& p = run.source();
  run.start(run.prepared().bound, 0);
  chunk_batches first;
  while (std::optional<chunk_work> work = run.take(true)) {
    const chunk_id id = work->chunk;
    const device_index d = p.chunks[id].device;
    if (p.devices[d].kind == device_kind::control)
      return nullptr;
    first.add(d, std::move(*work), run.awaits_peers(id));
  }
  made.sent = first.take();
  return std::unique_ptr<run_ahead>(new run_ahead(std::move(made), std::move(pairs), after));
}

bool run_ahead::expect(const carried_bundle& given) {
  const planned_model& planned = *prepared().source;
  const plan& p = *planned.compiled;
  std::vector<const moved_value*> values(p.program->inputs.size());
  const auto fits = [&](size_t pair) {
    const size_t input = planned.program_input[(*pairs_)[pair].input];
    const value_id v = p.program->inputs[input];
    const moved_value* const value = values[input] = (*given)[pair].value().get();
    return value && value->filled() && value->type() == p.program->values[v].type &&
           value->dims() == prepared().bound->dims[v];
  };
  const auto reaches = [&](const input_upload& u) {
    return !values[u.input] || values[u.input]->reaches(p.devices[u.device]);
  };
  for (size_t pair = 0; pair < pairs_->size(); ++pair)
    if (!fits(pair))
      return false;
  if (!std::ranges::all_of(planned.input_uploads, reaches))
    return false;
  expected_ = given;
  return true;
}

bool run_ahead::is(const run_request& request) const {
  const run_options& how = request.options;
  // It is the same bundle, not an equal one: `expect` has looked at its values, so nothing is compared now.
  if (request.carried.pairs != pairs_ || request.carried.given != expected_.lock() || how.trace || !how.keep.empty() ||
      !how.device_inputs.empty())
    return false;
  const planned_model& planned = *prepared().source;
  const graph& program = *planned.compiled->program;
  size_t fitting = 0;
  planned.input_order.match(request.inputs, [&](size_t i, const tensor& value) {
    const value_id v = program.inputs[i];
    fitting += value.type() == program.values[v].type && value.dims() == prepared().bound->dims[v] ? 1 : 0;
  });
  return fitting == request.inputs.size() && fitting + pairs_->size() == program.inputs.size();
}

run_ahead::begun run_ahead::begin(const run_request_ptr& request, uint32_t slot) {
  begun_.run->give_inputs(request, slot, begun_.sent);
  return std::move(begun_);
}

} // namespace troupe

#include "run/execution.hpp"

#include "base/find_from.hpp"

#include <algorithm>
#include <numeric>

namespace troupe {
namespace {

execution_id next_id() {
  static std::atomic<execution_id> last{0};
  return ++last;
}

/// Returns the outputs that stay on their device, as indices, in the order in which the request names them.
std::vector<size_t> kept_outputs(const run_request& request, const planned_model& planned) {
  std::vector<size_t> kept;
  for (const std::string& name : request.options.keep)
    kept.push_back(find_from(planned.output_names, kept.empty() ? 0 : kept.back() + 1,
                             [&](const std::string& output) { return output == name; }));
  return kept;
}

/// Whether a value that is filled can be handed on as it is (`carried_value`).
bool is_on_device_alone(const moved_value& value) {
  return value.resident() && !value.has_host() && !value.away();
}

} // namespace

execution::execution(run_request_ptr request, prepared_run prepared, completion_mode mode,
                     std::optional<chunk_place> purpose)
    : id_(next_id()), request_(std::move(request)), prepared_(std::move(prepared)), purpose_(purpose),
      ready_(source(), mode), sent_(source().chunks.size()), in_flight_(source().devices.size()),
      busy_ns_(source().devices.size()), outputs_missing_(static_cast<uint32_t>(planned()->awaited_outputs.size())) {
  crossings_.reserve(planned()->crossings.size());
  for (const crossing& c : planned()->crossings)
    crossings_.push_back({.uses_left = c.uses});
  if (traced())
    sent_ns_.resize(source().chunks.size());
}

execution::execution(run_request_ptr request, prepared_run prepared, completion_mode mode)
    : execution(std::move(request), std::move(prepared), mode, std::nullopt) {
  take_inputs();
  keep_outputs();
}

execution::execution(prepared_run prepared, std::shared_ptr<const std::vector<carried_pair>> pairs,
                     completion_mode mode)
    : execution(
          std::make_shared<run_request>(named_tensors(), run_options(), carried_values{.pairs = std::move(pairs)}),
          std::move(prepared), mode, std::nullopt) {
  awaits_inputs_ = true;
  keep_outputs();
}

void execution::keep_outputs() {
  kept_outputs_ = kept_outputs(*request_, *planned());
  std::vector<bool> stays(source().program->outputs.size());
  const auto keep = [&](size_t i) {
    if (!stays[i])
      ++at(source().program->outputs[i]).kept;
    stays[i] = true;
  };
  std::ranges::for_each(kept_outputs_, keep);
  for (const carried_pair& pair : *request_->carried.pairs)
    keep(pair.output);
}

execution::execution(run_request_ptr request, prepared_run prepared, completion_mode mode, const chunk_place& purpose,
                     std::vector<tensor> inputs)
    : execution(std::move(request), std::move(prepared), mode, purpose) {
  const std::vector<value_id>& ids = source().program->inputs;
  expects(inputs.size() == ids.size(), "a body was given another number of inputs than it has");
  for (size_t i = 0; i < ids.size(); ++i)
    at(ids[i]).made = std::make_shared<moved_value>(std::move(inputs[i]));
}

void execution::start(bound_plan_ptr bound, uint32_t slot) {
  bound_ = std::move(bound);
  slot_ = slot;
  if (traced())
    add_memory(traced_memory_, *bound_->layout);
  for (value_id v : planned()->awaited_outputs)
    if (source().producer[v] < 0 && bound_->known[v].defined() && !at(v).made) {
      at(v).made = std::make_shared<moved_value>(bound_->known[v]);
      --outputs_missing_;
    }
  ready_.start(bound_->segment, ready_chunks_);
}

std::optional<chunk_work> execution::take() {
  if (next_ == ready_chunks_.size()) {
    ready_chunks_.clear();
    next_ = 0;
    return std::nullopt;
  }
  const chunk_id id = ready_chunks_[next_++];
  const chunk& c = source().chunks[id];
  chunk_work work{
      .bound_plan = bound_->id, .chunk = id, .execution = id_, .slot = slot_, .timed = traced(), .stop = stop_};
  if (traced())
    sent_ns_[id] = now_ns();
  work.uploads.reserve(c.uploads.size());
  for (value_id v : c.uploads) {
    const value_ref& value = at(v).made;
    expects(value ? value->reaches(source().devices[c.device]) : awaits_inputs_,
            "a chunk is ready, but a value that it uploads is not there");
    work.uploads.push_back(value ? use(v) : nullptr);
  }
  work.downloads.reserve(c.downloads.size());
  // Those that the run keeps live as long as each other: in one piece of memory.
  std::shared_ptr<std::vector<moved_value>> kept;
  if (!request_->carried.empty()) {
    kept = std::make_shared<std::vector<moved_value>>();
    kept->reserve(c.downloads.size());
  }
  for (value_id v : c.downloads)
    work.downloads.push_back(at(v).made = value_to_make(v, kept));
  ready_.sent(id, ready_chunks_);
  sent_[id] = true; // whatever throws above, it is not sent
  ++in_flight_[c.device];
  return work;
}

value_ref execution::value_to_make(value_id v, const std::shared_ptr<std::vector<moved_value>>& together) const {
  const crossing_state& value = at(v);
  const destination wanted = value.kept == 0                ? destination::host
                             : value.uses_left > value.kept ? destination::both
                                                            : destination::device;
  const bool comes_here = planned()->at(v).uses_here > value.kept;
  if (value.kept == 0 || !together)
    return std::make_shared<moved_value>(wanted, comes_here);
  return {together, &together->emplace_back(wanted, comes_here)};
}

void execution::look_ahead(const chunk_begun& begun) {
  if (begun.chunk >= sent_.size() || !sent_[begun.chunk] || has_handed_on())
    return;
  const chunk& c = source().chunks[begun.chunk];
  for (const uint32_t i : begun.made) {
    const value_id v = c.downloads.at(i);
    check_made(v);
    at(v).is_checked = has_planned_dims(v);
  }
  hand_on();
}

void execution::hand_on() {
  const auto made_for = [this](const carried_pair& pair) -> crossing_state& {
    return at(source().program->outputs[pair.output]);
  };
  const auto is_ready = [&](const carried_pair& pair) {
    const crossing_state& value = made_for(pair);
    return value.is_checked && value.uses_left == 1 && is_on_device_alone(*value.made);
  };
  const std::vector<carried_pair>& pairs = *request_->carried.pairs;
  if (pairs.empty() || !kept_outputs_.empty() || !std::ranges::all_of(pairs, is_ready))
    return;
  std::vector<carried_value> made;
  made.reserve(pairs.size());
  for (const carried_pair& pair : pairs)
    made.emplace_back(std::move(made_for(pair).made));
  carried_ = std::make_shared<const std::vector<carried_value>>(std::move(made));
}

void execution::complete(chunk_id id, chunk_result& result) {
  const chunk& c = source().chunks[id];
  for (value_id v : c.downloads)
    if (!at(v).is_checked)
      check_made(v);
  busy_ns_[c.device] += result.busy_ns;
  if (traced())
    traced_.push_back({id, sent_ns_[id], now_ns(), std::move(result.timings)});
  for (value_id v : c.downloads) {
    crossing_state& value = at(v);
    if (!value.is_checked) // else its dims are the planned ones
      bind_data_symbols(source(), v, value.made->dims(), prepared_.symbols);
    if (planned()->at(v).awaited)
      --outputs_missing_;
    if (value.uses_left == 0)
      value.made = nullptr; // it only decided shapes
  }
  ready_.completed(id, ready_chunks_);
}

void execution::check_made(value_id v) const {
  const moved_value& made = *at(v).made;
  expects(made.filled(), "a chunk has not made a value that its plan names");
  expects(made.type() == source().program->values[v].type, "a chunk made a value of another element type");
  expects(!has_planned_dims(v) || made.dims() == bound_->dims[v], "a chunk made a value of another shape");
}

bool execution::end_chunk(chunk_id id) {
  if (id >= sent_.size() || !sent_[id])
    return false;
  sent_[id] = false;
  --in_flight_[source().chunks[id].device];
  return true;
}

void execution::forget_device(device_index device) {
  for (chunk_id id = 0; id < sent_.size(); ++id)
    if (source().chunks[id].device == device)
      sent_[id] = false;
  in_flight_[device] = 0;
}

const tensor& execution::output(size_t i) const {
  const tensor& constant = planned()->constant_outputs[i];
  return constant.defined() ? constant : at(source().program->outputs[i]).made->host();
}

std::vector<tensor> execution::outputs() const {
  std::vector<tensor> all;
  for (size_t i = 0; i < source().program->outputs.size(); ++i)
    all.push_back(output(i));
  return all;
}

named_tensors execution::collect_outputs() const {
  std::vector<bool> stays(source().program->outputs.size());
  for (const size_t i : kept_outputs_)
    stays[i] = true;
  for (const carried_pair& pair : *request_->carried.pairs)
    stays[pair.output] = true;
  named_tensors named;
  for (size_t i = 0; i < stays.size(); ++i)
    if (!stays[i])
      named.emplace(planned()->output_names[i], output(i));
  return named;
}

named_device_tensors execution::collect_kept() const {
  named_device_tensors kept;
  for (const size_t i : kept_outputs_)
    kept[planned()->output_names[i]] = kept_output(i);
  return kept;
}

carried_bundle execution::collect_carried() const {
  if (carried_)
    return carried_;
  std::vector<carried_value> made;
  made.reserve(request_->carried.pairs->size());
  for (const carried_pair& pair : *request_->carried.pairs) {
    const value_ref& value = at(source().program->outputs[pair.output]).made;
    const bool as_it_is = value && is_on_device_alone(*value);
    made.push_back(as_it_is ? carried_value(value) : carried_value(kept_output(pair.output)));
  }
  return std::make_shared<const std::vector<carried_value>>(std::move(made));
}

device_tensor execution::kept_output(size_t i) const {
  if (const tensor& constant = planned()->constant_outputs[i]; constant.defined())
    return make_host_resident(constant, "host");
  const value_id v = source().program->outputs[i];
  const moved_value& value = *at(v).made;
  return value.resident() ? value.resident() : make_host_resident(value.host(), home_of(v));
}

std::string execution::home_of(value_id v) const {
  const node_id maker = source().producer[v];
  const device_info* device = maker < 0 ? nullptr : &source().devices[source().placement[maker]];
  return device && device->kind != device_kind::control ? device->name : "host";
}

bool execution::drained() const {
  return std::accumulate(in_flight_.begin(), in_flight_.end(), uint32_t{0}) == 0;
}

std::string execution::describe_chunk(chunk_id id) const {
  const chunk& c = source().chunks[id];
  const auto& nodes = source().program->nodes;
  std::string text = fmt::format("chunk {}", id);
  if (c.nodes.size() == 1)
    text += fmt::format(" ({})", describe(nodes[c.nodes[0]]));
  else if (!c.nodes.empty())
    text += fmt::format(" ({} nodes, {} to {})", c.nodes.size(), describe(nodes[c.nodes.front()]),
                        describe(nodes[c.nodes.back()]));
  return text;
}

void execution::add_stats() const {
  run_stats& stats = request_->stats;
  stats.plan_cached = prepared_.cached;
  stats.chunks = static_cast<uint32_t>(source().chunks.size());
  for (size_t d = 0; d < planned()->devices.size(); ++d)
    stats.busy_ms.emplace_back(source().devices[d].name, static_cast<double>(busy_ns_[d]) / 1e6);
}

run_trace execution::take_trace() {
  if (!traced())
    return {};
  return {.source = planned()->compiled,
          .begin_ns = std::chrono::nanoseconds(request_->started.time_since_epoch()).count(),
          .end_ns = now_ns(),
          .chunks = std::move(traced_),
          .memory = std::move(traced_memory_),
          .bodies = std::move(bodies_)};
}

std::vector<tensor> execution::control_operands(const chunk_work& work) const {
  const chunk& c = source().chunks[work.chunk];
  const graph& program = *source().program;
  std::vector<tensor> operands;
  for (value_id v : program.nodes[c.nodes[0]].inputs) {
    if (v == no_value) {
      operands.emplace_back();
      continue;
    }
    const auto uploaded = std::find(c.uploads.begin(), c.uploads.end(), v);
    const auto constant = planned()->control_constants.find(v);
    operands.push_back(uploaded != c.uploads.end() ? work.uploads[uploaded - c.uploads.begin()]->host()
                       : constant != planned()->control_constants.end() ? constant->second
                                                                        : bound_->known[v]);
    expects(operands.back().defined(), "control flow is ready, but an operand of it is not on the host");
  }
  return operands;
}

void execution::fill_control(chunk_id id, std::span<const tensor> results) {
  const chunk& c = source().chunks[id];
  const std::vector<value_id>& outputs = source().program->nodes[c.nodes.front()].outputs;
  for (value_id v : c.downloads)
    at(v).made->fill(results[static_cast<size_t>(std::find(outputs.begin(), outputs.end(), v) - outputs.begin())]);
}

shape execution::dims_or_empty(value_id v) const {
  if (source().segment_of_value[v] <= bound_->segment)
    return bound_->dims[v];
  shape dims;
  for (const dim& d : *source().program->values[v].dims)
    dims.push_back(d.depends_on_data() ? 0 : d.evaluate(prepared_.symbols));
  return dims;
}

void execution::add_costs(const execution& body) {
  for (size_t d = 0; d < planned()->devices.size(); ++d)
    busy_ns_[d] += body.busy_ns_[d];
  prepared_.cached = prepared_.cached && body.prepared_.cached;
}

void execution::add_trace(execution& body, std::string name) {
  run_trace& trace = bodies_.emplace_back(body.take_trace());
  trace.name = std::move(name);
  trace.begin_ns = body.started_ns_;
}

} // namespace troupe

#include "run/execution_values.hpp"

#include "base/find_from.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Returns the outputs that stay on their device, as indices, in the order in which the request names them.
std::vector<size_t> kept_outputs(const run_request& request, const planned_model& planned) {
  std::vector<size_t> kept;
  for (const std::string& name : request.options.keep)
    kept.push_back(find_from(planned.output_names, kept.empty() ? 0 : kept.back() + 1,
                             [&](const std::string& output) { return output == name; }));
  return kept;
}

/// Returns what a run hands on; null: nothing.
std::span<const carried_pair> elements(const std::shared_ptr<const std::vector<carried_pair>>& pairs) {
  return pairs ? std::span<const carried_pair>(*pairs) : std::span<const carried_pair>();
}

/// Returns by output whether the run keeps it: by name, or as one of a pair.
std::vector<bool> kept_flags(size_t outputs, const std::vector<size_t>& by_name, std::span<const carried_pair> pairs) {
  std::vector<bool> kept(outputs);
  for (const size_t i : by_name)
    kept[i] = true;
  for (const carried_pair& pair : pairs)
    kept[pair.output] = true;
  return kept;
}

/// Whether a value that is filled can be handed on as it is (`carried_value`).
bool is_on_device_alone(const moved_value& value) {
  return value.is_told() && value.resident() && !value.has_host() && !value.away();
}

/// Whether a binding states a value's dims.
bool has_planned_dims(const bound_plan& bound, value_id v) {
  return bound.source->segment_of_value[v] <= bound.segment;
}

/// Throws `errc::internal` if a value is not as the plan says.
void check_made(const moved_value& made, value_id v, const bound_plan& bound) {
  expects(made.filled(), "a chunk has not made a value that its plan names");
  expects(made.type() == bound.source->program->values[v].type, "a chunk made a value of another element type");
  expects(!has_planned_dims(bound, v) || made.dims() == bound.dims[v], "a chunk made a value of another shape");
}

/// Returns the name of the device that a value in the host's memory is said to be on.
std::string home_of(const plan& source, value_id v) {
  const node_id maker = source.producer[v];
  const device_info* device = maker < 0 ? nullptr : &source.devices[source.placement[maker]];
  return device && device->kind != device_kind::control ? device->name : "host";
}

} // namespace

execution_values::execution_values(const planned_model& planned, bool promises)
    : planned_(planned), source_(*planned.compiled), promises_(promises),
      outputs_missing_(static_cast<uint32_t>(planned_.awaited_outputs.size())) {
  crossings_.reserve(planned_.crossings.size());
  for (const crossing& c : planned_.crossings)
    crossings_.push_back({.uses_left = c.uses});
}

void execution_values::keep(const run_request& request) {
  pairs_ = request.carried.pairs;
  kept_outputs_ = kept_outputs(request, planned_);
  const std::vector<bool> kept = kept_flags(source_.program->outputs.size(), kept_outputs_, elements(pairs_));
  for (size_t i = 0; i < kept.size(); ++i)
    if (kept[i])
      ++at(source_.program->outputs[i]).kept;
}

void execution_values::start(const bound_plan& bound) {
  for (value_id v : planned_.awaited_outputs)
    if (source_.producer[v] < 0 && bound.known[v].defined() && !at(v).made) {
      at(v).made = std::make_shared<moved_value>(bound.known[v]);
      --outputs_missing_;
    }
}

std::vector<value_ref> execution_values::downloads_of(const chunk& c) {
  // Those that the run keeps live as long as each other: in one piece of memory.
  std::shared_ptr<std::vector<moved_value>> kept;
  if (!elements(pairs_).empty()) {
    kept = std::make_shared<std::vector<moved_value>>();
    kept->reserve(c.downloads.size());
  }
  std::vector<value_ref> values;
  values.reserve(c.downloads.size());
  for (value_id v : c.downloads)
    values.push_back(at(v).made = value_to_make(v, kept));
  return values;
}

value_ref execution_values::value_to_make(value_id v, const std::shared_ptr<std::vector<moved_value>>& together) const {
  const crossing_state& value = at(v);
  const destination wanted = value.kept == 0                ? destination::host
                             : value.uses_left > value.kept ? destination::both
                                                            : destination::device;
  const bool comes_here = planned_.at(v).uses_here > value.kept;
  const bool to_peers = promises_ && planned_.at(v).to_peers;
  if (value.kept == 0 || !together)
    return std::make_shared<moved_value>(wanted, comes_here, to_peers);
  return {together, &together->emplace_back(wanted, comes_here, to_peers)};
}

void execution_values::look_ahead(const chunk& c, std::span<const uint32_t> made, const bound_plan& bound) {
  for (const uint32_t i : made) {
    const value_id v = c.downloads.at(i);
    check_made(*at(v).made, v, bound);
    at(v).is_checked = has_planned_dims(bound, v);
  }
  hand_on();
}

void execution_values::hand_on() {
  const auto made_for = [this](const carried_pair& pair) -> crossing_state& {
    return at(source_.program->outputs[pair.output]);
  };
  const auto is_ready = [&](const carried_pair& pair) {
    const crossing_state& value = made_for(pair);
    // The one use is the output itself. A chunk that is still to be taken would find the value gone.
    return value.is_checked && value.uses_left == 1 && is_on_device_alone(*value.made);
  };
  if (elements(pairs_).empty() || !kept_outputs_.empty() || !std::ranges::all_of(elements(pairs_), is_ready))
    return;
  std::vector<carried_value> made;
  made.reserve(elements(pairs_).size());
  for (const carried_pair& pair : elements(pairs_))
    made.emplace_back(std::move(made_for(pair).made));
  carried_ = std::make_shared<const std::vector<carried_value>>(std::move(made));
}

void execution_values::complete(const chunk& c, const bound_plan& bound, bindings& symbols) {
  // All of them are checked before one is taken over: a chunk with a wrong value leaves no symbol bound.
  for (value_id v : c.downloads)
    if (!at(v).is_checked)
      check_made(*at(v).made, v, bound);
  for (value_id v : c.downloads) {
    crossing_state& value = at(v);
    if (!value.is_checked) // else its dims are the planned ones
      bind_data_symbols(source_, v, value.made->dims(), symbols);
    if (planned_.at(v).awaited)
      --outputs_missing_;
    if (value.uses_left == 0)
      value.made = nullptr; // it only decided shapes
  }
}

bool execution_values::let_peers_wait(const chunk& c, const bound_plan& bound) {
  int64_t bytes = 0;
  for (value_id v : c.downloads)
    if (promises_ && planned_.at(v).to_peers)
      bytes += bytes_of(source_.program->values[v].type, volume(bound.dims[v]));
  if (bytes == 0 || bytes > most_promised_bytes)
    return false;
  for (value_id v : c.downloads)
    if (planned_.at(v).to_peers)
      at(v).is_checked = true; // its dims are the planned ones: chunks of the same segment read it
  return true;
}

void execution_values::fill(const chunk& c, std::span<const tensor> results) const {
  const std::vector<value_id>& outputs = source_.program->nodes[c.nodes.front()].outputs;
  for (value_id v : c.downloads)
    at(v).made->fill(results[static_cast<size_t>(std::ranges::find(outputs, v) - outputs.begin())]);
}

const tensor& execution_values::output(size_t i) const {
  const tensor& constant = planned_.constant_outputs[i];
  return constant.defined() ? constant : at(source_.program->outputs[i]).made->host();
}

std::vector<tensor> execution_values::outputs() const {
  std::vector<tensor> all;
  for (size_t i = 0; i < source_.program->outputs.size(); ++i)
    all.push_back(output(i));
  return all;
}

named_tensors execution_values::named_outputs() const {
  const std::vector<bool> kept = kept_flags(source_.program->outputs.size(), kept_outputs_, elements(pairs_));
  named_tensors named;
  for (size_t i = 0; i < kept.size(); ++i)
    if (!kept[i])
      named.emplace(planned_.output_names[i], output(i));
  return named;
}

named_device_tensors execution_values::kept() const {
  named_device_tensors kept;
  for (const size_t i : kept_outputs_)
    kept[planned_.output_names[i]] = kept_output(i);
  return kept;
}

carried_bundle execution_values::carried() const {
  if (carried_)
    return carried_;
  std::vector<carried_value> made;
  made.reserve(elements(pairs_).size());
  for (const carried_pair& pair : elements(pairs_)) {
    const value_ref& value = at(source_.program->outputs[pair.output]).made;
    const bool as_it_is = value && is_on_device_alone(*value);
    made.push_back(as_it_is ? carried_value(value) : carried_value(kept_output(pair.output)));
  }
  return std::make_shared<const std::vector<carried_value>>(std::move(made));
}

device_tensor execution_values::kept_output(size_t i) const {
  if (const tensor& constant = planned_.constant_outputs[i]; constant.defined())
    return make_host_resident(constant, "host");
  const value_id v = source_.program->outputs[i];
  const moved_value& value = *at(v).made;
  return value.resident() ? value.resident() : make_host_resident(value.host(), home_of(source_, v));
}

} // namespace troupe

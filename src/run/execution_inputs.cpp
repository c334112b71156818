// What an execution is given: by name in the host's memory or on devices, and carried on by a bound session.
#include "run/execution.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Calls `visit(input of the program, value)` for what a bound session gives.
template <class Visit>
void for_each_carried(const carried_values& carried, const planned_model& planned, Visit&& visit) {
  carried.for_each_given([&](size_t i, const carried_value& value) {
    if (const size_t input = planned.program_input[i]; input != SIZE_MAX)
      visit(input, value);
  });
}

} // namespace

std::vector<std::string> inputs_wanted_on_host(const run_request& request, const planned_model& planned) {
  const plan& p = *planned.compiled;
  const auto& residents = request.options.device_inputs;
  if (residents.empty() && request.carried.empty())
    return {};
  std::vector<const resident*> given(p.program->inputs.size());
  planned.input_order.match(residents, [&](size_t i, const device_tensor& value) { given[i] = value.get(); });
  for_each_carried(request.carried, planned, [&](size_t i, const carried_value& value) {
    if (!value.value()->has_host())
      given[i] = value.handle().get();
  });
  std::vector<bool> wanted(given.size());
  for (const input_upload& u : planned.input_uploads)
    if (given[u.input] && !is_on(*given[u.input], p.devices[u.device]))
      wanted[u.input] = true;
  std::vector<std::string> names;
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i])
      names.push_back(p.program->values[p.program->inputs[i]].name);
  return names;
}

void execution::take_inputs() {
  const std::vector<value_id>& inputs = source().program->inputs;
  std::vector<device_tensor> residents(inputs.size());
  std::vector<const tensor*> hosts(inputs.size());
  planned()->input_order.match(request_->options.device_inputs, [&](size_t i, const device_tensor& value) {
    if (value->host().defined())
      hosts[i] = &value->host();
    else
      residents[i] = value;
  });
  planned()->input_order.match(request_->inputs, [&](size_t i, const tensor& value) { hosts[i] = &value; });
  // None is handed on as an output, which would keep the others of its run alive: a node makes each output.
  for_each_carried(request_->carried, *planned(), [&](size_t i, const carried_value& value) {
    if (!hosts[i])
      at(inputs[i]).made = value.value();
    else if (!value.value()->has_host()) // its copy, which has been asked for
      residents[i] = value.handle();
  });
  // All others in one piece of memory, which goes when the last of them has been read.
  const auto given = std::make_shared<std::vector<moved_value>>();
  given->reserve(static_cast<size_t>(std::ranges::count_if(inputs, [this](value_id v) { return !at(v).made; })));
  for (size_t i = 0; i < inputs.size(); ++i)
    if (value_ref& value = at(inputs[i]).made; !value)
      value = value_ref(given, &given->emplace_back(hosts[i] ? *hosts[i] : tensor{}, std::move(residents[i])));
}

void execution::give_inputs(run_request_ptr request, uint32_t slot) {
  request_ = std::move(request);
  slot_ = slot;
  awaits_inputs_ = false;
  take_inputs();
}

void execution::give_inputs(chunk_work& work) {
  const chunk& c = source().chunks[work.chunk];
  work.slot = slot_;
  for (size_t i = 0; i < work.uploads.size(); ++i)
    if (!work.uploads[i])
      work.uploads[i] = use(c.uploads[i]); // it reaches the device, of which `run_ahead::expect` has made sure
}

value_ref execution::use(value_id v) {
  crossing_state& value = at(v);
  expects(value.made != nullptr, "a chunk uploads a value that nobody has made");
  return --value.uses_left == 0 ? std::move(value.made) : value.made;
}

} // namespace troupe

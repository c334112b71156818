// What an execution is given: by name in the host's memory or on devices, and carried on by a bound session.
#include "run/execution_values.hpp"

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

void execution_values::give(const run_request& request) {
  is_given_ = true;
  const std::vector<value_id>& inputs = source_.program->inputs;
  std::vector<device_tensor> residents(inputs.size());
  std::vector<const tensor*> hosts(inputs.size());
  planned_.input_order.match(request.options.device_inputs, [&](size_t i, const device_tensor& value) {
    if (value->host().defined())
      hosts[i] = &value->host();
    else
      residents[i] = value;
  });
  planned_.input_order.match(request.inputs, [&](size_t i, const tensor& value) { hosts[i] = &value; });
  // None is handed on as an output, which would keep the others of its run alive: a node makes each output.
  for_each_carried(request.carried, planned_, [&](size_t i, const carried_value& value) {
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

void execution_values::give(std::vector<tensor> inputs) {
  is_given_ = true;
  const std::vector<value_id>& ids = source_.program->inputs;
  expects(inputs.size() == ids.size(), "a body was given another number of inputs than it has");
  for (size_t i = 0; i < ids.size(); ++i)
    at(ids[i]).made = std::make_shared<moved_value>(std::move(inputs[i]));
}

std::vector<value_ref> execution_values::uploads_of(const chunk& c) {
  std::vector<value_ref> values;
  values.reserve(c.uploads.size());
  for (value_id v : c.uploads) {
    const value_ref& value = at(v).made;
    const bool will_be_told = value && value->may_be_promised() && !value->is_told();
    expects(will_be_told || (value ? value->reaches(source_.devices[c.device]) : !is_given_),
            "a chunk is ready, but a value that it uploads is not there");
    values.push_back(value ? use(v) : nullptr);
  }
  return values;
}

void execution_values::give(const chunk& c, chunk_work& work) {
  for (size_t i = 0; i < work.uploads.size(); ++i)
    if (!work.uploads[i])
      work.uploads[i] = use(c.uploads[i]); // it reaches the device, of which `run_ahead::expect` has made sure
}

value_ref execution_values::use(value_id v) {
  crossing_state& value = at(v);
  expects(value.made != nullptr, "a chunk uploads a value that has not been made");
  // The last reader takes the value along, so that its bytes go with that chunk and not with the execution.
  return --value.uses_left == 0 ? std::move(value.made) : value.made;
}

} // namespace troupe

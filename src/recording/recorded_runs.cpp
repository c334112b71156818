#include "recording/recorded_runs.hpp"

namespace troupe::recording {
namespace {

void read_input(fields& f, named_tensors& into) {
  const std::string input = f.text();
  into.emplace(input, make_tensor(f.value()));
}

carried_value make_carried(const value_facts& facts) {
  if (facts.type == dtype::undefined)
    return {};
  if (facts.on_host && !facts.is_resident)
    return carried_value(make_host_resident(make_tensor(facts), "host"));
  auto value = std::make_shared<moved_value>();
  fill(*value, facts);
  return carried_value(std::move(value));
}

} // namespace

named_tensors recorded_runs::read_inputs(fields& f) {
  named_tensors inputs;
  while (f.has_texts())
    read_input(f, inputs);
  return inputs;
}

run_request_ptr recorded_runs::make(fields& f) {
  const uint64_t run = there_.of(f.next_name());
  const bool fetches = f.number() != 0, prepares = f.number() != 0;
  run_options how{.trace = f.number() != 0};
  how.timeout = std::chrono::milliseconds(f.number());
  for (size_t keep = f.count(); keep > 0; --keep)
    how.keep.push_back(f.text());
  named_tensors inputs;
  const size_t given = f.count(), on_devices = f.count();
  for (size_t i = 0; i < given; ++i)
    read_input(f, inputs);
  for (size_t i = 0; i < on_devices; ++i) {
    const std::string input = f.text();
    const value_facts facts = f.value();
    how.device_inputs.emplace(input, facts.type == dtype::undefined ? nullptr : make_resident(facts));
  }
  auto request = std::make_shared<run_request>(std::move(inputs), std::move(how), read_carried(f));
  request->only_fetches = fetches;
  request->only_prepares = prepares;
  if (here_.of({named::run, request->ticket}) != run)
    fail(errc::invalid_input, "a run begins twice");
  runs_.emplace(request->ticket, request);
  return request;
}

carried_values recorded_runs::read_carried(fields& f) {
  carried_values carried;
  const size_t which = f.count();
  if (which >= pairs_.size()) {
    auto pairs = std::make_shared<std::vector<carried_pair>>();
    while (f.has_numbers()) {
      const size_t output = f.count(), input = f.count();
      if (output >= model_->outputs.size() || input >= model_->inputs.size())
        fail(errc::invalid_input, "a run carries output {} to input {}, which the model does not have", output, input);
      pairs->push_back({output, input});
    }
    pairs_.push_back(pairs->empty() ? carried.pairs : std::move(pairs));
  }
  carried.pairs = pairs_[std::min(which, pairs_.size() - 1)];
  if (f.has_names()) {
    const auto made = made_.find(there_.find(f.next_name()));
    if (made == made_.end())
      fail(errc::invalid_input, "a run is given values of one that made none");
    carried.given = made->second;
  } else if (f.has_values()) {
    auto given = std::make_shared<std::vector<carried_value>>();
    while (f.has_values())
      given->push_back(make_carried(f.value()));
    carried.given = std::move(given);
  }
  if (carried.given->size() != carried.pairs->size())
    fail(errc::invalid_input, "a run is given {} values for {} pairs", carried.given->size(), carried.pairs->size());
  return carried;
}

void recorded_runs::answered(const run_answer& answer) {
  if (const auto run = runs_.extract(answer.ticket); !run.empty() && !answer.why.failed())
    made_[here_.of({named::run, answer.ticket})] = run.mapped()->carried.made;
}

uint64_t recorded_runs::in_process(fields& f) const {
  const name n = f.next_name();
  return here_.in_process({n.what, there_.find(n)});
}

} // namespace troupe::recording

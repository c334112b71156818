// Control flow: bodies of If, Loop and Scan as executions of their own, one after the other for each node.
#include "run/session_machine.hpp"

namespace troupe {
namespace {

const node& control_node(const execution& e, chunk_id chunk) {
  return e.source().program->nodes[e.source().chunks[chunk].nodes.front()];
}

/// Returns the plan of body `index` of a control-flow chunk's node.
const planned_model_ptr& body_of(const execution& e, chunk_id chunk, size_t index) {
  const auto& bodies = e.source().bodies;
  const node_id n = e.source().chunks[chunk].nodes.front();
  const auto first = std::find_if(bodies.begin(), bodies.end(), [&](const planned_body& b) { return b.node == n; });
  return e.planned()->bodies.at(static_cast<size_t>(first - bodies.begin()) + index);
}

} // namespace

void session_machine::start_control(execution& e, chunk_work work) {
  const chunk_place place{e.id(), work.chunk};
  controls_.emplace(place, running_control{.work = std::move(work), .flow = std::nullopt, .started_ns = now_ns()});
  commands_.push_back(continue_control{place});
}

void session_machine::on(const continue_control& next) {
  go_on(next.place, {});
}

void session_machine::go_on(const chunk_place& place, const plan_outcome& made) {
  const auto control = controls_.find(place);
  if (control == controls_.end())
    return; // of a run that has ended
  execution& e = *executions_.at(place.execution);
  const std::string name = describe(control_node(e, place.chunk));
  std::string position;
  const failure why = capture([&] {
    std::optional<control_flow>& flow = control->second.flow;
    if (!flow)
      flow.emplace(control_node(e, place.chunk), e.control_operands(std::exchange(control->second.work, {})));
    auto call = flow->next();
    if (!call)
      return finish_control(e, place);
    position = ", " + flow->position();
    start_body(e, place, std::move(*call), made);
  });
  if (why.failed())
    end_early(e, {why.code, fmt::format("{}{}: {}", name, position, why.message)});
}

void session_machine::start_body(execution& e, const chunk_place& place, control_flow::body_call call,
                                 const plan_outcome& made) {
  const planned_model_ptr planned = body_of(e, place.chunk, call.body);
  prepared_run prepared;
  try {
    made.check();
    auto found = plans_->prepare_body(planned, call.inputs, e.prepared().symbols, memory_of(e.request()), made);
    if (auto* job = std::get_if<plan_job>(&found))
      return want({begin_body{place}, made}, std::move(*job));
    prepared = std::get<prepared_run>(std::move(found));
  } catch (const memory_shortage&) {
    if (plans_->is_current(*planned))
      throw;
    const auto request = run_request_ptr(e.request()); // the execution ends here
    return start_over(request);
  }
  auto fresh =
      std::make_unique<execution>(e.request(), std::move(prepared), completion_, place, std::move(call.inputs));
  execution& body = *fresh;
  executions_.emplace(body.id(), std::move(fresh));
  start_segment(body, 0);
}

std::vector<int64_t> session_machine::memory_of(const run_request_ptr& request) const {
  std::vector<int64_t> bytes;
  for (const auto& [id, e] : executions_) {
    if (e->request() != request || !e->bound())
      continue;
    bytes.resize(e->planned()->devices.size());
    for (device_index d = 0; d < bytes.size(); ++d)
      bytes[d] += bytes_needed(*e->bound()->layout, d);
  }
  return bytes;
}

void session_machine::finish_body(execution& e) {
  const chunk_place place = *e.purpose();
  execution& around = *executions_.at(place.execution);
  running_control& control = controls_.at(place);
  around.add_costs(e);
  if (e.traced())
    around.add_trace(e, fmt::format("{}, {}", describe(control_node(around, place.chunk)), control.flow->position()));
  control.flow->take(e.outputs());
  e.stop();
  commands_.push_back(continue_control{place});
  drain(e);
}

void session_machine::finish_control(execution& e, const chunk_place& place) {
  const running_control& control = controls_.at(place);
  const control_flow& flow = *control.flow;
  const node& n = control_node(e, place.chunk);
  std::vector<shape> empty;
  for (size_t i = 0; i < flow.scan_outputs(); ++i) {
    const size_t output = flow.carried() + i;
    const bool wanted = output < n.outputs.size() && n.outputs[output] != no_value;
    empty.push_back(wanted ? e.dims_or_empty(n.outputs[output]) : shape{0});
  }
  e.fill_control(place.chunk, flow.results(empty));
  chunk_result result;
  if (e.traced())
    result.timings.push_back({.id = e.source().chunks[place.chunk].nodes.front(),
                              .begin_ns = control.started_ns,
                              .end_ns = now_ns(),
                              .kernel = fmt::format("bodies: {}", flow.executed())});
  controls_.erase(place);
  e.end_chunk(place.chunk);
  e.complete(place.chunk, result);
  dispatch(e);
  advance(e);
}

std::string session_machine::position_of(const execution& e) const {
  std::string text;
  for (std::optional<chunk_place> place = e.purpose(); place;) {
    const execution& around = *executions_.at(place->execution);
    text.insert(0, fmt::format("{}, {}: ", describe(control_node(around, place->chunk)),
                               controls_.at(*place).flow->position()));
    place = around.purpose();
  }
  return text;
}

} // namespace troupe

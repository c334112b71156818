#include "run/control_chunks.hpp"

#include <algorithm>

namespace troupe {
namespace {

const node& control_node(const execution& e, chunk_id chunk) {
  return e.source().program->nodes[e.source().chunks[chunk].nodes.front()];
}

} // namespace

const planned_model_ptr& body_of(const execution& e, chunk_id chunk, size_t index) {
  const auto& bodies = e.source().bodies;
  const node_id n = e.source().chunks[chunk].nodes.front();
  const auto first = std::find_if(bodies.begin(), bodies.end(), [&](const planned_body& b) { return b.node == n; });
  return e.planned()->bodies.at(static_cast<size_t>(first - bodies.begin()) + index);
}

void control_chunks::begin(const execution& e, chunk_work work) {
  const chunk_place place{e.id(), work.chunk};
  running_.emplace(place, running{.work = std::move(work), .flow = std::nullopt, .started_ns = now_ns()});
  commands_.push_back(continue_control{place});
}

std::optional<control_flow::body_call> control_chunks::next(const execution& e, chunk_id chunk) {
  running& control = running_.at({e.id(), chunk});
  if (!control.flow)
    control.flow.emplace(control_node(e, chunk), e.control_operands(std::exchange(control.work, {})));
  return control.flow->next();
}

void control_chunks::take(const chunk_place& place, std::vector<tensor> outputs) {
  running_.at(place).flow->take(std::move(outputs));
  commands_.push_back(continue_control{place});
}

chunk_result control_chunks::finish(execution& e, chunk_id chunk) {
  const auto found = running_.find({e.id(), chunk});
  const control_flow& flow = *found->second.flow;
  const node& n = control_node(e, chunk);
  std::vector<shape> empty;
  for (size_t i = 0; i < flow.scan_outputs(); ++i) {
    const size_t output = flow.carried() + i;
    const bool wanted = output < n.outputs.size() && n.outputs[output] != no_value;
    empty.push_back(wanted ? e.dims_or_empty(n.outputs[output]) : shape{0});
  }
  e.fill_control(chunk, flow.results(empty));
  chunk_result result;
  if (e.traced())
    result.timings.push_back({.id = e.source().chunks[chunk].nodes.front(),
                              .begin_ns = found->second.started_ns,
                              .end_ns = now_ns(),
                              .kernel = fmt::format("bodies: {}", flow.executed())});
  running_.erase(found);
  return result;
}

void control_chunks::forget(execution& e) {
  std::erase_if(running_,
                [&](const auto& entry) { return entry.first.execution == e.id() && e.end_chunk(entry.first.chunk); });
}

std::string control_chunks::name(const execution& e, chunk_id chunk) {
  return describe(control_node(e, chunk));
}

std::string control_chunks::position(const execution& e, chunk_id chunk) const {
  return fmt::format("{}, {}", name(e, chunk), running_.at({e.id(), chunk}).flow->position());
}

} // namespace troupe
